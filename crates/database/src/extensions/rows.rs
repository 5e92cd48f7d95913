//! The rows of extensions.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    extensions::{
        Category, Extension, ExtensionKey, ExtensionKind, ExtensionName, ExtensionVariable, Validation,
        VariableKind,
    },
    ids::{ExtensionId, ExtensionVariableId, OrganizationId},
};

use crate::{
    applications::read,
    columns::{DbId, DbTs},
    error::QueryError,
    schema::{extension_variables, extensions},
    search::lower_case,
};

/// The separator between searched texts. Descriptions contain line breaks, but not this character.
pub(super) const SEPARATOR: char = '\u{1f}';

#[derive(Queryable, Selectable)]
#[diesel(table_name = extensions)]
pub(super) struct ExtensionRow {
    #[diesel(deserialize_as = DbId)]
    id: ExtensionId,
    organization_id: Option<DbId>,
    #[diesel(deserialize_as = String)]
    key: ExtensionKey,
    parent_key: Option<String>,
    #[diesel(deserialize_as = String)]
    name: ExtensionName,
    description: String,
    author: String,
    icon: String,
    #[diesel(deserialize_as = String)]
    category: Category,
    #[diesel(deserialize_as = String)]
    kind: ExtensionKind,
    version: String,
    is_verified: bool,
    content_hash: String,
    yaml: String,
    parsed: String,
    #[diesel(deserialize_as = String)]
    validation: Validation,
    validation_errors: String,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    updated_at: Timestamp,
    deleted_at: Option<DbTs>,
}

impl ExtensionRow {
    pub(super) fn id(&self) -> DbId {
        self.id.into()
    }

    /// Returns the extension with its variables.
    pub(super) fn with(self, variables: Vec<ExtensionVariable>) -> Result<Extension, QueryError> {
        Ok(Extension {
            id: self.id,
            organization_id: self.organization_id.map(OrganizationId::from),
            key: self.key,
            parent: read(self.parent_key)?,
            name: self.name,
            description: self.description,
            author: self.author,
            icon: self.icon,
            category: self.category,
            kind: self.kind,
            version: self.version,
            is_verified: self.is_verified,
            content_hash: self.content_hash,
            yaml: self.yaml,
            parsed: self.parsed,
            validation: self.validation,
            validation_errors: self.validation_errors,
            variables,
            created_at: self.created_at,
            updated_at: self.updated_at,
            deleted_at: self.deleted_at.map(Timestamp::from),
        })
    }
}

/// The columns that come from a definition: all of them change together.
#[derive(AsChangeset, Insertable)]
#[diesel(table_name = extensions, treat_none_as_null = true, treat_none_as_default_value = false)]
pub(super) struct DefinitionColumns<'a> {
    parent_key: Option<&'a str>,
    name: &'a str,
    name_key: String,
    description: &'a str,
    author: &'a str,
    icon: &'a str,
    category: &'static str,
    kind: &'static str,
    version: &'a str,
    is_verified: bool,
    content_hash: &'a str,
    yaml: &'a str,
    parsed: &'a str,
    validation: &'static str,
    validation_errors: &'a str,
    search: String,
    updated_at: DbTs,
    deleted_at: Option<DbTs>,
}

impl<'a> DefinitionColumns<'a> {
    pub(super) fn of(extension: &'a Extension) -> Self {
        let looked_at =
            [extension.key.as_str(), extension.name.as_str(), &extension.description, &extension.author];
        Self {
            parent_key: extension.parent.as_ref().map(ExtensionKey::as_str),
            name: extension.name.as_str(),
            name_key: lower_case(extension.name.as_str()),
            description: &extension.description,
            author: &extension.author,
            icon: &extension.icon,
            category: extension.category.as_str(),
            kind: extension.kind.as_str(),
            version: &extension.version,
            is_verified: extension.is_verified,
            content_hash: &extension.content_hash,
            yaml: &extension.yaml,
            parsed: &extension.parsed,
            validation: extension.validation.as_str(),
            validation_errors: &extension.validation_errors,
            search: lower_case(&looked_at.join(&SEPARATOR.to_string())),
            updated_at: DbTs(extension.updated_at),
            deleted_at: extension.deleted_at.map(DbTs),
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = extension_variables)]
pub(super) struct VariableRow {
    #[diesel(deserialize_as = DbId)]
    id: ExtensionVariableId,
    pub(super) extension_id: DbId,
    name: String,
    #[diesel(deserialize_as = String)]
    kind: VariableKind,
    description: String,
    default_value: Option<String>,
    is_required: bool,
    pattern: String,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
}

impl From<VariableRow> for ExtensionVariable {
    fn from(row: VariableRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            kind: row.kind,
            description: row.description,
            default: row.default_value,
            is_required: row.is_required,
            pattern: row.pattern,
            created_at: row.created_at,
        }
    }
}
