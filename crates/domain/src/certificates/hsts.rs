//! HTTP Strict Transport Security (RFC 6797): browsers use HTTPS for a domain from then on.

use crate::{applications::Hostname, ids::ApplicationId, value::InvalidValue};

/// The time for which browsers remember to use HTTPS, in seconds. With 0 they forget it.
///
/// ```
/// use launchway_domain::certificates::HstsMaxAge;
///
/// assert_eq!(HstsMaxAge::default().get(), 180 * 24 * 60 * 60);
/// assert!(HstsMaxAge::try_from(0).is_ok());
/// assert!(HstsMaxAge::try_from(i64::from(HstsMaxAge::MOST) + 1).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HstsMaxAge(u32);

impl HstsMaxAge {
    /// The longest: two years.
    pub const MOST: u32 = 2 * 365 * 24 * 60 * 60;

    /// Returns the number of seconds.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for HstsMaxAge {
    /// Half a year: long enough for visitors who come now and then, and not for ever after a mistake.
    fn default() -> Self {
        Self(180 * 24 * 60 * 60)
    }
}

impl TryFrom<i64> for HstsMaxAge {
    type Error = InvalidValue;

    fn try_from(raw: i64) -> Result<Self, InvalidValue> {
        match u32::try_from(raw) {
            Ok(seconds @ 0..=Self::MOST) => Ok(Self(seconds)),
            _ => Err(InvalidValue::number("between 0 and 63072000 seconds", raw)),
        }
    }
}

/// The HSTS policy of a domain. It is sent over HTTPS only, and not for subdomains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HstsPolicy {
    /// The domain.
    pub domain: Hostname,
    /// The application that has the domain.
    pub application_id: ApplicationId,
    /// The `max-age`.
    pub max_age: HstsMaxAge,
}
