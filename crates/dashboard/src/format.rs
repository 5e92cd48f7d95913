//! Values as pages show them.

use std::fmt;

use chrono::{SecondsFormat, TimeDelta};
use launchway_domain::clock::Timestamp;

/// A time, as an element that a script may show in the language and the time zone of the visitor.
pub(crate) struct Time(pub(crate) Timestamp);

impl Time {
    /// Returns the machine-readable form.
    pub(crate) fn machine(&self) -> String {
        self.0.to_rfc3339_opts(SecondsFormat::Secs, true)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} UTC", self.0.format("%Y-%m-%d %H:%M"))
    }
}

/// Returns a duration in its largest two units.
pub(crate) fn duration(length: TimeDelta) -> String {
    let seconds = length.num_seconds().max(0);
    match seconds {
        0..10 => format!("{seconds}.{} s", length.subsec_millis().max(0) / 100),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Returns a number of bytes in its largest unit.
pub(crate) fn bytes(amount: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut unit, mut whole, mut rest) = (0, amount, 0);
    while whole >= 1024 && unit + 1 < UNITS.len() {
        (whole, rest, unit) = (whole / 1024, whole % 1024, unit + 1);
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    if unit == 0 || whole >= 100 {
        format!("{whole} {name}")
    } else {
        format!("{whole}.{} {name}", rest * 10 / 1024)
    }
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// True if it is between backticks.
    pub(crate) is_code: bool,
    pub(crate) text: &'a str,
}

/// Splits a text at its backticks. A text in which one is left open is one part.
pub(crate) fn parts(text: &str) -> Vec<Part<'_>> {
    if !text.matches('`').count().is_multiple_of(2) {
        return vec![Part { is_code: false, text }];
    }
    let numbered = text.split('`').enumerate();
    numbered.map(|(number, text)| Part { is_code: !number.is_multiple_of(2), text }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_largest_unit() {
        for (amount, text) in
            [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 30, "1.0 GiB"), (200 << 20, "200 MiB")]
        {
            assert_eq!(bytes(amount), text);
        }
    }

    #[test]
    fn backticks_enclose_code() {
        let shown = |text| parts(text).iter().map(|part| (part.is_code, part.text)).collect::<Vec<_>>();
        assert_eq!(shown("plain"), [(false, "plain")]);
        assert_eq!(shown("a `b` c"), [(false, "a "), (true, "b"), (false, " c")]);
        assert_eq!(shown("`b`"), [(false, ""), (true, "b"), (false, "")]);
        assert_eq!(shown("a `b` `c"), [(false, "a `b` `c")]);
    }

    #[test]
    fn durations_have_two_units() {
        for (seconds, text) in [
            (-5, "0.0 s"),
            (9, "9.0 s"),
            (59, "59 s"),
            (60, "1 min 0 s"),
            (3599, "59 min 59 s"),
            (3600, "1 h 0 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(TimeDelta::seconds(seconds)), text);
        }
        assert_eq!(duration(TimeDelta::milliseconds(940)), "0.9 s");
    }
}
