//! Appends to logs in the database.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use diesel::{prelude::*, sql_types::Nullable, upsert::excluded};
use launchway_domain::{
    clock::Timestamp,
    ids::DeploymentId,
    logs::{Level, LogLimits, NewLine},
    store::StoreError,
};
use uuid::Uuid;

use super::{Estimates, rows::NewRow, usage};
use crate::{
    columns::{DbId, DbTs, Ts},
    connection::AnyConnection,
    dialect::{hold_each, insert_in_chunks, upsert_in_chunks},
    error::QueryError,
    schema::{application_logs, applications, deployment_log_heads, log_heads},
    search::lower_case,
    statement::{ListComparison as _, Literal, StatementCache as _, literal},
};

/// Locks the applications of lines that are appended later in the transaction: other writes may need these locks, which
/// come before those of heads.
pub(crate) fn hold<'a>(
    connection: &mut AnyConnection,
    lines: impl IntoIterator<Item = &'a NewLine>,
) -> Result<(), QueryError> {
    hold_each(connection, applications_of(lines).into_iter().map(DbId))
}

/// The limits of logs, and the estimates of what they take.
pub(super) struct Limits {
    pub(super) bytes: LogLimits,
    pub(super) estimates: Arc<Estimates>,
}

/// Appends lines, and deletes the oldest ones of logs that exceed `limits`.
pub(super) fn append_within(
    connection: &mut AnyConnection,
    lines: &[NewLine],
    limits: &Limits,
) -> Result<(), QueryError> {
    let appended = append(connection, lines)?;
    usage::enforce(connection, appended, limits)
}

/// Fails with `Stale` unless the newest line that `deployment` has printed is of the time `after`. No other transaction
/// collects its output until this one ends.
pub(super) fn require_last_printed(
    connection: &mut AnyConnection,
    deployment: DeploymentId,
    after: Option<Timestamp>,
    lines: &[NewLine],
) -> Result<(), QueryError> {
    hold(connection, lines)?;
    let printed: Option<Option<DbTs>> = deployment_log_heads::table
        .filter(deployment_log_heads::deployment_id.eq(DbId::from(deployment)))
        .select(deployment_log_heads::last_printed_at)
        .first(connection)
        .optional()?;
    // PostgreSQL stores whole microseconds.
    let whole = |time: Timestamp| time.timestamp_micros();
    if printed.flatten().map(|printed| whole(printed.0)) == after.map(whole) {
        Ok(())
    } else {
        Err(StoreError::Stale.into())
    }
}

fn applications_of<'a>(lines: impl IntoIterator<Item = &'a NewLine>) -> BTreeSet<Uuid> {
    lines.into_iter().map(|line| line.application_id.into()).collect()
}

/// Appends lines to the logs of their applications, and returns the bytes that were appended to each. Lines of a deleted
/// application are dropped.
pub(crate) fn append(
    connection: &mut AnyConnection,
    lines: &[NewLine],
) -> Result<BTreeMap<Uuid, i64>, QueryError> {
    let there = match lines {
        [] => BTreeSet::new(),
        lines => existing_applications(connection, applications_of(lines))?,
    };
    let lines: Vec<&NewLine> =
        lines.iter().filter(|line| there.contains(&line.application_id.into())).collect();
    if lines.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut ends = hold_ends(connection, &lines)?;
    let mut deployment_ends = move_deployment_ends(connection, &lines)?;
    let (mut rows, mut bytes) = (Vec::with_capacity(lines.len()), BTreeMap::new());
    for line in lines {
        let end = ends.entry(line.application_id.into()).or_default();
        *end += 1;
        let deployment_end = deployment_ends.entry(deployment_of(line)).or_default();
        *deployment_end += 1;
        rows.push(row(line, *end, *deployment_end));
        *bytes.entry(line.application_id.into()).or_default() += usage::bytes_of(&line.text);
    }
    insert_in_chunks!(connection, application_logs::table, &rows);
    usage::add(connection, &bytes)?;
    Ok(bytes)
}

fn existing_applications(
    connection: &mut AnyConnection,
    ids: BTreeSet<Uuid>,
) -> Result<BTreeSet<Uuid>, QueryError> {
    let there: Vec<DbId> = applications::table
        .filter(applications::id.one_of(ids.into_iter().map(DbId)))
        .filter(applications::deleted_at.is_null())
        .select(applications::id)
        .load(connection)?;
    Ok(there.into_iter().map(|id| id.0).collect())
}

