//! Claims due deliveries.
//!
//! However many are pending, a claim reads only the first deliveries of each channel: it goes from channel
//! to channel by one index, and reads as many of a channel as it has free slots.

#[cfg(test)]
mod plans;

use std::collections::HashMap;

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    notifications::{
        Channel, Claim, ClaimedDelivery, DeliveryState, PER_CHANNEL, SenderId, SmtpConfig, WebhookConfig,
    },
};
use uuid::Uuid;

use super::{
    configs::secrets_of,
    outcome::{REMOVED, SWITCHED_OFF, end_waiting},
    rows::{EventRow, SmtpRow, WebhookRow, is_sent, waits},
};
use crate::{
    columns::{DbId, DbTs, Id, Ts},
    connection::AnyConnection,
    dialect::{Lock, hold},
    error::QueryError,
    schema::{deliveries, events, smtp_configs, webhook_configs},
    statement::{ListComparison as _, StatementCache as _},
};

/// Claims up to `most` deliveries. Claims are serialized, so that counting deliveries in progress is exact.
pub(super) fn claim(
    connection: &mut AnyConnection,
    sender: SenderId,
    most: usize,
    (now, lease_until): (Timestamp, Timestamp),
) -> Result<Vec<ClaimedDelivery>, QueryError> {
    hold(connection, Lock::Deliveries)?;
    let places = free_places(connection, now)?;
    let mut due: Vec<Due> = Vec::new();
    let mut channels: HashMap<Uuid, Channel> = HashMap::new();
    // As many channels as deliveries are wanted: every later one has more in progress, or is due later.
    for some in places.chunks(most.max(1)) {
        if channels.len() >= most {
            break;
        }
        let known = active_channels(connection, some, now)?;
        for (config, free) in some.iter().filter(|(config, _)| known.contains_key(&config.0)) {
            due.extend(first_due(connection, *config, *free, now)?);
        }
        channels.extend(known);
    }
    // The channel with the fewest deliveries in progress is next, so that slow receivers delay no other.
    due.sort_unstable_by_key(|due| (due.under_way, due.next_at.0, due.id.0));
    due.truncate(most);
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<DbId> = due.iter().map(|due| due.id).collect();
    take(connection, &ids, sender, lease_until)?;
    let mut taken = taken(connection, ids, sender, &channels)?;
    let mut in_order = Vec::with_capacity(taken.len());
    for due in due {
        in_order.extend(taken.remove(&due.id.0));
    }
    Ok(in_order)
}

/// A channel with pending deliveries, and the time at which the first is due.
#[derive(QueryableByName)]
struct Head {
    #[diesel(sql_type = Id)]
    config_id: DbId,
    #[diesel(sql_type = Ts)]
    next_at: DbTs,
}

/// A loose index scan: from each channel to the next, reading only the first due time of each.
const HEADS: &str = "\
    WITH RECURSIVE channels (config_id) AS (
        SELECT lowest.config_id FROM (
            SELECT deliveries.config_id FROM deliveries
            WHERE deliveries.state = 'pending'
            ORDER BY deliveries.config_id LIMIT 1
        ) AS lowest
        UNION ALL
        SELECT (
            SELECT deliveries.config_id FROM deliveries
            WHERE deliveries.state = 'pending' AND deliveries.config_id > channels.config_id
            ORDER BY deliveries.config_id LIMIT 1
        ) FROM channels WHERE channels.config_id IS NOT NULL
    )
    SELECT channels.config_id AS config_id, (
        SELECT deliveries.next_at FROM deliveries
        WHERE deliveries.state = 'pending' AND deliveries.config_id = channels.config_id
        ORDER BY deliveries.next_at LIMIT 1
    ) AS next_at
    FROM channels WHERE channels.config_id IS NOT NULL";

/// Returns the channels that have something due and a free slot, with the number of free slots: first those
/// with the fewest deliveries in progress, and of them those that have waited longest.
fn free_places(connection: &mut AnyConnection, now: Timestamp) -> Result<Vec<(DbId, i64)>, QueryError> {
    let mut heads: Vec<Head> = diesel::sql_query(HEADS).cached().load(connection)?;
    heads.retain(|head| head.next_at.0 <= now);
    let under_way: Vec<DbId> =
        deliveries::table.filter(is_sent()).select(deliveries::config_id).load(connection)?;
    let mut busy: HashMap<Uuid, i64> = HashMap::new();
    for config in under_way {
        *busy.entry(config.0).or_default() += 1;
    }
    let under_way = |head: &Head| busy.get(&head.config_id.0).copied().unwrap_or_default();
    heads.sort_unstable_by_key(|head| (under_way(head), head.next_at.0, head.config_id.0));
    let free = |head: Head| {
        let free = PER_CHANNEL - under_way(&head);
        (head.config_id, free)
    };
    Ok(heads.into_iter().map(free).filter(|(_, free)| *free > 0).collect())
}

