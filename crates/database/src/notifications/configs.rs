//! Configurations of HTTP channels, and their signing secrets.

use std::collections::HashMap;

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    notifications::{KeptSigningSecret, WebhookConfig, WebhookKind},
    organizations::Scope,
    secret::Sealed,
    store::StoreError,
};
use uuid::Uuid;

use super::outcome::{REMOVED, SWITCHED_OFF, end_waiting};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    organizations,
    schema::{signing_secrets, webhook_configs},
    statement::{ListComparison as _, StatementCache as _},
};

pub(super) fn insert(connection: &mut AnyConnection, config: &WebhookConfig) -> Result<(), QueryError> {
    organizations::require(connection, config.organization_id)?;
    diesel::insert_into(webhook_configs::table)
        .values((
            webhook_configs::id.eq(DbId::from(config.id)),
            webhook_configs::user_id.eq(DbId::from(config.user_id)),
            webhook_configs::organization_id.eq(DbId::from(config.organization_id)),
            webhook_configs::kind.eq(config.kind.as_str()),
            webhook_configs::webhook_url.eq(&config.url.0),
            webhook_configs::is_active.eq(config.is_active),
            webhook_configs::created_at.eq(DbTs(config.created_at)),
            webhook_configs::updated_at.eq(DbTs(config.updated_at)),
        ))
        .execute(connection)?;
    Ok(())
}

/// The columns that change. Absent ones stay unchanged.
#[derive(AsChangeset)]
#[diesel(table_name = webhook_configs)]
pub(super) struct WebhookChanges<'a> {
    pub(super) webhook_url: Option<&'a str>,
    pub(super) is_active: Option<bool>,
    pub(super) updated_at: DbTs,
}

pub(super) fn update(
    connection: &mut AnyConnection,
    scope: Scope,
    kind: WebhookKind,
    changes: &WebhookChanges<'_>,
) -> Result<(), QueryError> {
    let config = held(connection, scope, kind)?;
    diesel::update(webhook_configs::table.find(config)).set(changes).cached().execute(connection)?;
    match changes.is_active {
        Some(false) => end_waiting(connection, config, SWITCHED_OFF, changes.updated_at.into()),
        Some(true) | None => Ok(()),
    }
}

pub(super) fn delete(
    connection: &mut AnyConnection,
    scope: Scope,
    kind: WebhookKind,
    at: Timestamp,
) -> Result<(), QueryError> {
    let config = held(connection, scope, kind)?;
    remove(connection, config, REMOVED, at)
}

/// Removes a configuration with its secrets, and ends its pending deliveries.
pub(super) fn remove(
    connection: &mut AnyConnection,
    config: DbId,
    reason: &str,
    at: Timestamp,
) -> Result<(), QueryError> {
    diesel::delete(webhook_configs::table.find(config)).execute(connection)?;
    end_waiting(connection, config, reason, at)
}

/// Returns an organization's configuration of a kind, which on PostgreSQL no other transaction changes
/// until this one ends.
fn held(connection: &mut AnyConnection, scope: Scope, kind: WebhookKind) -> Result<DbId, QueryError> {
    let config = webhook_configs::table
        .filter(webhook_configs::organization_id.eq(DbId::from(scope.id())))
        .filter(webhook_configs::kind.eq(kind.as_str()))
        .select(webhook_configs::id);
    let id: Option<DbId> = match connection {
        AnyConnection::Sqlite(sqlite) => config.get_result(sqlite),
        AnyConnection::Postgres(postgres) => config.for_update().get_result(postgres),
    }
    .optional()?;
    Ok(id.ok_or(StoreError::Stale)?)
}

fn insert_secret(
    connection: &mut AnyConnection,
    config: DbId,
    secret: &KeptSigningSecret,
    at: Timestamp,
) -> Result<(), QueryError> {
    diesel::insert_into(signing_secrets::table)
        .values((
            signing_secrets::id.eq(DbId::from(secret.id)),
            signing_secrets::config_id.eq(config),
            signing_secrets::secret.eq(&secret.secret.0),
            signing_secrets::created_at.eq(DbTs(at)),
        ))
        .execute(connection)?;
    Ok(())
}

pub(super) fn replace_secret(
    connection: &mut AnyConnection,
    (scope, kind): (Scope, WebhookKind),
    secret: &KeptSigningSecret,
    (until, at): (Timestamp, Timestamp),
) -> Result<(), QueryError> {
    let config = held(connection, scope, kind)?;
    diesel::update(signing_secrets::table)
        .filter(signing_secrets::config_id.eq(config))
        .filter(signing_secrets::valid_until.is_null())
        .set(signing_secrets::valid_until.eq(DbTs(until)))
        .cached()
        .execute(connection)?;
    let too_many: Vec<DbId> = signing_secrets::table
        .filter(signing_secrets::config_id.eq(config))
        .order((signing_secrets::created_at.desc(), signing_secrets::id.desc()))
        .offset(KeptSigningSecret::MOST_REPLACED)
        // SQLite knows no offset without a limit.
        .limit(i64::MAX)
        .select(signing_secrets::id)
        .load(connection)?;
    diesel::delete(signing_secrets::table)
        .filter(signing_secrets::id.one_of(too_many))
        .execute(connection)?;
    diesel::update(webhook_configs::table.find(config))
        .set(webhook_configs::updated_at.eq(DbTs(at)))
        .cached()
        .execute(connection)?;
    insert_secret(connection, config, secret, at)
}

/// Returns the current signing secrets of each configuration, newest first.
pub(super) fn secrets_of(
    connection: &mut AnyConnection,
    configs: Vec<DbId>,
    now: Timestamp,
) -> Result<HashMap<Uuid, Vec<KeptSigningSecret>>, QueryError> {
    let signs = signing_secrets::valid_until.is_null();
    let signs = signs.or(signing_secrets::valid_until.gt(DbTs(now)).assume_not_null());
    let rows: Vec<(DbId, DbId, String)> = signing_secrets::table
        .filter(signing_secrets::config_id.one_of(configs))
        .filter(signs)
        .order((signing_secrets::created_at.desc(), signing_secrets::id.desc()))
        .select((signing_secrets::config_id, signing_secrets::id, signing_secrets::secret))
        .load(connection)?;
    let mut secrets: HashMap<Uuid, Vec<KeptSigningSecret>> = HashMap::new();
    for (config, id, secret) in rows {
        let secret = KeptSigningSecret { id: id.into(), secret: Sealed(secret) };
        secrets.entry(config.0).or_default().push(secret);
    }
    Ok(secrets)
}
