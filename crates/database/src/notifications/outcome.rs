//! The outcome of claimed deliveries, and of those that are no longer claimed.

use std::collections::HashMap;

use chrono::TimeDelta;
use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::EventId,
    notifications::{Attempt, Claim, DeliveryState, Next, SenderId},
    store::StoreError,
};
use uuid::Uuid;

use super::rows::{held_by, is_sent, no_lease, waits};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::{Lock, hold},
    error::{QueryError, guarded},
    schema::{deliveries, delivery_attempts, events, smtp_configs, webhook_configs},
    statement::{ListComparison as _, StatementCache as _},
};

/// The error of deliveries that end because the organization disabled the channel.
pub(super) const SWITCHED_OFF: &str = "the channel was switched off";
/// The error of deliveries that end because the organization deleted the channel.
pub(super) const REMOVED: &str = "the channel was removed";
/// The error of deliveries that end because the receiver answered that it wants no more.
const UNWANTED: &str = "the receiver no longer accepts messages, and the channel was switched off";

pub(super) fn keep_body(
    connection: &mut AnyConnection,
    event: EventId,
    body: &str,
) -> Result<String, QueryError> {
    let id = DbId::from(event);
    // On PostgreSQL the later of two waits for the other, and then finds a body.
    diesel::update(events::table)
        .filter(events::id.eq(id))
        .filter(events::body.is_null())
        .set(events::body.eq(body))
        .cached()
        .execute(connection)?;
    let kept: Option<Option<String>> =
        events::table.find(id).select(events::body).first(connection).optional()?;
    Ok(kept.flatten().ok_or(StoreError::Stale)?)
}

/// The next state of a delivery.
enum After {
    Delivered,
    Waits(Timestamp),
    Dead(String),
}

pub(super) fn record(
    connection: &mut AnyConnection,
    claim: &Claim,
    attempt: &Attempt,
    next: Next,
) -> Result<(), QueryError> {
    let held: Option<(DbId, i32)> = deliveries::table
        .filter(held_by(claim))
        .select((deliveries::config_id, deliveries::failures))
        .first(connection)
        .optional()?;
    let (config, failures) = held.ok_or(StoreError::Stale)?;
    let failures = if next == Next::Done { failures } else { failures + 1 };
    let error = shortened(&attempt.error);
    let ended_at = attempt.at + TimeDelta::from_std(attempt.took).unwrap_or_default();
    let mut is_disabled = next == Next::Disable;
    if is_disabled {
        lock_channel(connection, config)?;
    }
    let after = match next {
        Next::Done => After::Delivered,
        Next::Again(at) => match disabled_reason(connection, config)? {
            None => After::Waits(at),
            Some(reason) => After::Dead(reason.to_owned()),
        },
        Next::GiveUp => After::Dead(given_up(failures)),
        // The answer came from the channel's previous address.
        Next::Disable if was_changed(connection, config, attempt.at)? => {
            is_disabled = false;
            After::Waits(ended_at)
        }
        Next::Disable => After::Dead(UNWANTED.to_owned()),
    };
    move_on(connection, claim, after, failures, ended_at)?;
    insert_attempt(connection, claim, attempt, error)?;
    if is_disabled { disable(connection, config, ended_at) } else { Ok(()) }
}

/// Shortens an error to the stored length.
fn shortened(error: &str) -> String {
    // PostgreSQL cannot store that character.
    error.chars().filter(|c| *c != '\0').take(Attempt::LONGEST_ERROR).collect()
}

/// Leaves the error out, which may quote the receiver: not every user who sees this may see that.
fn given_up(failures: i32) -> String {
    if failures == 1 {
        "given up after 1 attempt".to_owned()
    } else {
        format!("given up after {failures} attempts")
    }
}

/// Returns whether a channel was changed after an attempt had begun.
fn was_changed(connection: &mut AnyConnection, config: DbId, began: Timestamp) -> Result<bool, QueryError> {
    let changed: Option<DbTs> = webhook_configs::table
        .find(config)
        .filter(webhook_configs::is_active.eq(true))
        .select(webhook_configs::updated_at)
        .first(connection)
        .optional()?;
    Ok(changed.is_some_and(|changed| changed.0 > began))
}

fn move_on(
    connection: &mut AnyConnection,
    claim: &Claim,
    after: After,
    failures: i32,
    at: Timestamp,
) -> Result<(), QueryError> {
    let (state, next_at, reason, finished_at) = match after {
        After::Delivered => (DeliveryState::Delivered, None, String::new(), Some(at)),
        After::Waits(next_at) => (DeliveryState::Pending, Some(next_at), String::new(), None),
        After::Dead(reason) => (DeliveryState::Dead, None, reason, Some(at)),
    };
    guarded(
        diesel::update(deliveries::table)
            .filter(held_by(claim))
            .set((
                deliveries::state.eq(state.as_str()),
                deliveries::failures.eq(failures),
                next_at.map(|next_at| deliveries::next_at.eq(DbTs(next_at))),
                deliveries::reason.eq(reason),
                deliveries::finished_at.eq(finished_at.map(DbTs)),
                no_lease(),
            ))
            .cached()
            .execute(connection)?,
    )
}