/// Advances the ends of the applications' logs by the lines, and returns where they were. On PostgreSQL no
/// other transaction appends there until this one ends.
fn hold_ends(connection: &mut AnyConnection, lines: &[&NewLine]) -> Result<BTreeMap<Uuid, i64>, QueryError> {
    let mut more: BTreeMap<Uuid, i64> = BTreeMap::new();
    for line in lines {
        *more.entry(line.application_id.into()).or_default() += 1;
    }
    // In a fixed order, to avoid deadlocks.
    let heads: Vec<_> = more
        .iter()
        .map(|(application, more)| {
            (
                log_heads::application_id.eq(DbId(*application)),
                log_heads::first_number.eq(1),
                log_heads::last_number.eq(*more),
            )
        })
        .collect();
    let longer = log_heads::last_number.eq(log_heads::last_number + excluded(log_heads::last_number));
    let mut ends: Vec<(DbId, i64)> = Vec::with_capacity(heads.len());
    upsert_in_chunks!(connection, &heads, (backend, heads) => {
        let upsert = diesel::insert_into(log_heads::table)
            .values(heads)
            .on_conflict(log_heads::application_id)
            .do_update()
            .set(longer)
            .returning((log_heads::application_id, log_heads::last_number));
        ends.extend(upsert.cached().get_results::<(DbId, i64)>(backend)?);
    });
    let before = |(application, end): (DbId, i64)| (application.0, end - more[&application.0]);
    Ok(ends.into_iter().map(before).collect())
}

/// A deployment and its application.
type Deployment = (Uuid, Uuid);

fn deployment_of(line: &NewLine) -> Deployment {
    (line.deployment_id.into(), line.application_id.into())
}

/// Advances the ends of the deployments' logs by the lines, and returns where they were. They change only together with
/// those of their applications, so the locks on these cover them.
fn move_deployment_ends(
    connection: &mut AnyConnection,
    lines: &[&NewLine],
) -> Result<BTreeMap<Deployment, i64>, QueryError> {
    // The number of lines of each deployment, and the time of the newest that its container printed.
    let mut more: BTreeMap<Deployment, (i64, Option<Timestamp>)> = BTreeMap::new();
    for line in lines {
        let (number, last_printed_at) = more.entry(deployment_of(line)).or_default();
        *number += 1;
        if line.level == Level::Runtime {
            *last_printed_at = (*last_printed_at).max(Some(line.at));
        }
    }
    let heads: Vec<_> = more
        .iter()
        .map(|((deployment, application), (number, last_printed_at))| {
            (
                deployment_log_heads::deployment_id.eq(DbId(*deployment)),
                deployment_log_heads::application_id.eq(DbId(*application)),
                deployment_log_heads::first_number.eq(1),
                deployment_log_heads::last_number.eq(*number),
                deployment_log_heads::last_printed_at.eq(last_printed_at.map(DbTs)),
            )
        })
        .collect();
    let moved = (
        deployment_log_heads::last_number
            .eq(deployment_log_heads::last_number + excluded(deployment_log_heads::last_number)),
        deployment_log_heads::last_printed_at.eq(later_printed_at()),
    );
    let mut ends: Vec<(DbId, DbId, i64)> = Vec::with_capacity(heads.len());
    upsert_in_chunks!(connection, &heads, (backend, heads) => {
        let upsert = diesel::insert_into(deployment_log_heads::table)
            .values(heads)
            .on_conflict((deployment_log_heads::deployment_id, deployment_log_heads::application_id))
            .do_update()
            .set(moved)
            .returning((
                deployment_log_heads::deployment_id,
                deployment_log_heads::application_id,
                deployment_log_heads::last_number,
            ));
        ends.extend(upsert.cached().get_results::<(DbId, DbId, i64)>(backend)?);
    });
    let before = |(deployment, application, end): (DbId, DbId, i64)| {
        let deployment = (deployment.0, application.0);
        (deployment, end - more[&deployment].0)
    };
    Ok(ends.into_iter().map(before).collect())
}

/// Selects the later time of the stored head and the inserted one, each of which may be null.
fn later_printed_at() -> Literal<Nullable<Ts>> {
    literal(
        "CASE WHEN excluded.last_printed_at IS NULL \
              OR deployment_log_heads.last_printed_at > excluded.last_printed_at \
         THEN deployment_log_heads.last_printed_at ELSE excluded.last_printed_at END",
    )
}

fn row(line: &NewLine, number: i64, deployment_number: i64) -> NewRow {
    NewRow {
        application_id: line.application_id.into(),
        number,
        deployment_id: line.deployment_id.into(),
        deployment_number,
        level: line.level.as_str(),
        log: line.text.clone(),
        search: searchable(&line.text),
        created_at: DbTs(line.at),
    }
}

/// Returns the text in lower case, or `None` if the databases can compute it: they know A to Z.
fn searchable(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let lower = lower_case(text);
    (lower != text.to_ascii_lowercase()).then_some(lower)
}
