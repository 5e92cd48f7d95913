//! Deletes the oldest lines of logs in the database.

use std::collections::BTreeMap;

use diesel::{dsl::max, prelude::*};

use super::usage;
use crate::{
    columns::DbId,
    connection::AnyConnection,
    error::QueryError,
    schema::{application_logs, deployment_log_heads, log_heads},
    search::index::forget_lines_before,
    statement::StatementCache as _,
};

/// The most lines that one call deletes, because other writers wait meanwhile.
const MOST_LINES: i64 = 10_000;
/// The most applications whose logs one call trims.
const MOST_APPLICATIONS: i64 = 100;

/// Deletes lines so that applications keep the newest `keep`. Returns the number of deleted lines.
pub(super) fn trim(connection: &mut AnyConnection, keep: i64) -> Result<usize, QueryError> {
    let keep = keep.max(0);
    let mut left = MOST_LINES;
    let mut forgotten = 0;
    for (application, first, last) in held_long_ones(connection, keep)? {
        let more = (last - first + 1 - keep).min(left);
        if more <= 0 {
            break;
        }
        forgotten += forget(connection, application, first, first + more - 1)?;
        left -= more;
    }
    Ok(forgotten)
}

/// Returns the applications with more than `keep` lines. On PostgreSQL no other transaction appends to them
/// or trims them until this one ends.
fn held_long_ones(connection: &mut AnyConnection, keep: i64) -> Result<Vec<(DbId, i64, i64)>, QueryError> {
    let long = log_heads::table
        .filter((log_heads::last_number - log_heads::first_number).ge(keep))
        .order(log_heads::application_id.asc())
        .limit(MOST_APPLICATIONS)
        .select((log_heads::application_id, log_heads::first_number, log_heads::last_number));
    Ok(match connection {
        AnyConnection::Sqlite(sqlite) => long.load(sqlite)?,
        AnyConnection::Postgres(postgres) => long.for_update().load(postgres)?,
    })
}

/// Deletes the lines from `first` to `last`, which are the oldest.
pub(super) fn forget(
    connection: &mut AnyConnection,
    application: DbId,
    first: i64,
    last: i64,
) -> Result<usize, QueryError> {
    let lines = application_logs::table
        .filter(application_logs::application_id.eq(application))
        .filter(application_logs::number.between(first, last));
    let bytes = usage::line_bytes(connection, true);
    let deployments: Vec<(DbId, Option<i64>, i64)> = lines
        .group_by(application_logs::deployment_id)
        .select((application_logs::deployment_id, max(application_logs::deployment_number), bytes))
        .load(connection)?;
    let forgotten = diesel::delete(lines).execute(connection)?;
    diesel::update(log_heads::table.find(application))
        .set(log_heads::first_number.eq(last + 1))
        .cached()
        .execute(connection)?;
    forget_lines_before(connection, application, last + 1)?;
    let freed = deployments.iter().map(|(_, _, bytes)| bytes).sum::<i64>();
    usage::add(connection, &BTreeMap::from([(application.0, -freed)]))?;
    for (deployment, last, _) in deployments {
        diesel::update(deployment_log_heads::table.find((deployment, application)))
            .set(deployment_log_heads::first_number.eq(last.unwrap_or_default() + 1))
            .cached()
            .execute(connection)?;
    }
    Ok(forgotten)
}
