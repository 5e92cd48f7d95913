//! Adds extensions to the catalog, and forks.

use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    clock::Timestamp,
    extensions::{Extension, ExtensionKey},
    replicas::ReleaseVersion,
    store::{StoreError, Unique},
};

use super::rows::DefinitionColumns;
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::{Lock, each_backend, hold},
    error::QueryError,
    organizations,
    schema::{catalog_version, extension_installations, extension_variables, extensions},
    statement::StatementCache as _,
};

/// Records that `version` writes the catalog.
pub(super) fn claim(connection: &mut AnyConnection, version: ReleaseVersion) -> Result<(), QueryError> {
    hold(connection, Lock::Catalog)?;
    let stored: Option<String> =
        catalog_version::table.select(catalog_version::version).first(connection).optional()?;
    let stored = stored.map(|stored| stored.parse::<ReleaseVersion>().map_err(QueryError::unreadable));
    if stored.transpose()?.is_some_and(|stored| stored > version) {
        return Err(StoreError::Stale.into());
    }
    let text = version.to_string();
    each_backend!(connection, backend => diesel::insert_into(catalog_version::table)
        .values((catalog_version::singleton.eq(1), catalog_version::version.eq(&text)))
        .on_conflict(catalog_version::singleton)
        .do_update()
        .set(catalog_version::version.eq(&text))
        .cached()
        .execute(backend))?;
    Ok(())
}

/// Inserts an entry into the catalog, or updates the one with its key.
pub(super) fn publish(connection: &mut AnyConnection, extension: &Extension) -> Result<(), QueryError> {
    // Replicas start together; the later ones wait and then find their entries.
    hold(connection, Lock::Catalog)?;
    let renewed: Vec<DbId> = diesel::update(extensions::table)
        .filter(extensions::key.eq(extension.key.as_str()))
        .filter(extensions::organization_id.is_null())
        .filter(extensions::content_hash.ne(&extension.content_hash).or(extensions::deleted_at.is_not_null()))
        .set(DefinitionColumns::of(extension))
        .returning(extensions::id)
        .cached()
        .load(connection)?;
    if let Some(id) = renewed.first() {
        diesel::delete(extension_variables::table)
            .filter(extension_variables::extension_id.eq(*id))
            .execute(connection)?;
        return insert_variables(connection, *id, extension);
    }
    let entry = (
        extensions::id.eq(DbId::from(extension.id)),
        extensions::key.eq(extension.key.as_str()),
        extensions::created_at.eq(DbTs(extension.created_at)),
        DefinitionColumns::of(extension),
    );
    let added = each_backend!(connection, backend => diesel::insert_into(extensions::table)
        .values(entry)
        .on_conflict_do_nothing()
        .execute(backend))?;
    if added == 1 {
        insert_variables(connection, extension.id.into(), extension)
    } else {
        require_entry(connection, &extension.key)
    }
}

/// Succeeds if the entry is unchanged; fails if a fork has its key.
fn require_entry(connection: &mut AnyConnection, key: &ExtensionKey) -> Result<(), QueryError> {
    let entry = extensions::table
        .filter(extensions::key.eq(key.as_str()))
        .filter(extensions::organization_id.is_null());
    let is_there: bool = diesel::select(exists(entry)).get_result(connection)?;
    if is_there { Ok(()) } else { Err(StoreError::Taken(Unique::ExtensionKey).into()) }
}

/// Removes the entries with other keys than these from the catalog.
pub(super) fn withdraw(
    connection: &mut AnyConnection,
    keep: &[ExtensionKey],
    at: Timestamp,
) -> Result<(), QueryError> {
    hold(connection, Lock::Catalog)?;
    let installed: Vec<String> = extension_installations::table
        .select(extension_installations::extension_key)
        .distinct()
        .load(connection)?;
    diesel::update(extensions::table)
        .filter(extensions::organization_id.is_null())
        .filter(extensions::deleted_at.is_null())
        .filter(extensions::key.ne_all(keep.iter().map(ExtensionKey::as_str)))
        // An organization that has installed it must be able to remove it.
        .filter(extensions::key.ne_all(installed))
        .set((extensions::deleted_at.eq(DbTs(at)), extensions::updated_at.eq(DbTs(at))))
        .cached()
        .execute(connection)?;
    Ok(())
}

/// Inserts a fork of an organization. `Stale` when the organization is gone.
pub(super) fn fork(connection: &mut AnyConnection, extension: &Extension) -> Result<(), QueryError> {
    let organization = extension.organization_id.ok_or(StoreError::Stale)?;
    organizations::require(connection, organization)?;
    diesel::insert_into(extensions::table)
        .values((
            extensions::id.eq(DbId::from(extension.id)),
            extensions::organization_id.eq(DbId::from(organization)),
            extensions::key.eq(extension.key.as_str()),
            extensions::created_at.eq(DbTs(extension.created_at)),
            DefinitionColumns::of(extension),
        ))
        .execute(connection)?;
    insert_variables(connection, extension.id.into(), extension)
}

fn insert_variables(
    connection: &mut AnyConnection,
    id: DbId,
    extension: &Extension,
) -> Result<(), QueryError> {
    for (position, variable) in (1..).zip(&extension.variables) {
        diesel::insert_into(extension_variables::table)
            .values((
                extension_variables::id.eq(DbId::from(variable.id)),
                extension_variables::extension_id.eq(id),
                extension_variables::position.eq(position),
                extension_variables::name.eq(&variable.name),
                extension_variables::kind.eq(variable.kind.as_str()),
                extension_variables::description.eq(&variable.description),
                extension_variables::default_value.eq(variable.default.as_deref()),
                extension_variables::is_required.eq(variable.is_required),
                extension_variables::pattern.eq(&variable.pattern),
                extension_variables::created_at.eq(DbTs(variable.created_at)),
            ))
            .execute(connection)?;
    }
    Ok(())
}
