//! The request bodies of users.

use launchway_domain::{
    auth::Password,
    secret::Secret,
    users::{FontFamily, FontSize, Language, SettingsChange, Theme, Username},
};
use utoipa::ToSchema;

use crate::{body::Input, error::ApiError, fields::Fields};

#[derive(ToSchema)]
pub(crate) struct Rename {
    /// The new username.
    #[schema(value_type = String, min_length = 1, max_length = 50)]
    pub(super) name: Username,
}

impl Input for Rename {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let name = fields.required("name");
        fields.finish()?;
        Ok(Self { name: name? })
    }
}

#[derive(ToSchema)]
pub(crate) struct ChangePassword {
    #[schema(value_type = String)]
    pub(super) current_password: Secret<String>,
    #[schema(value_type = String, min_length = 8, max_length = 256)]
    pub(super) new_password: Password,
}

impl Input for ChangePassword {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let current_password = fields.required("current_password");
        let new_password = fields.required("new_password");
        fields.finish()?;
        Ok(Self { current_password: current_password?, new_password: new_password? })
    }
}

#[derive(ToSchema)]
pub(crate) struct ChangeAutoUpdate {
    pub(super) auto_update: bool,
}

impl Input for ChangeAutoUpdate {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let auto_update = fields.required("auto_update");
        fields.finish()?;
        Ok(Self { auto_update: auto_update? })
    }
}

#[derive(ToSchema)]
pub(crate) struct ChangeTheme {
    #[schema(value_type = String, pattern = "^[A-Za-z0-9_-]{1,20}$")]
    pub(super) theme: Theme,
}

impl Input for ChangeTheme {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let theme = fields.required("theme");
        fields.finish()?;
        Ok(Self { theme: theme? })
    }
}

/// At least one of the two is required.
#[derive(ToSchema)]
pub(crate) struct ChangeFont {
    #[schema(value_type = Option<String>, pattern = "^[A-Za-z0-9 _-]{1,50}$")]
    font_family: Option<FontFamily>,
    #[schema(value_type = Option<u8>, minimum = 8, maximum = 32)]
    font_size: Option<FontSize>,
}

impl Input for ChangeFont {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let font_family = fields.optional("font_family");
        let font_size = fields.optional("font_size");
        let font = match (font_family, font_size) {
            (Ok(None), Ok(None)) => fields.refuse("font_family or font_size is required".to_owned()),
            (font_family, font_size) => Ok((font_family, font_size)),
        };
        fields.finish()?;
        let (font_family, font_size) = font?;
        Ok(Self { font_family: font_family?, font_size: font_size? })
    }
}

impl ChangeFont {
    pub(super) fn into_changes(self) -> Vec<SettingsChange> {
        let family = self.font_family.map(SettingsChange::FontFamily);
        let size = self.font_size.map(SettingsChange::FontSize);
        family.into_iter().chain(size).collect()
    }
}

#[derive(ToSchema)]
pub(crate) struct ChangeLanguage {
    #[schema(value_type = String, example = "pt-BR")]
    pub(super) language: Language,
}

impl Input for ChangeLanguage {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let language = fields.required("language");
        fields.finish()?;
        Ok(Self { language: language? })
    }
}
