//! A cache of the number of matching rows per block.
//!
//! Rows never change, so the count of a block whose rows are all kept is valid forever. A block that lost a row to
//! retention is never whole again, and only counts of whole blocks are used.

use std::{collections::BTreeMap, sync::Arc};

use moka::sync::Cache;

use super::index::Owner;

/// The most cached counts, which are those of 400 terms in a million rows.
const MOST_COUNTS: u64 = 100_000;
/// The counts whose memory equals that of a key.
const WEIGHT_OF_KEY: u32 = 8;

/// A log and a filter, in the notation of `Debug`.
pub(crate) type CountKey = (Owner, String);
/// The matching rows of each block.
pub(super) type Counts = BTreeMap<i64, i64>;

/// The counts of recent searches.
#[derive(Clone)]
pub(crate) struct CountCache {
    counts: Cache<CountKey, Arc<Counts>>,
}

impl CountCache {
    pub(crate) fn new() -> Self {
        let weight = |_: &CountKey, counts: &Arc<Counts>| {
            u32::try_from(counts.len()).unwrap_or(u32::MAX).saturating_add(WEIGHT_OF_KEY)
        };
        Self { counts: Cache::builder().max_capacity(MOST_COUNTS).weigher(weight).build() }
    }

    pub(super) fn get(&self, key: &CountKey) -> Arc<Counts> {
        self.counts.get(key).unwrap_or_default()
    }

    /// Adds counts of whole blocks.
    pub(super) fn add(&self, key: &CountKey, counts: Counts) {
        if counts.is_empty() {
            return;
        }
        let mut all = Counts::clone(&self.get(key));
        all.extend(counts);
        self.counts.insert(key.clone(), Arc::new(all));
    }
}
