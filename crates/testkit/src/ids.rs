//! Predictable ids.

use std::sync::atomic::{AtomicU64, Ordering};

use launchway_domain::{auth::TokenHash, ids::Ids};
use uuid::{Builder, Uuid, Variant, Version};

/// Returns the ids [`nth(1)`](CountingIds::nth), `nth(2)`, `nth(3)` and so on.
#[derive(Debug, Default)]
pub struct CountingIds {
    given: AtomicU64,
}

impl CountingIds {
    /// Returns the id of call number `n`, counted from 1: `00000000-0000-7000-8000-00000000000n`.
    #[must_use]
    pub fn nth(n: u64) -> Uuid {
        version_7(u128::from(n).to_be_bytes())
    }
}

impl Ids for CountingIds {
    fn next(&self) -> Uuid {
        Self::nth(self.given.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

/// Returns the id for `name`: always the same one, and another one for every other name.
#[must_use]
pub fn id_of(name: &str) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&TokenHash::of(name).as_bytes()[..16]);
    version_7(bytes)
}

fn version_7(bytes: [u8; 16]) -> Uuid {
    Builder::from_bytes(bytes).with_variant(Variant::RFC4122).with_version(Version::SortRand).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_counted_in_order_and_have_version_7() {
        let ids = CountingIds::default();
        let given = [ids.next(), ids.next(), ids.next()];
        assert_eq!(given, [1, 2, 3].map(CountingIds::nth));
        assert_eq!(given[2].to_string(), "00000000-0000-7000-8000-000000000003");
        assert_eq!(given.map(|id| id.get_version_num()), [7; 3]);
        assert!(given.is_sorted());
    }

    #[test]
    fn a_name_has_one_id_of_version_7() {
        assert_eq!(id_of("ada"), id_of("ada"));
        assert_ne!(id_of("ada"), id_of("grace"));
        assert_eq!(id_of("ada").get_version_num(), 7);
    }
}
