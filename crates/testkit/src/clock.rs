//! A clock that a test controls.

use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta};
use launchway_domain::clock::{Clock, Timestamp};

/// The default time of builders and clocks.
pub const NEW_YEAR: &str = "2026-01-01T00:00:00Z";

/// Parses a timestamp in the form of [`NEW_YEAR`].
///
/// # Panics
///
/// If `text` is not a timestamp in whole microseconds.
#[must_use]
#[track_caller]
pub fn moment(text: &str) -> Timestamp {
    let moment: Timestamp = text.parse().unwrap();
    assert_eq!(whole_microseconds(moment.timestamp_micros()), moment, "no clock of ours is that fine");
    moment
}

/// A clock that does not move unless it is set.
#[derive(Debug)]
pub struct FixedClock {
    microseconds: AtomicI64,
}

impl FixedClock {
    /// A clock at a time, in the form of [`NEW_YEAR`].
    ///
    /// # Panics
    /// If `text` is not a [`moment`].
    #[must_use]
    #[track_caller]
    pub fn at(text: &str) -> Self {
        Self { microseconds: moment(text).timestamp_micros().into() }
    }

    /// Sets the clock to `moment`, forwards or backwards.
    pub fn set(&self, moment: Timestamp) {
        self.microseconds.store(moment.timestamp_micros(), Ordering::SeqCst);
    }

    /// Advances the clock.
    ///
    /// # Panics
    ///
    /// If the result is out of range.
    pub fn advance(&self, time: TimeDelta) {
        self.microseconds.fetch_add(time.num_microseconds().unwrap(), Ordering::SeqCst);
    }
}

impl Default for FixedClock {
    /// A clock at [`NEW_YEAR`].
    fn default() -> Self {
        Self::at(NEW_YEAR)
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        whole_microseconds(self.microseconds.load(Ordering::SeqCst))
    }
}

fn whole_microseconds(count: i64) -> Timestamp {
    DateTime::from_timestamp_micros(count).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stands_still_until_it_is_moved() {
        let clock = FixedClock::at("2026-03-01T12:00:00.000001Z");
        assert_eq!([clock.now(), clock.now()], [moment("2026-03-01T12:00:00.000001Z"); 2]);

        clock.advance(TimeDelta::microseconds(2));
        assert_eq!(clock.now(), moment("2026-03-01T12:00:00.000003Z"));

        clock.set(moment(NEW_YEAR));
        assert_eq!(clock.now(), moment(NEW_YEAR));
    }

    #[test]
    fn the_clock_is_no_finer_than_a_database() {
        let clock = FixedClock::default();
        clock.advance(TimeDelta::nanoseconds(1_999));
        assert_eq!(clock.now(), moment("2026-01-01T00:00:00.000001Z"));
    }
}
