//! The request bodies of users.

use crate::{
    fields::{Field, Fields, Properties, Refused, Take},
    input::input,
};
use launchway_domain::{
    auth::Password,
    secret::Secret,
    users::{FontFamily, FontSize, Language, SettingsChange, Theme, Username},
};

input! {
    pub(crate) struct Rename {
        /// The new username; formerly `name`.
        pub(super) username as "username" | "name": Username,
    }
}

input! {
    pub(crate) struct ChangePassword {
        pub(super) current_password: Secret<String>,
        pub(super) new_password: Password,
    }
}

input! {
    pub(crate) struct ChangeAutoUpdate {
        pub(super) auto_update: bool,
    }
}

input! {
    pub(crate) struct ChangeTheme {
        pub(super) theme: Theme,
    }
}

input! {
    pub(crate) struct ChangeFont {
        font: Font,
    }
}

/// A typeface, a size, or both.
struct Font {
    family: Option<FontFamily>,
    size: Option<FontSize>,
}

impl Take for Font {
    fn take(fields: &mut Fields, _name: &str) -> Result<Self, Refused> {
        let (family, size) = (fields.optional("font_family"), fields.optional("font_size"));
        match (family, size) {
            (Ok(None), Ok(None)) => fields.refuse("font_family", "or font_size is required".to_owned()),
            (family, size) => Ok(Self { family: family?, size: size? }),
        }
    }

    fn describe(properties: &mut Properties, _name: &str, _about: &str) {
        let about = "At least one of the two fields is required.";
        properties.add("font_family", about, false, FontFamily::schema());
        properties.add("font_size", about, false, FontSize::schema());
    }
}

impl ChangeFont {
    pub(super) fn into_changes(self) -> Vec<SettingsChange> {
        let family = self.font.family.map(SettingsChange::FontFamily);
        let size = self.font.size.map(SettingsChange::FontSize);
        family.into_iter().chain(size).collect()
    }
}

input! {
    pub(crate) struct ChangeLanguage {
        pub(super) language: Language,
    }
}
