//! The display settings of a user.

use crate::{
    clock::Timestamp,
    ids::{SettingsId, UserId},
    value::{InvalidValue, text_value},
};

/// The settings of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The id of the settings.
    pub id: SettingsId,
    /// The id of the user.
    pub user_id: UserId,
    /// True if Launchway updates itself automatically.
    pub auto_update: bool,
    /// The colour theme.
    pub theme: Theme,
    /// The typeface.
    pub font_family: FontFamily,
    /// The font size.
    pub font_size: FontSize,
    /// The language of the interface.
    pub language: Language,
    /// When they were first used.
    pub created_at: Timestamp,
    /// When they were last changed.
    pub updated_at: Timestamp,
    /// When they were deleted; readers never see such records.
    pub deleted_at: Option<Timestamp>,
}

impl Settings {
    /// Returns the default settings.
    #[must_use]
    pub fn defaults(id: SettingsId, user_id: UserId, now: Timestamp) -> Self {
        Self {
            id,
            user_id,
            auto_update: true,
            theme: Theme("light".to_owned()),
            font_family: FontFamily("outfit".to_owned()),
            font_size: FontSize(16),
            language: Language("en".to_owned()),
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }

    /// Returns the settings after `change`.
    #[must_use]
    pub fn with(mut self, change: SettingsChange) -> Self {
        match change {
            SettingsChange::AutoUpdate(on) => self.auto_update = on,
            SettingsChange::Theme(theme) => self.theme = theme,
            SettingsChange::FontFamily(family) => self.font_family = family,
            SettingsChange::FontSize(size) => self.font_size = size,
            SettingsChange::Language(language) => self.language = language,
        }
        self
    }
}

/// A change of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingsChange {
    /// Enables or disables automatic updates of Launchway.
    AutoUpdate(bool),
    /// Sets the colour theme.
    Theme(Theme),
    /// Sets the typeface.
    FontFamily(FontFamily),
    /// Sets the font size.
    FontSize(FontSize),
    /// Sets the language of the interface.
    Language(Language),
}

text_value!(
    /// The name of a colour theme.
    Theme,
    |raw| {
        let theme = raw.trim();
        let fits = (1..=20).contains(&theme.len())
            && theme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if fits {
            Ok(theme.to_owned())
        } else {
            Err(InvalidValue::text("1 to 20 letters, digits, `_` or `-`", theme))
        }
    }
);

text_value!(
    /// The name of a typeface.
    FontFamily,
    |raw| {
        let family = raw.trim();
        let fits = (1..=50).contains(&family.len())
            && family.bytes().all(|b| b.is_ascii_alphanumeric() || b" _-".contains(&b));
        if fits {
            Ok(family.to_owned())
        } else {
            Err(InvalidValue::text("1 to 50 letters, digits, spaces, `_` or `-`", family))
        }
    }
);

text_value!(
    /// A language tag such as `en` or `pt-BR`.
    Language,
    |raw| {
        let tag = raw.trim();
        let mut parts = tag.split('-');
        let language_fits = parts
            .next()
            .is_some_and(|part| (2..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphabetic()));
        let rest_fits =
            parts.all(|part| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric()));
        if language_fits && rest_fits && tag.len() <= 35 {
            Ok(tag.to_owned())
        } else {
            Err(InvalidValue::text("a language tag like `en` or `pt-BR`", tag))
        }
    }
);

/// The size of a typeface, 8 to 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FontSize(u8);

impl FontSize {
    /// Returns the size as a number.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<i64> for FontSize {
    type Error = InvalidValue;

    fn try_from(raw: i64) -> Result<Self, InvalidValue> {
        match u8::try_from(raw) {
            Ok(size @ 8..=32) => Ok(Self(size)),
            _ => Err(InvalidValue::number("between 8 and 32", raw)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_theme_has_1_to_20_letters_digits_underscores_or_hyphens() {
        assert!("".parse::<Theme>().is_err());
        assert!("solarized_Dark-2".parse::<Theme>().is_ok());
        assert!("a".repeat(20).parse::<Theme>().is_ok());
        assert!("a".repeat(21).parse::<Theme>().is_err());
        assert!("dark mode".parse::<Theme>().is_err());
        assert!("<script>".parse::<Theme>().is_err());
    }

    #[test]
    fn a_font_size_is_between_8_and_32() {
        assert!(FontSize::try_from(7).is_err());
        assert_eq!(FontSize::try_from(8).map(FontSize::get), Ok(8));
        assert_eq!(FontSize::try_from(32).map(FontSize::get), Ok(32));
        assert!(FontSize::try_from(33).is_err());
        assert!(FontSize::try_from(-16).is_err());
        assert!(FontSize::try_from(272).is_err());
    }

    #[test]
    fn a_font_family_has_1_to_50_characters() {
        assert!("".parse::<FontFamily>().is_err());
        assert!("IBM Plex Sans".parse::<FontFamily>().is_ok());
        assert!("a".repeat(50).parse::<FontFamily>().is_ok());
        assert!("a".repeat(51).parse::<FontFamily>().is_err());
        assert!("a; background: url(x)".parse::<FontFamily>().is_err());
    }

    #[test]
    fn languages_are_tags() {
        for tag in ["en", "de", "pt-BR", "zh-Hant-TW", "sr-Latn"] {
            assert!(tag.parse::<Language>().is_ok(), "{tag}");
        }
        for tag in ["", "e", "english", "en_US", "en-", "-en", "1n", "en-toolongpart"] {
            assert!(tag.parse::<Language>().is_err(), "{tag}");
        }
    }

    proptest! {
        #[test]
        fn a_theme_is_accepted_exactly_when_it_follows_the_rule(text in "[a-zA-Z0-9_\\- .]{0,24}") {
            let trimmed = text.trim();
            let follows = (1..=20).contains(&trimmed.len()) && !trimmed.contains([' ', '.']);
            prop_assert_eq!(text.parse::<Theme>().is_ok(), follows);
        }

        #[test]
        fn a_font_size_is_accepted_exactly_in_its_range(size in any::<i64>()) {
            prop_assert_eq!(FontSize::try_from(size).is_ok(), (8..=32).contains(&size));
        }

        #[test]
        fn accepted_texts_survive_being_parsed_again(text in "\\PC{0,60}") {
            if let Ok(value) = text.parse::<FontFamily>() {
                prop_assert_eq!(value.as_str().parse::<FontFamily>(), Ok(value.clone()));
            }
            if let Ok(value) = text.parse::<Language>() {
                prop_assert_eq!(value.as_str().parse::<Language>(), Ok(value.clone()));
            }
        }
    }
}
