//! Moments as people say them.

use chrono::{DateTime, TimeDelta, Utc};

/// How long ago a moment of the API was, in one unit.
#[expect(clippy::disallowed_methods, reason = "people are shown the time of the machine that they sit at")]
pub(crate) fn ago(moment: &str) -> String {
    ago_at(moment, Utc::now())
}

fn ago_at(moment: &str, now: DateTime<Utc>) -> String {
    let Ok(then) = DateTime::parse_from_rfc3339(moment) else { return moment.to_owned() };
    let passed = now.signed_duration_since(then).max(TimeDelta::zero());
    let (count, unit) = match passed {
        _ if passed.num_minutes() < 1 => (passed.num_seconds(), "second"),
        _ if passed.num_hours() < 1 => (passed.num_minutes(), "minute"),
        _ if passed.num_days() < 2 => (passed.num_hours(), "hour"),
        _ => (passed.num_days(), "day"),
    };
    match count {
        1 => format!("1 {unit} ago"),
        count => format!("{count} {unit}s ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_in_one_unit() {
        let now = DateTime::parse_from_rfc3339("2026-01-31T12:00:00Z").unwrap().to_utc();
        for (moment, words) in [
            ("2026-01-31T11:59:59.500000Z", "0 seconds ago"),
            ("2026-01-31T11:59:59Z", "1 second ago"),
            ("2026-01-31T11:59:01Z", "59 seconds ago"),
            ("2026-01-31T11:59:00Z", "1 minute ago"),
            ("2026-01-31T11:00:00Z", "1 hour ago"),
            ("2026-01-29T12:00:01Z", "47 hours ago"),
            ("2026-01-29T12:00:00Z", "2 days ago"),
            ("2026-01-31T12:00:05Z", "0 seconds ago"),
            ("someday", "someday"),
        ] {
            assert_eq!(ago_at(moment, now), words);
        }
    }
}
