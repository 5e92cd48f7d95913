//! The preview settings of an application.

use chrono::TimeDelta;

use crate::{
    applications::VariableNames, clock::Timestamp, ids::ApplicationId, secret::Sealed, value::InvalidValue,
};

/// The maximum number of previews of an application that run at once.
///
/// ```
/// use launchway_domain::previews::PreviewLimit;
///
/// assert_eq!(PreviewLimit::default().get(), 5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviewLimit(u16);

impl PreviewLimit {
    /// The largest limit.
    pub const MOST: u16 = 50;

    /// Returns the number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }
}

impl Default for PreviewLimit {
    fn default() -> Self {
        Self(5)
    }
}

impl TryFrom<i64> for PreviewLimit {
    type Error = InvalidValue;

    fn try_from(raw: i64) -> Result<Self, InvalidValue> {
        match u16::try_from(raw) {
            Ok(limit @ 1..=Self::MOST) => Ok(Self(limit)),
            _ => Err(InvalidValue::number("between 1 and 50", raw)),
        }
    }
}

/// The time to live of a preview after the last change of its request, in hours.
///
/// ```
/// use launchway_domain::previews::PreviewLifetime;
///
/// assert_eq!(PreviewLifetime::default().duration(), chrono::TimeDelta::days(7));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviewLifetime(u16);

impl PreviewLifetime {
    /// The longest time, in hours: 90 days.
    pub const MOST: u16 = 90 * 24;

    /// Returns the hours.
    #[must_use]
    pub fn hours(self) -> u16 {
        self.0
    }

    /// Returns the time.
    #[must_use]
    pub fn duration(self) -> TimeDelta {
        TimeDelta::hours(self.0.into())
    }
}

impl Default for PreviewLifetime {
    fn default() -> Self {
        Self(7 * 24)
    }
}

impl TryFrom<i64> for PreviewLifetime {
    type Error = InvalidValue;

    fn try_from(raw: i64) -> Result<Self, InvalidValue> {
        match u16::try_from(raw) {
            Ok(hours @ 1..=Self::MOST) => Ok(Self(hours)),
            _ => Err(InvalidValue::number("between 1 and 2160", raw)),
        }
    }
}

/// The preview settings of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewSettings {
    /// The application.
    pub application: ApplicationId,
    /// True if its requests get previews.
    pub is_enabled: bool,
    /// The maximum number of previews at once.
    pub limit: PreviewLimit,
    /// The time to live of a preview.
    pub lifetime: PreviewLifetime,
    /// The variables of the application that its previews have too.
    pub shared: VariableNames,
    /// True if previews run the commands of the application before and after a deployment.
    pub runs_commands: bool,
    /// The build variables of its previews; see [`PreviewSettings::associated_data`].
    pub build_variables: Sealed,
    /// The environment variables of its previews.
    pub environment_variables: Sealed,
    /// When they were last changed.
    pub updated_at: Timestamp,
}

impl PreviewSettings {
    /// Returns the associated data (AEAD) of a sealed value: with any other, it cannot be decrypted.
    #[must_use]
    pub fn associated_data(application: ApplicationId, column: &str) -> String {
        format!("preview_settings.{column}:{application}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_1_and_50_previews_run_at_once() {
        for (number, fits) in [(-1, false), (0, false), (1, true), (50, true), (51, false), (65_537, false)] {
            assert_eq!(PreviewLimit::try_from(number).is_ok(), fits, "{number}");
        }
    }

    #[test]
    fn a_preview_lives_between_an_hour_and_90_days() {
        for (hours, fits) in
            [(-1, false), (0, false), (1, true), (2160, true), (2161, false), (65_537, false)]
        {
            assert_eq!(PreviewLifetime::try_from(hours).is_ok(), fits, "{hours}");
        }
        assert_eq!(PreviewLifetime::try_from(2160).unwrap().duration(), TimeDelta::days(90));
    }
}
