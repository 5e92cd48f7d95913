//! Estimates of the bytes that the logs of organizations take.
//!
//! Adding up the logs of an organization costs what the number of its applications costs. So they are counted from time to
//! time only, and what is appended meanwhile is added to the count.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use uuid::Uuid;

/// The time for which a count is used: other servers append too.
const VALID: Duration = Duration::from_secs(10);

/// The counted bytes of organizations, and those that were appended since.
///
/// **Invariant:** an estimate is too small only by what other transactions append within [`VALID`]. A deletion or a
/// transaction that fails makes it too large, which the next count corrects.
#[derive(Debug, Default)]
pub(crate) struct Estimates(Mutex<HashMap<Uuid, Estimate>>);

#[derive(Debug, Clone, Copy)]
struct Estimate {
    bytes: i64,
    counted_at: Instant,
}

impl Estimates {
    /// Adds appended bytes, and returns whether the logs of the organization are certainly within `limit`. If they are
    /// not, they have to be counted.
    pub(super) fn add(&self, organization: Uuid, appended: i64, limit: u64, now: Instant) -> bool {
        let mut estimates = self.lock();
        let Some(estimate) = estimates.get_mut(&organization) else { return false };
        estimate.bytes = estimate.bytes.saturating_add(appended);
        let is_recent = now.duration_since(estimate.counted_at) < VALID;
        is_recent && u64::try_from(estimate.bytes).is_ok_and(|bytes| bytes <= limit)
    }

    /// Keeps a count.
    pub(super) fn set(&self, organization: Uuid, bytes: i64, now: Instant) {
        self.lock().insert(organization, Estimate { bytes, counted_at: now });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Estimate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORGANIZATION: Uuid = Uuid::from_u128(1);

    #[test]
    fn a_count_and_what_was_appended_since_are_compared() {
        let (estimates, now) = (Estimates::default(), Instant::now());
        assert!(!estimates.add(ORGANIZATION, 1, 100, now), "nothing was counted yet");
        estimates.set(ORGANIZATION, 60, now);
        assert!(estimates.add(ORGANIZATION, 40, 100, now));
        assert!(!estimates.add(ORGANIZATION, 1, 100, now));
        assert!(!estimates.add(Uuid::from_u128(2), 1, 100, now), "each is counted by itself");
    }

    #[test]
    fn a_count_is_used_for_a_short_time() {
        let (estimates, now) = (Estimates::default(), Instant::now());
        estimates.set(ORGANIZATION, 0, now);
        assert!(estimates.add(ORGANIZATION, 1, 100, now + VALID - Duration::from_millis(1)));
        assert!(!estimates.add(ORGANIZATION, 1, 100, now + VALID));
    }
}
