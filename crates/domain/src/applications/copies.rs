//! The number of copies of an application.

use crate::value::InvalidValue;

/// The number of copies of an application that run at once: `replicas` in the API.
///
/// A copy is one container of the application. Traffic is balanced over all of them. In the code a *replica* is
/// something else: a server of Launchway (see [`crate::replicas`]).
///
/// ```
/// use launchway_domain::applications::CopyCount;
///
/// assert_eq!(CopyCount::default().get(), 1);
/// let refused = CopyCount::try_from(101_i64).unwrap_err();
/// assert_eq!(refused.to_string(), "must be between 1 and 100, got 101");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CopyCount(u16);

impl CopyCount {
    /// One copy.
    pub const ONE: Self = Self(1);
    /// The most copies of an application.
    pub const MOST: u16 = 100;

    /// Returns the number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }
}

impl Default for CopyCount {
    fn default() -> Self {
        Self::ONE
    }
}

impl TryFrom<i64> for CopyCount {
    type Error = InvalidValue;

    fn try_from(raw: i64) -> Result<Self, InvalidValue> {
        match u16::try_from(raw) {
            Ok(count @ 1..=Self::MOST) => Ok(Self(count)),
            _ => Err(InvalidValue::number("between 1 and 100", raw)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_between_1_and_100_copies() {
        for (number, fits) in [(-1, false), (0, false), (1, true), (100, true), (101, false), (65_537, false)]
        {
            assert_eq!(CopyCount::try_from(number).is_ok(), fits, "{number}");
        }
    }
}
