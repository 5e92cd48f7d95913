//! Timestamps and durations in the user's notation.

use std::{str::FromStr, time::Duration};

use chrono::{DateTime, NaiveDate, SecondsFormat, TimeDelta, Utc};

/// Formats the age of a timestamp, in one unit.
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

/// A duration: `90s`, `10m`, `2h`, `3d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a duration is a number with a unit, such as 90s, 10m, 2h or 3d".to_owned();
        let unit = text.chars().last().ok_or_else(wrong)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        let count: u32 = text[..text.len() - 1].parse().map_err(|_no_number| wrong())?;
        Ok(Self(Duration::from_secs(u64::from(count) * seconds)))
    }
}

/// A point in time: a duration ago, a timestamp, or a date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// A duration ago.
    Ago(Span),
    /// At this timestamp.
    At(String),
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(span) = text.parse() {
            return Ok(Self::Ago(span));
        }
        let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").map(|day| format!("{day}T00:00:00Z"));
        let moment = day.unwrap_or_else(|_no_day| text.to_owned());
        match DateTime::parse_from_rfc3339(&moment) {
            Ok(_) => Ok(Self::At(moment)),
            Err(_) => Err("a time is a duration such as 10m or 2h, a timestamp such as \
                           2026-01-31T12:00:00Z, or a date such as 2026-01-31"
                .to_owned()),
        }
    }
}

impl Since {
    /// Returns the timestamp in the format of the API.
    #[expect(clippy::disallowed_methods, reason = "people mean the time of the machine that they sit at")]
    pub(crate) fn moment(&self) -> String {
        match self {
            Self::At(moment) => moment.clone(),
            Self::Ago(Span(duration)) => {
                let passed = TimeDelta::from_std(*duration).unwrap_or(TimeDelta::MAX);
                let then = Utc::now().checked_sub_signed(passed).unwrap_or(DateTime::UNIX_EPOCH);
                // No log is older, and years before the first have no timestamp.
                then.max(DateTime::UNIX_EPOCH).to_rfc3339_opts(SecondsFormat::Micros, true)
            }
        }
    }
}

/// Formats a timestamp of the API to the second, in UTC.
pub(crate) fn short(moment: &str) -> String {
    match DateTime::parse_from_rfc3339(moment) {
        Ok(then) => then.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true),
        Err(_) => moment.to_owned(),
    }
}

/// Returns the seconds between two timestamps of the API, with one decimal digit.
pub(crate) fn seconds_between(from: &str, to: &str) -> String {
    let parsed = (DateTime::parse_from_rfc3339(from), DateTime::parse_from_rfc3339(to));
    match parsed {
        (Ok(from), Ok(to)) => format!("{:.1} s", (to - from).as_seconds_f64().max(0.0)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_a_unit() {
        for (text, seconds) in [("90s", 90), ("10m", 600), ("2h", 7200), ("3d", 259_200), ("0s", 0)] {
            assert_eq!(text.parse(), Ok(Span(Duration::from_secs(seconds))), "{text}");
        }
        for text in ["", "10", "m", "-1m", "1.5h", "10 m", "9999999999s", "5\u{e9}"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn moments_are_ago_or_timestamps_or_days() {
        assert_eq!("10m".parse(), Ok(Since::Ago(Span(Duration::from_secs(600)))));
        assert_eq!("2026-01-31".parse(), Ok(Since::At("2026-01-31T00:00:00Z".into())));
        let moment = "2026-01-31T12:00:00+01:00";
        assert_eq!(moment.parse(), Ok(Since::At(moment.into())));
        assert!("yesterday".parse::<Since>().is_err() && "2026-02-31".parse::<Since>().is_err());
        for long in ["4294967295d", "90000000d", "800000d"] {
            assert_eq!(long.parse::<Since>().unwrap().moment(), "1970-01-01T00:00:00.000000Z", "{long}");
        }
    }

    #[test]
    fn moments_are_shown_to_the_second() {
        assert_eq!(short("2026-01-31T12:00:00.654321Z"), "2026-01-31T12:00:00Z");
        assert_eq!(seconds_between("2026-01-31T12:00:00Z", "2026-01-31T12:01:04.260000Z"), "64.3 s");
        assert_eq!(seconds_between("2026-01-31T12:00:01Z", "2026-01-31T12:00:00Z"), "0.0 s");
    }

    #[test]
    fn timestamps_are_shown_in_one_unit() {
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
