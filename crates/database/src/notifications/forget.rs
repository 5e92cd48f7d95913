//! Deletes old deliveries.

use diesel::{
    dsl::{exists, not},
    prelude::*,
};
use launchway_domain::{clock::Timestamp, notifications::DeliveryState};

use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::{Lock, hold},
    error::QueryError,
    schema::{deliveries, events, signing_secrets},
    statement::ListComparison as _,
};

/// The most deliveries that one call deletes, those that finished first. The next call continues after
/// them.
const AT_ONCE: i64 = 1000;

/// Deletes deliveries that finished in such a state before such a time, events with their last delivery,
/// and expired signing secrets. Returns the number of deliveries.
pub(super) fn forget(
    connection: &mut AnyConnection,
    over: [(DeliveryState, Timestamp); 2],
    now: Timestamp,
) -> Result<usize, QueryError> {
    // One at a time: of two transactions that delete the last deliveries of an event, neither would see
    // that the event is unused.
    hold(connection, Lock::Deliveries)?;
    let mut old: Vec<(DbId, DbId)> = Vec::new();
    for (state, before) in over {
        let room = AT_ONCE - i64::try_from(old.len()).unwrap_or(AT_ONCE);
        old.extend(over_before(connection, state, before, room)?);
    }
    let (ids, about): (Vec<DbId>, Vec<DbId>) = old.into_iter().unzip();
    let forgotten = diesel::delete(deliveries::table)
        .filter(deliveries::id.one_of(ids))
        // On PostgreSQL a user may have requested it again meanwhile.
        .filter(deliveries::finished_at.is_not_null())
        .execute(connection)?;
    let delivery = deliveries::table.filter(deliveries::event_id.eq(events::id));
    diesel::delete(events::table)
        .filter(events::id.one_of(about))
        .filter(not(exists(delivery)))
        .execute(connection)?;
    diesel::delete(signing_secrets::table)
        .filter(signing_secrets::valid_until.le(DbTs(now)))
        .execute(connection)?;
    Ok(forgotten)
}

fn over_before(
    connection: &mut AnyConnection,
    state: DeliveryState,
    before: Timestamp,
    most: i64,
) -> Result<Vec<(DbId, DbId)>, QueryError> {
    Ok(deliveries::table
        .filter(deliveries::state.eq(state.as_str()))
        .filter(deliveries::finished_at.lt(DbTs(before)))
        .order(deliveries::finished_at.asc())
        .limit(most)
        .select((deliveries::id, deliveries::event_id))
        .load(connection)?)
}
