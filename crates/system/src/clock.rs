//! The machine's clock, ids and randomness.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use chrono::{SubsecRound, TimeDelta};
use launchway_domain::{
    clock::{Clock, Timestamp},
    ids::Ids,
    secret::Entropy,
};
use uuid::Uuid;

/// The machine's clock, in microseconds.
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the port that everyone else asks")]
    fn now(&self) -> Timestamp {
        chrono::Utc::now().trunc_subsecs(6)
    }
}

/// The difference between two clocks that is not corrected, because it may be the time that a message takes.
const UNCORRECTED: TimeDelta = TimeDelta::seconds(1);

/// The clock of the database that several servers share, as far as it is known. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct SharedClock(Arc<AtomicI64>);

impl SharedClock {
    /// Corrects this clock by the clock of the database minus that of the machine.
    pub fn correct(&self, offset: TimeDelta) {
        let known = TimeDelta::microseconds(self.0.load(Ordering::Relaxed));
        if (offset - known).abs() > UNCORRECTED {
            self.0.store(offset.num_microseconds().unwrap_or_default(), Ordering::Relaxed);
        }
    }
}

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        SystemClock.now() + TimeDelta::microseconds(self.0.load(Ordering::Relaxed))
    }
}

/// UUIDs of version 7: unique, and in the order in which they were made.
pub struct TimeOrderedIds;

impl Ids for TimeOrderedIds {
    #[expect(clippy::disallowed_methods, reason = "this is the port that everyone else asks")]
    fn next(&self) -> Uuid {
        Uuid::now_v7()
    }
}

/// The system's randomness.
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(
        clippy::expect_used,
        reason = "a machine without randomness must not go on and make weak secrets"
    )]
    fn bits_256(&self) -> [u8; 32] {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits).expect("the system gives randomness");
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_returns_whole_microseconds() {
        assert_eq!(SystemClock.now().timestamp_subsec_nanos() % 1000, 0);
    }

    #[test]
    fn a_shared_clock_follows_only_large_differences() {
        let clock = SharedClock::default();
        clock.correct(TimeDelta::milliseconds(900));
        assert!(clock.now() - SystemClock.now() < TimeDelta::milliseconds(100));
        clock.clone().correct(TimeDelta::seconds(-30));
        let ahead = SystemClock.now() - clock.now();
        assert!(ahead > TimeDelta::milliseconds(29_900) && ahead <= TimeDelta::seconds(30), "{ahead}");
        clock.correct(TimeDelta::milliseconds(-29_500));
        assert!(SystemClock.now() - clock.now() > TimeDelta::milliseconds(29_900));
        clock.correct(TimeDelta::zero());
        assert!(clock.now() - SystemClock.now() < TimeDelta::milliseconds(100));
    }

    #[test]
    fn ids_are_of_version_7_and_in_order() {
        let ids: Vec<_> = (0..1000).map(|_| TimeOrderedIds.next()).collect();
        assert!(ids.is_sorted() && ids.iter().all(|id| id.get_version_num() == 7));
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn random_bits_do_not_repeat() {
        assert_ne!(SystemEntropy.bits_256(), SystemEntropy.bits_256());
    }
}
