//! The time since the last change of a container's state, from the engine's description of it.

use std::time::{Duration, Instant, SystemTime};

/// The allowed difference between two clocks.
const SLACK: Duration = Duration::from_secs(1);
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// A point in time by the system clock, which may be set, and by a monotonic one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    wall: SystemTime,
    steady: Instant,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self { wall: SystemTime::now(), steady: Instant::now() }
    }

    /// Returns the time since an earlier point; the longer one if the clocks disagree.
    fn since(self, earlier: Self) -> Duration {
        let wall = self.wall.duration_since(earlier.wall).unwrap_or_default();
        wall.max(self.steady.duration_since(earlier.steady))
    }
}

/// Returns whether a container has neither been started nor ended between two points in time, by the status
/// in a list at the later one: `Up 3 minutes`, or `Exited (1) 2 hours ago`.
///
/// A container that was started after `seen` cannot have been up for longer than the time since then.
pub(super) fn is_unchanged(status: &str, seen: Moment, now: Moment) -> bool {
    let lasted = match status.strip_prefix("Up ") {
        Some(up) => at_least(up.split(" (").next().unwrap_or_default()),
        None => {
            let ago = status.split_once(") ").and_then(|(_, ago)| ago.strip_suffix(" ago"));
            ago.and_then(at_least)
        }
    };
    lasted.is_some_and(|lasted| lasted > now.since(seen) + SLACK)
}

/// Returns the shortest time that the engine rounds to these words.
fn at_least(words: &str) -> Option<Duration> {
    let seconds = match words {
        "Less than a second" => 0,
        "1 second" => 1,
        "About a minute" => MINUTE,
        "About an hour" => HOUR,
        words => {
            let (number, unit) = words.split_once(' ')?;
            let number: u64 = number.parse().ok()?;
            // From hours on it is rounded to the nearest.
            let hours = |hours: u64| (number * hours * HOUR).saturating_sub(HOUR / 2);
            match unit {
                "seconds" => number,
                "minutes" => number * MINUTE,
                "hours" => hours(1),
                "days" => hours(24),
                "weeks" => hours(7 * 24),
                "months" => hours(30 * 24),
                "years" => hours(365 * 24),
                _ => return None,
            }
        }
    };
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_the_shortest_time_they_mean() {
        for (words, seconds) in [
            ("Less than a second", Some(0)),
            ("1 second", Some(1)),
            ("59 seconds", Some(59)),
            ("About a minute", Some(60)),
            ("2 minutes", Some(120)),
            ("About an hour", Some(3600)),
            ("2 hours", Some(5400)),
            ("3 days", Some(3 * 24 * 3600 - 1800)),
            ("5 weeks", Some(5 * 7 * 24 * 3600 - 1800)),
            ("a while", None),
            ("", None),
        ] {
            assert_eq!(at_least(words), seconds.map(Duration::from_secs), "{words}");
        }
    }

    #[test]
    fn a_container_is_unchanged_if_it_is_up_for_longer() {
        let now = Moment::now();
        let before = |seconds| Moment {
            wall: now.wall - Duration::from_secs(seconds),
            steady: now.steady - Duration::from_secs(seconds),
        };
        for (status, seconds, expected) in [
            ("Up 12 seconds", 10, true),
            ("Up 10 seconds", 10, false),
            ("Up 3 minutes (healthy)", 10, true),
            ("Up 3 minutes (health: starting)", 200, false),
            ("Up Less than a second", 0, false),
            ("Exited (137) 2 hours ago", 60, true),
            ("Exited (0) 5 seconds ago", 10, false),
            ("Created", 10, false),
            ("Up what?", 10, false),
        ] {
            assert_eq!(is_unchanged(status, before(seconds), now), expected, "{status}");
        }
    }

    #[test]
    fn a_clock_that_was_set_hides_no_restart() {
        let now = Moment::now();
        let second = Duration::from_secs(1);
        // Set back by an hour: ten seconds have passed all the same.
        let seen = Moment { wall: now.wall + 3600 * second, steady: now.steady - 10 * second };
        assert!(!is_unchanged("Up 8 seconds", seen, now));
        // Set forward by an hour, by which the engine counts as well.
        let seen = Moment { wall: now.wall - 3610 * second, steady: now.steady - 10 * second };
        assert!(!is_unchanged("Up About an hour", seen, now));
    }
}
