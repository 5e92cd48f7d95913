//! The JSON of timestamps: RFC 3339, UTC, microseconds, `Z`.

use chrono::{Datelike, Timelike};
use launchway_domain::clock::Timestamp;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// A timestamp of a response: `2026-01-31T12:00:00.000000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(value_type = String, format = DateTime, example = "2026-01-31T12:00:00.000000Z")]
pub(crate) struct Moment(Timestamp);

impl From<Timestamp> for Moment {
    fn from(moment: Timestamp) -> Self {
        Self(moment)
    }
}

impl Serialize for Moment {
    /// Written digit by digit: a response contains a dozen timestamps, and general formatting would cost
    /// more than the rest of it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let moment = self.0;
        put(&mut text[0..4], moment.year().clamp(0, 9999).unsigned_abs());
        put(&mut text[5..7], moment.month());
        put(&mut text[8..10], moment.day());
        put(&mut text[11..13], moment.hour());
        put(&mut text[14..16], moment.minute());
        put(&mut text[17..19], moment.second());
        put(&mut text[20..26], moment.timestamp_subsec_micros().min(999_999));
        match std::str::from_utf8(&text) {
            Ok(text) => serializer.serialize_str(text),
            Err(error) => Err(serde::ser::Error::custom(error)),
        }
    }
}

fn put(digits: &mut [u8], mut number: u32) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, SecondsFormat};

    use super::*;

    #[test]
    fn a_moment_is_written_as_rfc_3339_in_utc_with_microseconds() {
        for micros in [0, 1, 1_700_000_000_123_456, 951_782_399_999_999, 253_402_300_799_999_999] {
            let moment = DateTime::from_timestamp_micros(micros).unwrap();
            let expected = moment.to_rfc3339_opts(SecondsFormat::Micros, true);
            assert_eq!(serde_json::to_value(Moment(moment)).unwrap(), expected);
        }
    }
}
