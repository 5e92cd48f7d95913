//! Notifications in the database: reads, and the operations of senders.
//!
//! **Invariant:** emitting an event or claiming a delivery locks no configuration, so that the end of a
//! deployment never waits for a change of one. Two concurrent transactions on PostgreSQL may therefore
//! leave a pending delivery for a channel that is disabled or deleted; the next claim ends it.

mod announcements;
mod claim;
mod configs;
mod forget;
mod mail;
mod outcome;
mod rows;
mod writes;

use std::collections::HashMap;

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::{DeliveryId, EventId},
    notifications::{
        Attempt, Claim, ClaimedDelivery, Delivery, DeliveryFilter, DeliveryQueue, DeliveryState,
        KeptSigningSecret, Next, NotificationRepository, SenderId, SmtpConfig, WebhookConfig, WebhookKind,
    },
    organizations::Scope,
    page::{Page, PageRequest},
    store::StoreError,
};
use uuid::Uuid;

pub(super) use self::{
    announcements::{announce, has_channel},
    writes::{apply, leave},
};
use self::{
    configs::secrets_of,
    rows::{AttemptRow, DeliveryRow, SmtpRow, WebhookRow},
};
use super::{
    Database,
    columns::DbId,
    connection::{AnyConnection, MultiBackend},
    error::QueryError,
    schema::{deliveries, delivery_attempts, events, organizations, smtp_configs, webhook_configs},
    statement::ListComparison as _,
};

#[async_trait]
impl NotificationRepository for Database {
    async fn webhook(
        &self,
        scope: Scope,
        kind: WebhookKind,
        now: Timestamp,
    ) -> Result<Option<(WebhookConfig, Vec<KeptSigningSecret>)>, StoreError> {
        self.read_point(move |connection| {
            let row: Option<WebhookRow> = webhook_configs::table
                .inner_join(organizations::table.on(organizations::id.eq(webhook_configs::organization_id)))
                .filter(webhook_configs::organization_id.eq(DbId::from(scope.id())))
                .filter(webhook_configs::kind.eq(kind.as_str()))
                .filter(organizations::deleted_at.is_null())
                .select(WebhookRow::as_select())
                .first(connection)
                .optional()?;
            let Some(config) = row.map(WebhookConfig::from) else { return Ok(None) };
            let id = DbId::from(config.id);
            let secrets = secrets_of(connection, vec![id], now)?.remove(&id.0).unwrap_or_default();
            Ok(Some((config, secrets)))
        })
        .await
    }

    async fn smtp(&self, scope: Scope) -> Result<Option<SmtpConfig>, StoreError> {
        self.read_point(move |connection| {
            let row: Option<SmtpRow> = smtp_configs::table
                .inner_join(organizations::table.on(organizations::id.eq(smtp_configs::organization_id)))
                .filter(smtp_configs::organization_id.eq(DbId::from(scope.id())))
                .filter(organizations::deleted_at.is_null())
                .select(SmtpRow::as_select())
                .first(connection)
                .optional()?;
            row.map(SmtpConfig::try_from).transpose()
        })
        .await
    }

    async fn deliveries(
        &self,
        scope: Scope,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<Delivery>, StoreError> {
        self.read(move |connection| page_of(connection, scope, filter, page)).await
    }

    async fn delivery(&self, scope: Scope, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
        self.read_point(move |connection| {
            let row: Option<DeliveryRow> = deliveries::table
                .inner_join(events::table.on(events::id.eq(deliveries::event_id)))
                .inner_join(organizations::table.on(organizations::id.eq(deliveries::organization_id)))
                .filter(deliveries::id.eq(DbId::from(id)))
                .filter(deliveries::organization_id.eq(DbId::from(scope.id())))
                .filter(organizations::deleted_at.is_null())
                .select(DeliveryRow::as_select())
                .first(connection)
                .optional()?;
            Ok(with_attempts(connection, row.into_iter().collect())?.pop())
        })
        .await
    }
}

#[async_trait]
impl DeliveryQueue for Database {
    async fn claim(
        &self,
        sender: SenderId,
        most: usize,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        self.write(move |connection| claim::claim(connection, sender, most, (now, lease_until))).await
    }

    async fn keep_body(&self, event: EventId, body: String) -> Result<String, StoreError> {
        self.write(move |connection| outcome::keep_body(connection, event, &body)).await
    }

    async fn record(&self, claim: Claim, attempt: Attempt, next: Next) -> Result<(), StoreError> {
        self.write(move |connection| outcome::record(connection, &claim, &attempt, next)).await
    }

    async fn rescue(&self, sender: SenderId, now: Timestamp) -> Result<usize, StoreError> {
        self.write(move |connection| outcome::rescue(connection, sender, now)).await
    }

    async fn forget(
        &self,
        delivered: Timestamp,
        dead: Timestamp,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let over = [(DeliveryState::Delivered, delivered), (DeliveryState::Dead, dead)];
        self.write(move |connection| forget::forget(connection, over, now)).await
    }
}

fn page_of(
    connection: &mut AnyConnection,
    scope: Scope,
    filter: DeliveryFilter,
    page: PageRequest,
) -> Result<Page<Delivery>, QueryError> {
    let wanted = || {
        let mut wanted = deliveries::table
            .inner_join(events::table.on(events::id.eq(deliveries::event_id)))
            .inner_join(organizations::table.on(organizations::id.eq(deliveries::organization_id)))
            .filter(deliveries::organization_id.eq(DbId::from(scope.id())))
            .filter(organizations::deleted_at.is_null())
            .into_boxed::<MultiBackend>();
        if let Some(state) = filter.state {
            wanted = wanted.filter(deliveries::state.eq(state.as_str()));
        }
        if let Some(channel) = filter.channel {
            wanted = wanted.filter(deliveries::channel.eq(channel.as_str()));
        }
        wanted
    };
    let total = wanted().count().get_result(connection)?;
    let rows: Vec<DeliveryRow> = wanted()
        .order((deliveries::created_at.desc(), deliveries::id.desc()))
        .limit(page.size())
        .offset(page.offset())
        .select(DeliveryRow::as_select())
        .load(connection)?;
    Ok(Page { items: with_attempts(connection, rows)?, request: page, total })
}

/// Adds the attempts to the deliveries, in their order.
fn with_attempts(
    connection: &mut AnyConnection,
    rows: Vec<DeliveryRow>,
) -> Result<Vec<Delivery>, QueryError> {
    let ids: Vec<DbId> = rows.iter().map(DeliveryRow::id).collect();
    let attempts: Vec<AttemptRow> = delivery_attempts::table
        .filter(delivery_attempts::delivery_id.one_of(ids))
        .order((delivery_attempts::delivery_id.asc(), delivery_attempts::number.asc()))
        .select(AttemptRow::as_select())
        .load(connection)?;
    let mut by_delivery: HashMap<Uuid, Vec<Attempt>> = HashMap::new();
    for row in attempts {
        by_delivery.entry(row.delivery_id.0).or_default().push(row.try_into()?);
    }
    let mut attempts_of = |row: &DeliveryRow| by_delivery.remove(&row.id().0).unwrap_or_default();
    let with_attempts = |row: DeliveryRow| {
        let attempts = attempts_of(&row);
        row.with(attempts)
    };
    Ok(rows.into_iter().map(with_attempts).collect())
}