/// Returns those of the channels that exist and are active. Pending deliveries of the others are ended.
fn active_channels(
    connection: &mut AnyConnection,
    some: &[(DbId, i64)],
    now: Timestamp,
) -> Result<HashMap<Uuid, Channel>, QueryError> {
    let ids: Vec<DbId> = some.iter().map(|(config, _)| *config).collect();
    let webhooks: Vec<WebhookRow> = webhook_configs::table
        .filter(webhook_configs::id.one_of(ids.clone()))
        .select(WebhookRow::as_select())
        .load(connection)?;
    let mails: Vec<SmtpRow> = smtp_configs::table
        .filter(smtp_configs::id.one_of(ids.clone()))
        .select(SmtpRow::as_select())
        .load(connection)?;
    let mut secrets = secrets_of(connection, ids.clone(), now)?;
    let mut channels: HashMap<Uuid, (bool, Channel)> = HashMap::new();
    for row in webhooks {
        let config = WebhookConfig::from(row);
        let id = Uuid::from(config.id);
        let secrets = secrets.remove(&id).unwrap_or_default();
        channels.insert(id, (config.is_active, Channel::Webhook { config, secrets }));
    }
    for row in mails {
        let config = SmtpConfig::try_from(row)?;
        channels.insert(config.id.into(), (config.is_active, Channel::Mail(Box::new(config))));
    }
    for id in ids {
        match channels.get(&id.0) {
            Some((true, _)) => {}
            Some((false, _)) => end_waiting(connection, id, SWITCHED_OFF, now)?,
            None => end_waiting(connection, id, REMOVED, now)?,
        }
    }
    let active = channels.into_iter().filter(|(_, (is_active, _))| *is_active);
    Ok(active.map(|(id, (_, channel))| (id, channel)).collect())
}

/// A delivery that is due.
struct Due {
    id: DbId,
    next_at: DbTs,
    /// The deliveries of its channel that are in progress when it is claimed.
    under_way: i64,
}

/// Returns the deliveries of a channel that were due first. On PostgreSQL no other transaction changes them
/// until this one ends; locked ones are skipped.
fn first_due(
    connection: &mut AnyConnection,
    config: DbId,
    free: i64,
    now: Timestamp,
) -> Result<Vec<Due>, QueryError> {
    let due = deliveries::table
        .filter(deliveries::config_id.eq(config))
        .filter(waits())
        .filter(deliveries::next_at.le(DbTs(now)))
        .order((deliveries::next_at.asc(), deliveries::id.asc()))
        .limit(free)
        .select((deliveries::id, deliveries::next_at));
    let rows: Vec<(DbId, DbTs)> = match connection {
        AnyConnection::Sqlite(sqlite) => due.load(sqlite)?,
        AnyConnection::Postgres(postgres) => due.for_update().skip_locked().load(postgres)?,
    };
    let places = PER_CHANNEL - free..;
    Ok(rows
        .into_iter()
        .zip(places)
        .map(|((id, next_at), under_way)| Due { id, next_at, under_way })
        .collect())
}

fn take(
    connection: &mut AnyConnection,
    ids: &[DbId],
    sender: SenderId,
    lease_until: Timestamp,
) -> Result<(), QueryError> {
    diesel::update(deliveries::table)
        .filter(deliveries::id.one_of(ids.to_vec()))
        .set((
            deliveries::state.eq(DeliveryState::Sending.as_str()),
            deliveries::attempt.eq(deliveries::attempt + 1),
            deliveries::lease_instance.eq(DbId::from(sender.instance)),
            deliveries::lease_boot.eq(DbId::from(sender.boot)),
            deliveries::lease_until.eq(DbTs(lease_until)),
        ))
        .execute(connection)?;
    Ok(())
}

type TakenRow = (DbId, DbId, i32, i32);

/// Returns the claimed deliveries by their ids.
fn taken(
    connection: &mut AnyConnection,
    ids: Vec<DbId>,
    sender: SenderId,
    channels: &HashMap<Uuid, Channel>,
) -> Result<HashMap<Uuid, ClaimedDelivery>, QueryError> {
    let columns = (deliveries::id, deliveries::config_id, deliveries::attempt, deliveries::failures);
    let rows: Vec<(TakenRow, EventRow)> = deliveries::table
        .inner_join(events::table.on(events::id.eq(deliveries::event_id)))
        .filter(deliveries::id.one_of(ids))
        .select((columns, EventRow::as_select()))
        .load(connection)?;
    let mut taken = HashMap::with_capacity(rows.len());
    for ((id, config, attempt, failures), mut event) in rows {
        let Some(channel) = channels.get(&config.0) else { continue };
        let claimed = ClaimedDelivery {
            claim: Claim { delivery: id.into(), attempt, sender },
            failures: failures.try_into().map_err(QueryError::unreadable)?,
            body: event.body.take(),
            event: event.try_into()?,
            channel: channel.clone(),
        };
        taken.insert(id.0, claimed);
    }
    Ok(taken)
}
