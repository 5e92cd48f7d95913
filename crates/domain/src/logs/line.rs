//! A line of a log.

use std::str::FromStr;

use uuid::Uuid;

use crate::{
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId, InvalidId},
    value::InvalidValue,
};

/// The level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// An action of Launchway.
    Info,
    /// A failure that was recovered from.
    Warn,
    /// The reason of a failure.
    Error,
    /// The output of a build.
    Build,
    /// The output of a container.
    Runtime,
}

impl Level {
    /// Every level.
    pub const ALL: [Self; 5] = [Self::Info, Self::Warn, Self::Error, Self::Build, Self::Runtime];

    /// Returns the name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Build => "build",
            Self::Runtime => "runtime",
        }
    }
}

impl FromStr for Level {
    type Err = InvalidValue;

    fn from_str(raw: &str) -> Result<Self, InvalidValue> {
        let name = raw.trim();
        Self::ALL
            .into_iter()
            .find(|level| level.as_str().eq_ignore_ascii_case(name))
            .ok_or_else(|| InvalidValue::text("one of info, warn, error, build or runtime", raw))
    }
}

impl TryFrom<String> for Level {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        raw.parse()
    }
}

/// A line to append. Its text is [clean](super::clean) and [masked](super::Masker).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLine {
    /// The application.
    pub application_id: ApplicationId,
    /// The deployment.
    pub deployment_id: DeploymentId,
    /// The level of the line.
    pub level: Level,
    /// The text of the line.
    pub text: String,
    /// When it was written.
    pub at: Timestamp,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its number in its application's log, counted from 1 consecutively.
    pub number: i64,
    /// The application.
    pub application_id: ApplicationId,
    /// The deployment.
    pub deployment_id: DeploymentId,
    /// The level of the line.
    pub level: Level,
    /// The text of the line.
    pub text: String,
    /// When it was written.
    pub at: Timestamp,
}

impl LogLine {
    /// Returns the id of the line.
    #[must_use]
    pub fn id(&self) -> LogLineId {
        LogLineId::of(self.application_id, self.number, self.at)
    }
}

/// Identifies a line. It contains the line's number, so that no lookup is needed.
///
/// A UUID of version 7: the time in milliseconds, a mark of the application, the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogLineId(Uuid);

impl LogLineId {
    const NUMBER_BITS: u32 = 40;

    fn of(application: ApplicationId, number: i64, at: Timestamp) -> Self {
        let milliseconds = u64::try_from(at.timestamp_millis()).unwrap_or_default();
        let mark = mark_of(application);
        let number = u128::from(number.unsigned_abs()) & ((1 << Self::NUMBER_BITS) - 1);
        let mut value = u128::from(milliseconds) << 80;
        value |= 0x7 << 76;
        value |= (mark >> 22) << 64;
        value |= 0b10 << 62;
        value |= (mark & 0x3f_ffff) << Self::NUMBER_BITS;
        value |= number;
        Self(Uuid::from_u128(value))
    }

    /// Returns the line's number in the log of `application`; `None` if it belongs to another one.
    #[must_use]
    pub fn number_in(self, application: ApplicationId) -> Option<i64> {
        let value = self.0.as_u128();
        let mark = ((value >> 64) & 0xfff) << 22 | (value >> Self::NUMBER_BITS) & 0x3f_ffff;
        let number = value & ((1 << Self::NUMBER_BITS) - 1);
        (mark == mark_of(application)).then(|| i64::try_from(number).ok()).flatten()
    }
}

/// Returns 34 bits that differ from application to application: the last ones of a version 7 id are random.
fn mark_of(application: ApplicationId) -> u128 {
    Uuid::from(application).as_u128() & ((1 << 34) - 1)
}

impl From<LogLineId> for Uuid {
    fn from(id: LogLineId) -> Self {
        id.0
    }
}

impl std::str::FromStr for LogLineId {
    type Err = InvalidId;

    fn from_str(raw: &str) -> Result<Self, InvalidId> {
        Uuid::try_parse(raw.trim()).map(Self).map_err(|_not_a_uuid| InvalidId)
    }
}

impl std::fmt::Display for LogLineId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(application: u128, number: i64, at: i64) -> LogLine {
        LogLine {
            number,
            application_id: Uuid::from_u128(application).into(),
            deployment_id: Uuid::nil().into(),
            level: Level::Info,
            text: String::new(),
            at: Timestamp::from_timestamp_millis(at).unwrap(),
        }
    }

    #[test]
    fn levels_are_read_as_they_are_written() {
        for level in Level::ALL {
            assert_eq!(Level::try_from(level.as_str().to_owned()), Ok(level));
        }
        assert!(Level::try_from("debug".to_owned()).is_err());
    }

    #[test]
    fn an_id_of_another_application_has_no_number() {
        let id = line(1, 7, 0).id();
        assert_eq!(id.number_in(Uuid::from_u128(1).into()), Some(7));
        assert_eq!(id.number_in(Uuid::from_u128(2).into()), None);
    }

    proptest! {
        #[test]
        fn an_id_is_a_uuid_of_version_7_that_holds_its_number(
            application: u128, number in 1i64..1 << 40, at in 0i64..1 << 42,
        ) {
            let line = line(application, number, at);
            let id = Uuid::from(line.id());
            prop_assert_eq!(id.get_version_num(), 7);
            prop_assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
            let read: LogLineId = id.to_string().parse().unwrap();
            prop_assert_eq!(read.number_in(line.application_id), Some(number));
        }

        #[test]
        fn lines_of_one_moment_have_different_ids(application: u128, number in 1i64..1 << 39) {
            prop_assert_ne!(line(application, number, 0).id(), line(application, number + 1, 0).id());
        }
    }
}
