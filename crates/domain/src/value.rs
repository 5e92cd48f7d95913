//! Value types: validated on construction, with one error type.
//!
//! **Invariant:** a value type is constructed only by its validating conversion (`TryFrom`), so that every
//! value of the type is valid and is not checked again.

use std::fmt::Display;

/// The error of a refused value: the rule, and the value.
///
/// Displays without the name of the field, which only the caller knows: "must be …, got …".
///
/// ```
/// use launchway_domain::value::InvalidValue;
///
/// let refused = InvalidValue::number("between 1 and 65535", 0);
/// assert_eq!(refused.to_string(), "must be between 1 and 65535, got 0");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be {allowed}{}", got.as_deref().map(|got| format!(", got {got}")).unwrap_or_default())]
pub struct InvalidValue {
    allowed: &'static str,
    got: Option<String>,
}

impl InvalidValue {
    /// Creates the error for a text, quoted and shortened so that it fits a sentence.
    #[must_use]
    pub fn text(allowed: &'static str, got: &str) -> Self {
        Self { allowed, got: Some(quoted(got)) }
    }

    /// Creates the error for a number.
    #[must_use]
    pub fn number(allowed: &'static str, got: impl Display) -> Self {
        Self { allowed, got: Some(got.to_string()) }
    }

    /// Creates the error for a secret, which no message may repeat.
    #[must_use]
    pub fn secret(allowed: &'static str) -> Self {
        Self { allowed, got: None }
    }
}

/// The number of characters of a refused text that a message repeats.
const QUOTED_CHARACTERS: usize = 40;

fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTED_CHARACTERS).flat_map(char::escape_debug).collect();
    if text.chars().count() > QUOTED_CHARACTERS {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// Implements validation and conversions for a text type.
///
/// The type is a tuple struct around a `String`; `$rule` is a function `fn(String) -> Result<String,
/// InvalidValue>` that returns the text as it is to be stored.
macro_rules! text_value {
    ($(#[$doc:meta])* $name:ident, $rule:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Returns the text as it is stored.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::value::InvalidValue;

            fn try_from(raw: String) -> Result<Self, Self::Error> {
                let rule: fn(String) -> Result<String, $crate::value::InvalidValue> = $rule;
                rule(raw).map(Self)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::value::InvalidValue;

            fn from_str(raw: &str) -> Result<Self, Self::Err> {
                raw.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
pub(crate) use text_value;

/// Implements `FromStr` by the conversion from a `String`.
macro_rules! parsed_by_conversion {
    ($($name:ty),+ $(,)?) => {
        $(impl std::str::FromStr for $name {
            type Err = $crate::value::InvalidValue;

            fn from_str(raw: &str) -> Result<Self, Self::Err> {
                raw.to_owned().try_into()
            }
        })+
    };
}
pub(crate) use parsed_by_conversion;

/// Implements `FromStr` by the names of all variants.
#[cfg(any(feature = "extensions", feature = "webhooks"))]
macro_rules! parsed_by_name {
    ($name:ty, $what:literal) => {
        impl std::str::FromStr for $name {
            type Err = $crate::value::InvalidValue;

            fn from_str(raw: &str) -> Result<Self, Self::Err> {
                let known = <$name>::ALL.into_iter().find(|known| known.as_str() == raw);
                known.ok_or_else(|| $crate::value::InvalidValue::text($what, raw))
            }
        }
    };
}
#[cfg(any(feature = "extensions", feature = "webhooks"))]
pub(crate) use parsed_by_name;

/// Defines an enum with a name for each variant, by which it is stored and shown, and its conversions.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident, $what:literal, { $($variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $(#[doc = concat!("`", $text, "`.")] $variant),+ }

        impl $name {
            /// All variants, in the order of the API.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the name used in the API.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::value::InvalidValue;

            fn from_str(raw: &str) -> Result<Self, Self::Err> {
                let known = Self::ALL.iter().find(|known| known.as_str() == raw).copied();
                known.ok_or_else(|| $crate::value::InvalidValue::text($what, raw))
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::value::InvalidValue;

            fn try_from(raw: String) -> Result<Self, Self::Error> {
                raw.parse()
            }
        }
    };
}
pub(crate) use named;

/// Trims `raw` and returns it if it has `min` to `max` visible characters.
pub(crate) fn plain_text(
    raw: &str,
    min: usize,
    max: usize,
    allowed: &'static str,
) -> Result<String, InvalidValue> {
    let text = raw.trim();
    let length = text.chars().count();
    if (min..=max).contains(&length) && !text.chars().any(is_invisible) {
        Ok(text.to_owned())
    } else {
        Err(InvalidValue::text(allowed, text))
    }
}

/// Returns whether this is a control character, or one that changes how the text around it is shown: with
/// them one name can look like another. Joiners are not among them; scripts and emoji need them.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every variant is parsed from its name, and other text is refused.
    fn is_parsed<T: std::str::FromStr<Err = InvalidValue> + PartialEq + std::fmt::Debug>(
        named: impl IntoIterator<Item = (T, &'static str)>,
    ) {
        for (value, name) in named {
            assert_eq!(name.parse(), Ok(value), "{name}");
        }
        assert!("nothing of the kind".parse::<T>().is_err());
    }

    #[test]
    fn enums_are_parsed_from_their_names() {
        use crate::{applications::*, deployments::*, extensions::*, jobs::*, logs::*, webhooks::*};
        is_parsed(BuildPack::ALL.map(|one| (one, one.as_str())));
        is_parsed([ProxyServer::default()].map(|one| (one, one.as_str())));
        is_parsed([ApplicationState::Running].map(|one| (one, one.as_str())));
        is_parsed(DeploymentState::ALL.map(|one| (one, one.as_str())));
        is_parsed([ContainerState::Exited].map(|one| (one, one.as_str())));
        is_parsed(JobState::ALL.map(|one| (one, one.as_str())));
        is_parsed(Level::ALL.map(|one| (one, one.as_str())));
        is_parsed([StepKind::Command].map(|one| (one, one.as_str())));
        is_parsed(ServiceVerb::ALL.map(|one| (one, one.as_str())));
        is_parsed(CodeHost::ALL.map(|one| (one, one.as_str())));
    }

    #[test]
    fn names_cannot_hold_characters_that_nobody_sees() {
        for hidden in ["a\u{202e}b", "a\u{200b}b", "\u{feff}ab", "a\u{2066}b", "a\nb"] {
            assert!(plain_text(hidden, 1, 50, "visible").is_err(), "{hidden:?}");
        }
        for seen in ["Ädä 李", "👩\u{200d}🚀", "می\u{200c}خواهم"] {
            assert!(plain_text(seen, 1, 50, "visible").is_ok(), "{seen:?}");
        }
    }

    #[test]
    fn a_refusal_names_what_is_allowed_and_what_came() {
        let refusal = InvalidValue::number("between 8 and 32", 70);
        assert_eq!(refusal.to_string(), "must be between 8 and 32, got 70");
    }

    #[test]
    fn shortens_refused_text_and_escapes_control_characters() {
        let refusal = InvalidValue::text("short", &format!("a\n{}", "b".repeat(50)));
        assert_eq!(refusal.to_string(), format!("must be short, got `a\\n{}…`", "b".repeat(38)));
    }

    #[test]
    fn a_refused_secret_is_not_repeated() {
        assert_eq!(InvalidValue::secret("8 to 256 characters").to_string(), "must be 8 to 256 characters");
    }
}
