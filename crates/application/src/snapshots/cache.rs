//! A cache of readings, each of which concurrent callers share.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::Error;

/// The age up to which a reading is recent. The shortest interval at which a page refreshes itself is longer, so that it
/// never goes back to what it showed before.
const RECENT: Duration = Duration::from_secs(1);
/// The most readings that are kept.
const CAPACITY: usize = 128;

/// The freshness that a caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// A reading that begins now.
    Now,
    /// A reading of the last second, which others may have made.
    Recent,
}

/// A value that was read, and a number that changes when the value does.
#[derive(Debug)]
pub struct Snapshot<V> {
    /// The value.
    pub value: Arc<V>,
    /// The version of the value in this process. No two different values of one key have the same version.
    pub version: u64,
}

// Derived, it would require that the value can be cloned.
impl<V> Clone for Snapshot<V> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), version: self.version }
    }
}

/// The last reading of one key. A caller that reads holds the lock, and others wait for its result.
type Entry<V> = Arc<tokio::sync::Mutex<Option<(Snapshot<V>, Instant)>>>;

/// A bounded number of readings by their keys.
pub(super) struct SnapshotCache<K, V> {
    entries: Mutex<HashMap<K, Entry<V>>>,
    versions: AtomicU64,
}

impl<K, V> Default for SnapshotCache<K, V> {
    fn default() -> Self {
        Self { entries: Mutex::default(), versions: AtomicU64::default() }
    }
}

impl<K: Eq + Hash, V: PartialEq> SnapshotCache<K, V> {
    /// Returns the value of `key`, by `read` if there is none of that freshness. Errors are not kept.
    pub(super) async fn get(
        &self,
        key: K,
        freshness: Freshness,
        read: impl AsyncFnOnce() -> Result<V, Error>,
    ) -> Result<Snapshot<V>, Error> {
        if freshness == Freshness::Now {
            // Without the lock: a caller that needs no one else's reading waits for no one else.
            let value = read().await?;
            let entry = self.entry(key);
            let mut kept = entry.lock().await;
            return Ok(self.keep(&mut kept, value));
        }
        let entry = self.entry(key);
        let mut kept = entry.lock().await;
        if let Some((snapshot, at)) = &*kept
            && at.elapsed() < RECENT
        {
            return Ok(snapshot.clone());
        }
        let value = read().await?;
        Ok(self.keep(&mut kept, value))
    }

    fn keep(&self, kept: &mut Option<(Snapshot<V>, Instant)>, value: V) -> Snapshot<V> {
        let snapshot = match kept.take() {
            Some((snapshot, _)) if *snapshot.value == value => snapshot,
            _ => {
                let version = self.versions.fetch_add(1, Ordering::Relaxed);
                Snapshot { value: Arc::new(value), version }
            }
        };
        *kept = Some((snapshot.clone(), Instant::now()));
        snapshot
    }

    fn entry(&self, key: K) -> Entry<V> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= CAPACITY && !entries.contains_key(&key) {
            entries.retain(|_, entry| match entry.try_lock() {
                Ok(kept) => kept.as_ref().is_some_and(|(_, at)| at.elapsed() < RECENT),
                Err(_is_read) => true,
            });
            if entries.len() >= CAPACITY {
                entries.clear();
            }
        }
        Arc::clone(entries.entry(key).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::{
        task::JoinSet,
        time::{advance, sleep},
    };

    use super::*;

    /// A cache over a value that changes, and the number of readings.
    #[derive(Default)]
    struct Records {
        cache: SnapshotCache<u32, u32>,
        value: AtomicUsize,
        readings: AtomicUsize,
    }

    impl Records {
        async fn get(&self, key: u32, freshness: Freshness) -> Snapshot<u32> {
            let read = async || {
                self.readings.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(20)).await;
                Ok(u32::try_from(self.value.load(Ordering::Relaxed)).unwrap())
            };
            self.cache.get(key, freshness, read).await.unwrap()
        }

        fn readings(&self) -> usize {
            self.readings.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn viewers_at_the_same_time_share_one_reading() {
        let records = Arc::new(Records::default());
        let mut viewers = JoinSet::new();
        for _ in 0..50 {
            let records = Arc::clone(&records);
            viewers.spawn(async move { records.get(1, Freshness::Recent).await.version });
        }
        let versions = viewers.join_all().await;
        assert_eq!((versions, records.readings()), (vec![0; 50], 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reading_is_shared_for_a_second() {
        let records = Records::default();
        records.get(1, Freshness::Recent).await;
        advance(RECENT - Duration::from_millis(1)).await;
        records.get(1, Freshness::Recent).await;
        assert_eq!(records.readings(), 1);
        advance(Duration::from_millis(1)).await;
        records.get(1, Freshness::Recent).await;
        assert_eq!(records.readings(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_version_changes_with_its_value_alone() {
        let records = Records::default();
        let first = records.get(1, Freshness::Now).await;
        let second = records.get(1, Freshness::Now).await;
        assert_eq!((records.readings(), first.version), (2, second.version));
        records.value.store(7, Ordering::Relaxed);
        let third = records.get(1, Freshness::Now).await;
        assert_eq!(*third.value, 7);
        assert_ne!(third.version, first.version);
        records.value.store(0, Ordering::Relaxed);
        let fourth = records.get(1, Freshness::Now).await;
        assert!(fourth.version > third.version, "a value that comes back is not taken for the old one");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_read_now_is_what_others_get_after_it() {
        let records = Records::default();
        records.get(1, Freshness::Recent).await;
        records.value.store(7, Ordering::Relaxed);
        assert_eq!(*records.get(1, Freshness::Recent).await.value, 0);
        assert_eq!(*records.get(1, Freshness::Now).await.value, 7);
        assert_eq!(*records.get(1, Freshness::Recent).await.value, 7);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_not_kept() {
        let cache = SnapshotCache::<u32, u32>::default();
        let failed = cache.get(1, Freshness::Recent, async || Err(Error::NotFound("it"))).await;
        assert!(matches!(failed, Err(Error::NotFound("it"))));
        assert_eq!(*cache.get(1, Freshness::Recent, async || Ok(3)).await.unwrap().value, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_its_capacity_is_kept() {
        let records = Records::default();
        for key in 0..=u32::try_from(3 * CAPACITY).unwrap() {
            records.get(key, Freshness::Recent).await;
            assert!(records.cache.entries.lock().unwrap().len() <= CAPACITY);
        }
    }
}
