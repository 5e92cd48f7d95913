//! The drains that replicas are requested to do.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    deployments::ContainerId,
    ids::InstanceId,
    replicas::{ALIVE_WITHIN, Drain, DrainScope, LONGEST_DRAIN, RETURNS_WITHIN},
};

use super::{database_now, rows::seen_within};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::QueryError,
    schema::{drains, replicas},
    statement::{ListComparison as _, StatementCache as _},
};

/// Inserts a request for each expected replica but `replica`, and returns their number.
pub(super) fn request(
    connection: &mut AnyConnection,
    replica: InstanceId,
    drain: &Drain,
    drain_scope: DrainScope,
) -> Result<usize, QueryError> {
    let now = database_now(connection)?;
    let others = expected(connection, drain_scope, now)?;
    let others: Vec<DbId> = others.into_iter().filter(|other| *other != DbId::from(replica)).collect();
    for other in &others {
        let row = (
            drains::replica.eq(*other),
            drains::application_id.eq(DbId::from(drain.application)),
            drains::container.eq(container(drain)),
            drains::requested_at.eq(DbTs(now)),
        );
        each_backend!(connection, backend => diesel::insert_into(drains::table)
            .values(row)
            .on_conflict((drains::replica, drains::application_id, drains::container))
            // One that an earlier request left behind says nothing about this one.
            .do_update()
            .set((drains::requested_at.eq(DbTs(now)), drains::drained_at.eq(None::<DbTs>)))
            .cached()
            .execute(backend))?;
    }
    if let AnyConnection::Postgres(postgres) = connection {
        // The others look for requests when routes change.
        diesel::sql_query("SELECT pg_notify(('launchway_' || current_schema())::name::text, 'routes')")
            .cached()
            .execute(postgres)?;
    }
    Ok(others.len())
}

/// Returns the replicas whose drain is waited for.
fn expected(
    connection: &mut AnyConnection,
    drain_scope: DrainScope,
    now: Timestamp,
) -> Result<Vec<DbId>, QueryError> {
    let alive = seen_within(ALIVE_WITHIN, now).and(replicas::left_at.is_null());
    let ids = replicas::table.select(replicas::id);
    Ok(match drain_scope {
        DrainScope::Living => ids.filter(alive).load(connection)?,
        DrainScope::Returning => {
            // One that was refused at its start never had a route.
            let returns = seen_within(RETURNS_WITHIN, now).and(replicas::routes_seen.gt(0));
            ids.filter(alive.or(returns)).load(connection)?
        }
    })
}

pub(super) fn undrained(
    connection: &mut AnyConnection,
    drain: &Drain,
    drain_scope: DrainScope,
) -> Result<usize, QueryError> {
    let now = database_now(connection)?;
    let expected = expected(connection, drain_scope, now)?;
    let undrained: i64 = drains::table
        .filter(drains::application_id.eq(DbId::from(drain.application)))
        .filter(drains::container.eq(container(drain)))
        .filter(drains::drained_at.is_null())
        .filter(drains::replica.one_of(expected))
        .count()
        .get_result(connection)?;
    Ok(usize::try_from(undrained).unwrap_or_default())
}

pub(super) fn forget(connection: &mut AnyConnection, drain: &Drain) -> Result<(), QueryError> {
    diesel::delete(drains::table)
        .filter(drains::application_id.eq(DbId::from(drain.application)))
        .filter(drains::container.eq(container(drain)))
        .execute(connection)?;
    Ok(())
}

/// Deletes the requests of servers that do not wait any more.
pub(super) fn forget_old(connection: &mut AnyConnection, now: Timestamp) -> Result<(), QueryError> {
    diesel::delete(drains::table)
        .filter(drains::requested_at.lt(DbTs(now - LONGEST_DRAIN)))
        .execute(connection)?;
    Ok(())
}

pub(super) fn of(connection: &mut AnyConnection, replica: InstanceId) -> Result<Vec<Drain>, QueryError> {
    let rows: Vec<(DbId, String)> = drains::table
        .filter(drains::replica.eq(DbId::from(replica)))
        .filter(drains::drained_at.is_null())
        .select((drains::application_id, drains::container))
        .load(connection)?;
    rows.into_iter()
        .map(|(application, container)| {
            let container = match container.as_str() {
                "" => None,
                id => Some(id.parse::<ContainerId>().map_err(QueryError::unreadable)?),
            };
            Ok(Drain { application: application.into(), container })
        })
        .collect()
}

pub(super) fn report(
    connection: &mut AnyConnection,
    replica: InstanceId,
    drain: &Drain,
) -> Result<(), QueryError> {
    let now = DbTs(database_now(connection)?);
    diesel::update(drains::table)
        .filter(drains::replica.eq(DbId::from(replica)))
        .filter(drains::application_id.eq(DbId::from(drain.application)))
        .filter(drains::container.eq(container(drain)))
        .set(drains::drained_at.eq(now))
        .cached()
        .execute(connection)?;
    Ok(())
}

fn container(drain: &Drain) -> &str {
    drain.container.as_ref().map_or("", ContainerId::as_str)
}
