//! The request bodies of extensions.

use std::collections::BTreeMap;

use utoipa::ToSchema;

use crate::{body::Input, error::ApiError, fields::Fields};

#[derive(ToSchema)]
pub(crate) struct RunExtension {
    /// The values of its variables, by name; none by default.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub(super) variables: BTreeMap<String, String>,
}

impl Input for RunExtension {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let variables = fields.optional::<BTreeMap<String, String>>("variables");
        fields.finish()?;
        Ok(Self { variables: variables?.unwrap_or_default() })
    }
}

#[derive(ToSchema)]
pub(crate) struct ForkExtension {
    /// Another definition; an exact copy by default.
    pub(super) yaml_content: Option<String>,
}

impl Input for ForkExtension {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let yaml_content = fields.optional("yaml_content");
        fields.finish()?;
        Ok(Self { yaml_content: yaml_content? })
    }
}

#[derive(ToSchema)]
pub(crate) struct UninstallExtension {
    /// True if its volumes are removed too, with all of their data; false by default.
    #[schema(value_type = Option<bool>)]
    pub(super) volumes: bool,
}

impl Input for UninstallExtension {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let volumes = fields.optional("volumes");
        fields.finish()?;
        Ok(Self { volumes: volumes?.unwrap_or_default() })
    }
}
