//! Range requests (RFC 9110, section 14).
//!
//! Only single ranges: a request for several gets the whole file, as the standard allows.

use std::ops::Range;

use http::HeaderValue;

/// The part of a file that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// The whole file.
    Whole,
    /// These bytes, at least one.
    Bytes(Range<u64>),
    /// Nothing: the file does not have these bytes.
    Unsatisfiable,
}

impl Part {
    /// Evaluates the header `Range` for a file of `size` bytes. Anything but one valid byte range is
    /// ignored.
    pub(super) fn of(header: Option<&HeaderValue>, size: u64) -> Self {
        let asked = header.and_then(|value| value.to_str().ok()).and_then(Asked::parse);
        let bytes = match asked {
            None => return Self::Whole,
            Some(Asked::Last(count)) => size.saturating_sub(count)..size,
            Some(Asked::From(first)) => first..size,
            Some(Asked::Between(first, last)) => first..size.min(last.saturating_add(1)),
        };
        if bytes.is_empty() { Self::Unsatisfiable } else { Self::Bytes(bytes) }
    }
}

enum Asked {
    Last(u64),
    From(u64),
    Between(u64, u64),
}

impl Asked {
    fn parse(header: &str) -> Option<Self> {
        let (unit, spec) = header.split_once('=')?;
        let (first, last) = spec.trim().split_once('-')?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        match (first.trim_end(), last.trim_start()) {
            ("", last) => Some(Self::Last(number(last)?)),
            (first, "") => Some(Self::From(number(first)?)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::Between(first, last))
            }
        }
    }
}

/// Parses a number. One that is too large becomes the largest: no file is as long.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_means_bytes_of_the_file_or_nothing() {
        for (header, size, expected) in [
            ("bytes=0-0", 10, Part::Bytes(0..1)),
            ("bytes=0-9", 10, Part::Bytes(0..10)),
            ("bytes=0-10", 10, Part::Bytes(0..10)),
            ("bytes=9-9", 10, Part::Bytes(9..10)),
            ("bytes=9-", 10, Part::Bytes(9..10)),
            ("bytes=10-", 10, Part::Unsatisfiable),
            ("bytes=10-10", 10, Part::Unsatisfiable),
            ("bytes=0-", 10, Part::Bytes(0..10)),
            ("bytes=-1", 10, Part::Bytes(9..10)),
            ("bytes=-10", 10, Part::Bytes(0..10)),
            ("bytes=-11", 10, Part::Bytes(0..10)),
            ("bytes=-0", 10, Part::Unsatisfiable),
            ("bytes=0-", 0, Part::Unsatisfiable),
            ("bytes=0-0", 0, Part::Unsatisfiable),
            ("bytes=-1", 0, Part::Unsatisfiable),
            ("BYTES=1-2", 10, Part::Bytes(1..3)),
            ("bytes= 1-2 ", 10, Part::Bytes(1..3)),
            ("bytes=0-18446744073709551615", 10, Part::Bytes(0..10)),
            ("bytes=1-99999999999999999999999", 10, Part::Bytes(1..10)),
            ("bytes=99999999999999999999999-", 10, Part::Unsatisfiable),
            ("bytes=-99999999999999999999999", 10, Part::Bytes(0..10)),
            ("bytes=2-1", 10, Part::Whole),
            ("bytes=0-1,3-4", 10, Part::Whole),
            ("bytes=0-1, -1", 10, Part::Whole),
            ("bytes=-", 10, Part::Whole),
            ("bytes=", 10, Part::Whole),
            ("bytes=a-b", 10, Part::Whole),
            ("bytes=+1-2", 10, Part::Whole),
            ("bytes=1--2", 10, Part::Whole),
            ("bytes=0x1-", 10, Part::Whole),
            ("bytes 0-1", 10, Part::Whole),
            ("lines=0-1", 10, Part::Whole),
            ("", 10, Part::Whole),
        ] {
            assert_eq!(
                Part::of(Some(&HeaderValue::from_static(header)), size),
                expected,
                "{header} of {size}"
            );
        }
        assert_eq!(Part::of(None, 10), Part::Whole);
    }
}
