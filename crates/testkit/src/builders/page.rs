//! Pages of lists.

use launchway_domain::page::PageRequest;

/// The page `number` of pages with `size` items, at most 100.
///
/// # Panics
/// If there is no such page.
#[must_use]
#[track_caller]
pub fn a_page(number: i64, size: i64) -> PageRequest {
    PageRequest::new(number, size, 100).unwrap()
}
