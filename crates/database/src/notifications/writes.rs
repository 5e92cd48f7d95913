//! Writes notifications to the database.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::DeliveryId,
    notifications::{DeliveryState, Write},
    organizations::Scope,
    store::StoreError,
};

use super::{
    announcements::announce,
    configs::{self, WebhookChanges},
    mail,
    outcome::{disabled_reason, end_waiting},
};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::{QueryError, guarded},
    schema::{deliveries, smtp_configs, webhook_configs},
    statement::StatementCache as _,
};

/// The error of deliveries that end because their organization was deleted.
const ORGANIZATION_DELETED: &str = "the organization was deleted";

/// Applies one change.
pub(crate) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::Announce(event) => announce(connection, event),
        Write::InsertWebhook(config) => configs::insert(connection, config),
        Write::UpdateWebhook { scope, kind, url, is_active, at } => {
            let webhook_url = url.as_ref().map(|url| url.0.as_str());
            let changes = WebhookChanges { webhook_url, is_active: *is_active, updated_at: DbTs(*at) };
            configs::update(connection, *scope, *kind, &changes)
        }
        Write::DeleteWebhook { scope, kind, at } => configs::delete(connection, *scope, *kind, *at),
        Write::ReplaceSigningSecret { scope, kind, secret, until, at } => {
            configs::replace_secret(connection, (*scope, *kind), secret, (*until, *at))
        }
        Write::InsertSmtp(config) => mail::insert(connection, config),
        Write::UpdateSmtp(config) => mail::update(connection, config),
        Write::DeleteSmtp { scope, id, at } => mail::delete(connection, *scope, *id, *at),
        Write::Replay { scope, id, at } => replay(connection, *scope, *id, *at),
    }
}

fn replay(
    connection: &mut AnyConnection,
    scope: Scope,
    id: DeliveryId,
    at: Timestamp,
) -> Result<(), QueryError> {
    let config: Option<DbId> = deliveries::table
        .find(DbId::from(id))
        .filter(deliveries::organization_id.eq(DbId::from(scope.id())))
        .select(deliveries::config_id)
        .first(connection)
        .optional()?;
    let config = config.ok_or(StoreError::Stale)?;
    if disabled_reason(connection, config)?.is_some() {
        return Err(StoreError::Stale.into());
    }
    guarded(
        diesel::update(deliveries::table)
            .filter(deliveries::id.eq(DbId::from(id)))
            .filter(deliveries::state.eq(DeliveryState::Dead.as_str()))
            .set((
                deliveries::state.eq(DeliveryState::Pending.as_str()),
                deliveries::failures.eq(0),
                deliveries::next_at.eq(DbTs(at)),
                deliveries::reason.eq(""),
                deliveries::finished_at.eq(None::<DbTs>),
            ))
            .cached()
            .execute(connection)?,
    )
}

/// Deletes the channels of an organization with it, and ends their pending deliveries.
///
/// The caller that deletes an organization locks it, so that no channel is created meanwhile.
pub(crate) fn leave(connection: &mut AnyConnection, scope: Scope, at: Timestamp) -> Result<(), QueryError> {
    let id = DbId::from(scope.id());
    let webhooks: Vec<DbId> = webhook_configs::table
        .filter(webhook_configs::organization_id.eq(id))
        .select(webhook_configs::id)
        .load(connection)?;
    for config in webhooks {
        configs::remove(connection, config, ORGANIZATION_DELETED, at)?;
    }
    let mail: Option<DbId> = smtp_configs::table
        .filter(smtp_configs::organization_id.eq(id))
        .select(smtp_configs::id)
        .first(connection)
        .optional()?;
    if let Some(config) = mail {
        diesel::delete(smtp_configs::table.find(config)).execute(connection)?;
        end_waiting(connection, config, ORGANIZATION_DELETED, at)?;
    }
    Ok(())
}
