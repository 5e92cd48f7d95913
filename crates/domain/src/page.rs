//! Pagination.

use crate::value::InvalidValue;

/// A page of a list.
///
/// ```
/// use launchway_domain::page::PageRequest;
///
/// let third = PageRequest::new(3, 20, 100).unwrap();
/// assert_eq!((third.offset(), third.size()), (40, 20));
/// assert_eq!(PageRequest::new(0, 20, 100).unwrap_err().field, "page");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    number: i64,
    size: i64,
}

/// A page that cannot be requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}")]
pub struct InvalidPage {
    /// The parameter: `page` or `page_size`.
    pub field: &'static str,
    /// The problem.
    pub reason: InvalidValue,
}

impl PageRequest {
    /// Requests the page `number`, counted from 1, of pages with `size` items; a size above `largest` is
    /// reduced to `largest`.
    ///
    /// # Errors
    /// [`InvalidPage`] for a number or a size below 1.
    pub fn new(number: i64, size: i64, largest: i64) -> Result<Self, InvalidPage> {
        let at_least_1 = |field, value| match value {
            1.. => Ok(value),
            _ => Err(InvalidPage { field, reason: InvalidValue::number("at least 1", value) }),
        };
        Ok(Self { number: at_least_1("page", number)?, size: at_least_1("page_size", size)?.min(largest) })
    }

    /// Returns the number of the page, counted from 1.
    #[must_use]
    pub fn number(self) -> i64 {
        self.number
    }

    /// Returns the number of items of a page.
    #[must_use]
    pub fn size(self) -> i64 {
        self.size
    }

    /// Returns the number of items before the page.
    #[must_use]
    pub fn offset(self) -> i64 {
        (self.number - 1).saturating_mul(self.size)
    }
}

/// A part of a list, and the length of the whole.
///
/// ```
/// use launchway_domain::page::{Page, PageRequest};
///
/// let request = PageRequest::new(1, 2, 100).unwrap();
/// let page = Page { items: vec!["web", "api"], request, total: 5 };
/// assert_eq!((page.total_pages(), page.has_next()), (3, true));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items of the page.
    pub items: Vec<T>,
    /// The request of this page.
    pub request: PageRequest,
    /// The number of items on all pages.
    pub total: i64,
}

impl<T> Page<T> {
    /// Returns the number of pages.
    #[must_use]
    pub fn total_pages(&self) -> i64 {
        self.total / self.request.size + i64::from(self.total % self.request.size != 0)
    }

    /// Returns whether a page follows.
    #[must_use]
    pub fn has_next(&self) -> bool {
        self.request.number < self.total_pages()
    }

    /// Returns whether a page with items precedes.
    #[must_use]
    pub fn has_previous(&self) -> bool {
        self.request.number > 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(number: i64, size: i64, total: i64) -> Page<()> {
        Page { items: Vec::new(), request: PageRequest::new(number, size, 100).unwrap(), total }
    }

    #[test]
    fn pages_and_sizes_below_1_are_refused_by_name() {
        assert_eq!(PageRequest::new(0, 10, 100).unwrap_err().field, "page");
        assert_eq!(PageRequest::new(1, 0, 100).unwrap_err().field, "page_size");
        assert!(PageRequest::new(1, 1, 100).is_ok());
    }

    #[test]
    fn a_size_above_the_largest_is_taken_for_the_largest() {
        assert_eq!(PageRequest::new(1, 100, 100).unwrap().size(), 100);
        assert_eq!(PageRequest::new(1, 101, 100).unwrap().size(), 100);
    }

    #[test]
    fn an_empty_list_has_no_page_before_or_after() {
        let page = page(1, 10, 0);
        assert_eq!((page.total_pages(), page.has_next(), page.has_previous()), (0, false, false));
    }

    proptest! {
        #[test]
        fn walking_from_page_to_page_meets_every_item_once(size in 1i64..20, total in 0i64..200) {
            let mut number = 1;
            let mut met = 0;
            loop {
                let page = page(number, size, total);
                prop_assert_eq!(page.request.offset(), met);
                met += size.min(total - met);
                prop_assert_eq!(page.has_next(), met < total);
                if !page.has_next() {
                    break;
                }
                number += 1;
            }
            prop_assert_eq!(met, total);
        }

        #[test]
        fn no_page_number_is_too_large(number in 1i64.., size in 1i64..) {
            let page = page(number, size, i64::MAX);
            prop_assert!(page.request.offset() >= 0 && page.total_pages() >= 1);
        }
    }
}