fn insert_attempt(
    connection: &mut AnyConnection,
    claim: &Claim,
    attempt: &Attempt,
    error: String,
) -> Result<(), QueryError> {
    diesel::insert_into(delivery_attempts::table)
        .values((
            delivery_attempts::delivery_id.eq(DbId::from(claim.delivery)),
            // The claim's, because no two claims have the same.
            delivery_attempts::number.eq(claim.attempt),
            delivery_attempts::at.eq(DbTs(attempt.at)),
            delivery_attempts::took_ms.eq(i64::try_from(attempt.took.as_millis()).unwrap_or(i64::MAX)),
            delivery_attempts::status.eq(attempt.status.map(i32::from)),
            delivery_attempts::error.eq(error),
        ))
        .execute(connection)?;
    diesel::delete(delivery_attempts::table)
        .filter(delivery_attempts::delivery_id.eq(DbId::from(claim.delivery)))
        .filter(delivery_attempts::number.le(claim.attempt - Attempt::KEPT))
        .execute(connection)?;
    Ok(())
}

/// Locks a channel before its deliveries, as whoever switches it off does: in another order the two would deadlock.
fn lock_channel(connection: &mut AnyConnection, config: DbId) -> Result<(), QueryError> {
    if let AnyConnection::Postgres(postgres) = connection {
        let webhook = webhook_configs::table.find(config).select(webhook_configs::id);
        webhook.for_update().execute(postgres)?;
        smtp_configs::table.find(config).select(smtp_configs::id).for_update().execute(postgres)?;
    }
    Ok(())
}

/// Disables a channel whose receiver wants no more messages.
fn disable(connection: &mut AnyConnection, config: DbId, at: Timestamp) -> Result<(), QueryError> {
    diesel::update(webhook_configs::table.find(config))
        .set((webhook_configs::is_active.eq(false), webhook_configs::updated_at.eq(DbTs(at))))
        .cached()
        .execute(connection)?;
    diesel::update(smtp_configs::table.find(config))
        .set((smtp_configs::is_active.eq(false), smtp_configs::updated_at.eq(DbTs(at))))
        .cached()
        .execute(connection)?;
    end_waiting(connection, config, UNWANTED, at)
}

/// Ends the pending deliveries of a channel.
pub(super) fn end_waiting(
    connection: &mut AnyConnection,
    config: DbId,
    reason: &str,
    at: Timestamp,
) -> Result<(), QueryError> {
    diesel::update(deliveries::table)
        .filter(deliveries::config_id.eq(config))
        .filter(waits())
        .set((
            deliveries::state.eq(DeliveryState::Dead.as_str()),
            deliveries::reason.eq(reason),
            deliveries::finished_at.eq(DbTs(at)),
        ))
        .cached()
        .execute(connection)?;
    Ok(())
}

/// Returns the reason why a channel is off; `None` for an active one.
pub(super) fn disabled_reason(
    connection: &mut AnyConnection,
    config: DbId,
) -> Result<Option<&'static str>, QueryError> {
    let webhook: Option<bool> = webhook_configs::table
        .find(config)
        .select(webhook_configs::is_active)
        .first(connection)
        .optional()?;
    let is_active: Option<bool> = match webhook {
        Some(is_active) => Some(is_active),
        None => {
            smtp_configs::table.find(config).select(smtp_configs::is_active).first(connection).optional()?
        }
    };
    Ok(match is_active {
        Some(true) => None,
        Some(false) => Some(SWITCHED_OFF),
        None => Some(REMOVED),
    })
}

/// Requeues the deliveries of lost senders. Returns their number.
pub(super) fn rescue(
    connection: &mut AnyConnection,
    sender: SenderId,
    now: Timestamp,
) -> Result<usize, QueryError> {
    // One at a time, to avoid deadlocks between two rescues.
    hold(connection, Lock::Deliveries)?;
    let has_ended = || deliveries::lease_until.le(DbTs(now));
    let is_left_over = || {
        let of_instance = deliveries::lease_instance.eq(DbId::from(sender.instance));
        of_instance.and(deliveries::lease_boot.ne(DbId::from(sender.boot)))
    };
    let lost: Vec<(DbId, DbId)> = deliveries::table
        .filter(is_sent())
        .filter(has_ended().or(is_left_over()))
        .select((deliveries::config_id, deliveries::id))
        .load(connection)?;
    let mut by_config: HashMap<Uuid, Vec<DbId>> = HashMap::new();
    for (config, id) in lost {
        by_config.entry(config.0).or_default().push(id);
    }
    let mut rescued = 0;
    for (config, ids) in by_config {
        // Checked again, because on PostgreSQL one may have been recorded since.
        let still_lost = diesel::update(deliveries::table)
            .filter(deliveries::id.one_of(ids))
            .filter(is_sent())
            .filter(has_ended().or(is_left_over()));
        rescued += match disabled_reason(connection, DbId(config))? {
            None => still_lost
                .set((
                    deliveries::state.eq(DeliveryState::Pending.as_str()),
                    deliveries::next_at.eq(DbTs(now)),
                    no_lease(),
                ))
                .execute(connection)?,
            Some(reason) => still_lost
                .set((
                    deliveries::state.eq(DeliveryState::Dead.as_str()),
                    deliveries::reason.eq(reason),
                    deliveries::finished_at.eq(DbTs(now)),
                    no_lease(),
                ))
                .execute(connection)?,
        };
    }
    Ok(rescued)
}
