//! The JSON of extensions.

use launchway_domain::{
    extensions::{Extension, ExtensionVariable},
    ids::ExtensionId,
    page::Page,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{pages::Pagination, timestamp::Moment};

/// An extension. Its relations are omitted unless they are attached.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = Extension)]
pub(crate) struct ExtensionView {
    id: Uuid,
    #[schema(example = "postgres")]
    extension_id: String,
    /// The extension that it is a fork of; empty for an entry of the catalog.
    parent_extension_id: String,
    name: String,
    description: String,
    author: String,
    #[schema(example = "Database")]
    category: &'static str,
    icon: String,
    /// `install` or `run`.
    extension_type: &'static str,
    version: String,
    is_verified: bool,
    /// The SHA-256 of `yaml_content`, in hex.
    content_hash: String,
    yaml_content: String,
    /// A JSON object.
    parsed_content: String,
    /// `valid`, `invalid` or `not_validated`.
    validation_status: &'static str,
    /// A JSON array of `{line, key, message}`.
    validation_errors: String,
    #[schema(no_recursion)]
    variables: Vec<ExtensionVariableView>,
    created_at: Moment,
    updated_at: Moment,
    deleted_at: Option<Moment>,
}

/// A variable of an extension.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = ExtensionVariable)]
pub(crate) struct ExtensionVariableView {
    id: Uuid,
    extension_id: Uuid,
    #[schema(no_recursion)]
    extension: Option<Box<ExtensionView>>,
    variable_name: String,
    /// `string`, `integer`, `boolean` or `array`.
    variable_type: &'static str,
    description: String,
    /// A string, a number, a boolean or an array of strings; null without one.
    #[schema(value_type = Value)]
    default_value: Option<Value>,
    is_required: bool,
    validation_pattern: String,
    created_at: Moment,
}

impl ExtensionVariableView {
    fn of(extension: ExtensionId, variable: ExtensionVariable) -> Self {
        Self {
            id: variable.id.into(),
            extension_id: extension.into(),
            extension: None,
            variable_name: variable.name,
            variable_type: variable.kind.as_str(),
            description: variable.description,
            default_value: variable.default.and_then(|default| serde_json::from_str(&default).ok()),
            is_required: variable.is_required,
            validation_pattern: variable.pattern,
            created_at: variable.created_at.into(),
        }
    }
}

impl From<Extension> for ExtensionView {
    /// Includes its variables.
    fn from(extension: Extension) -> Self {
        let id = extension.id;
        let variables = extension.variables.into_iter();
        Self {
            id: id.into(),
            extension_id: extension.key.into(),
            parent_extension_id: extension.parent.map(String::from).unwrap_or_default(),
            name: extension.name.into(),
            description: extension.description,
            author: extension.author,
            category: extension.category.as_str(),
            icon: extension.icon,
            extension_type: extension.kind.as_str(),
            version: extension.version,
            is_verified: extension.is_verified,
            content_hash: extension.content_hash,
            yaml_content: extension.yaml,
            parsed_content: extension.parsed,
            validation_status: extension.validation.as_str(),
            validation_errors: extension.validation_errors,
            variables: variables.map(|variable| ExtensionVariableView::of(id, variable)).collect(),
            created_at: extension.created_at.into(),
            updated_at: extension.updated_at.into(),
            deleted_at: extension.deleted_at.map(Moment::from),
        }
    }
}

/// A page of extensions.
#[derive(Serialize, ToSchema)]
#[schema(as = Extensions)]
pub(crate) struct ExtensionsView {
    extensions: Vec<ExtensionView>,
    pagination: Pagination,
}

impl From<Page<Extension>> for ExtensionsView {
    fn from(page: Page<Extension>) -> Self {
        Self {
            pagination: Pagination::from(&page),
            extensions: page.items.into_iter().map(ExtensionView::from).collect(),
        }
    }
}
