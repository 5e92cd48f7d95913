//! Rate limits of the logs of applications.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use launchway_domain::{
    clock::Timestamp,
    ids::ApplicationId,
    logs::{Level, NewLine},
};

/// The bytes that a line counts beside its text.
const LINE_OVERHEAD: u64 = 100;
/// The size of a burst, in seconds of the rate.
const BURST: u64 = 10;
/// The number of buckets from which full ones are dropped.
const MOST_BUCKETS: usize = 1000;

/// A token bucket for each application.
#[derive(Debug)]
pub(super) struct RateLimiter {
    bytes_per_second: u64,
    buckets: Mutex<HashMap<ApplicationId, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    bytes: u64,
    at: Timestamp,
}

impl RateLimiter {
    pub(super) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second, buckets: Mutex::default() }
    }

    /// Drops the lines beyond the rate of an application, and inserts one line with their number. All lines
    /// belong to one application.
    pub(super) fn limit(&self, mut lines: Vec<NewLine>, now: Timestamp) -> Vec<NewLine> {
        let Some(application) = lines.first().map(|line| line.application_id) else { return lines };
        if self.bytes_per_second == 0 {
            return lines;
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let capacity = self.bytes_per_second.saturating_mul(BURST);
        let filled = |bucket: Bucket| {
            let seconds = (now - bucket.at).num_milliseconds().clamp(0, 60_000).unsigned_abs();
            bucket.bytes.saturating_add(self.bytes_per_second.saturating_mul(seconds) / 1000).min(capacity)
        };
        if buckets.len() > MOST_BUCKETS {
            buckets.retain(|_, bucket| filled(*bucket) < capacity);
        }
        let mut left = buckets.get(&application).map_or(capacity, |bucket| filled(*bucket));
        let mut kept = 0;
        for line in &lines {
            let cost = line.text.len() as u64 + LINE_OVERHEAD;
            if cost > left {
                break;
            }
            left -= cost;
            kept += 1;
        }
        buckets.insert(application, Bucket { bytes: left, at: now });
        let dropped = lines.split_off(kept);
        if let Some(last) = dropped.last() {
            let bytes: usize = dropped.iter().map(|line| line.text.len()).sum();
            let text = format!(
                "{} lines ({} KiB) were dropped: an application may print {} KiB per second \
                 (LAUNCHWAY_APPLICATION_LOG_RATE)",
                dropped.len(),
                bytes >> 10,
                self.bytes_per_second >> 10,
            );
            lines.push(NewLine { level: Level::Warn, text, ..last.clone() });
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use launchway_domain::ids::DeploymentId;
    use uuid::Uuid;

    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn lines(application: u128, count: usize) -> Vec<NewLine> {
        let line = NewLine {
            application_id: ApplicationId::from(Uuid::from_u128(application)),
            deployment_id: DeploymentId::from(Uuid::from_u128(9)),
            level: Level::Runtime,
            text: "x".repeat(900),
            at: START,
        };
        vec![line; count]
    }

    #[test]
    fn a_flood_is_cut_and_one_line_says_how_much() {
        let rates = RateLimiter::new(10_000);
        let kept = rates.limit(lines(1, 150), START);
        assert_eq!(kept.len(), 101);
        let last = kept.last().unwrap();
        assert_eq!(last.level, Level::Warn);
        assert!(last.text.starts_with("50 lines (43 KiB) were dropped"), "{}", last.text);
        assert_eq!(rates.limit(lines(2, 100), START).len(), 100, "others have their own");
        let later = START + chrono::TimeDelta::seconds(2);
        assert_eq!(rates.limit(lines(1, 100), later).len(), 21);
    }

    #[test]
    fn no_rate_is_no_limit() {
        assert_eq!(RateLimiter::new(0).limit(lines(1, 5000), START).len(), 5000);
        assert_eq!(RateLimiter::new(1).limit(Vec::new(), START).len(), 0);
    }
}
