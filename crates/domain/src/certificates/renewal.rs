//! The time at which a certificate is renewed.

use std::time::Duration;

use chrono::TimeDelta;

use crate::clock::Timestamp;

/// The window in which an ACME server suggests to renew a certificate (ARI, RFC 9773).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenewalWindow {
    /// The time from which it may be renewed. In the past, it is to be renewed at once.
    pub start: Timestamp,
    /// The time by which it should have been renewed.
    pub end: Timestamp,
    /// The time after which the server is to be asked again.
    pub retry_after: Duration,
}

impl RenewalWindow {
    /// The shortest and the longest time after which a server is asked again, whatever it says.
    const INTERVALS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(24 * 60 * 60));

    /// The interval for a server that makes no suggestions.
    pub const WITHOUT: Duration = Self::INTERVALS.1;

    /// The interval after a failure.
    pub const FAILED: Duration = Duration::from_secs(6 * 60 * 60);

    /// Returns the time of the renewal of a certificate that expires at `not_after`: `planned`, if it is within the window,
    /// or else a random time within it. `None` if the window is none.
    #[must_use]
    pub fn renewal_at(&self, planned: Timestamp, not_after: Timestamp, random: u32) -> Option<Timestamp> {
        if self.start >= self.end || self.start >= not_after {
            return None;
        }
        if (self.start..self.end).contains(&planned) {
            return Some(planned);
        }
        let length = (self.end.min(not_after) - self.start).num_milliseconds();
        let offset = i128::from(length) * i128::from(random) / i128::from(u32::MAX);
        Some(self.start + TimeDelta::milliseconds(i64::try_from(offset).unwrap_or(length)))
    }

    /// Returns the time after which the server is asked again, within limits.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.retry_after.clamp(Self::INTERVALS.0, Self::INTERVALS.1)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn at(days: i64) -> Timestamp {
        DateTime::UNIX_EPOCH + TimeDelta::days(days)
    }

    fn window(start: i64, end: i64) -> RenewalWindow {
        RenewalWindow { start: at(start), end: at(end), retry_after: Duration::ZERO }
    }

    #[test]
    fn a_planned_time_within_the_window_stays() {
        assert_eq!(window(50, 70).renewal_at(at(60), at(90), 0), Some(at(60)));
        for (random, expected) in [(0, 10), (u32::MAX / 2 + 1, 15), (u32::MAX, 20)] {
            let chosen = window(10, 20).renewal_at(at(60), at(90), random).unwrap();
            assert!((chosen - at(expected)).abs() < TimeDelta::seconds(1), "{chosen}");
        }
    }

    #[test]
    fn a_window_ends_with_the_certificate_at_the_latest() {
        let chosen = window(80, 100).renewal_at(at(60), at(90), u32::MAX);
        assert_eq!(chosen, Some(at(90)));
        for none in [window(20, 20), window(20, 10), window(90, 100)] {
            assert_eq!(none.renewal_at(at(60), at(90), 0), None, "{none:?}");
        }
    }

    #[test]
    fn a_server_is_asked_again_between_a_minute_and_a_day() {
        for (seconds, expected) in [(0, 60), (3_600, 3_600), (1_000_000, 86_400)] {
            let retry_after = Duration::from_secs(seconds);
            let window = RenewalWindow { retry_after, ..window(1, 2) };
            assert_eq!(window.interval(), Duration::from_secs(expected));
        }
    }
}
