//! The bytes that logs take in the database.
//!
//! **Invariant:** `log_usage` has the bytes of the kept lines of each application. It changes in the
//! transaction that appends or deletes lines, under the lock on the head of that log.

use std::{collections::BTreeMap, time::Instant};

use diesel::{prelude::*, sql_types::BigInt, upsert::excluded};
use launchway_domain::{
    ids::{ApplicationId, DeploymentId},
    logs::{Level, NewLine},
};
use uuid::Uuid;

use super::{
    Estimates,
    append::{Limits, append},
    trim::forget,
};
use crate::{
    columns::DbId,
    connection::AnyConnection,
    dialect::upsert_in_chunks,
    error::QueryError,
    schema::{application_logs, applications, log_heads, log_usage},
    statement::{Literal, StatementCache as _, literal},
};

/// The bytes that a line takes in addition to its text: those of its row and of its index entries.
const LINE_OVERHEAD: i64 = 100;
/// The lines per step, and the most steps, because other writers wait meanwhile.
const STEP: i64 = 1000;
const MOST_STEPS: usize = 20;

/// Returns the bytes of one line.
pub(super) fn bytes_of(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX / 2) + LINE_OVERHEAD
}

/// Returns the SQL for the bytes of one line, or of the sum of several.
pub(super) fn line_bytes(connection: &AnyConnection, is_sum: bool) -> Literal<BigInt> {
    literal(match (connection, is_sum) {
        (AnyConnection::Sqlite(_), false) => "LENGTH(CAST(application_logs.log AS BLOB)) + 100",
        (AnyConnection::Sqlite(_), true) => "SUM(LENGTH(CAST(application_logs.log AS BLOB)) + 100)",
        (AnyConnection::Postgres(_), false) => "CAST(octet_length(application_logs.log) + 100 AS BIGINT)",
        (AnyConnection::Postgres(_), true) => "CAST(SUM(octet_length(application_logs.log) + 100) AS BIGINT)",
    })
}

/// Adds to the bytes of applications' logs; a negative number subtracts.
pub(super) fn add(connection: &mut AnyConnection, bytes: &BTreeMap<Uuid, i64>) -> Result<(), QueryError> {
    let rows: Vec<_> = bytes
        .iter()
        .map(|(application, bytes)| {
            (log_usage::application_id.eq(DbId(*application)), log_usage::bytes.eq(*bytes))
        })
        .collect();
    let sum = log_usage::bytes.eq(log_usage::bytes + excluded(log_usage::bytes));
    upsert_in_chunks!(connection, &rows, (backend, rows) => diesel::insert_into(log_usage::table)
        .values(rows)
        .on_conflict(log_usage::application_id)
        .do_update()
        .set(sum)
        .cached()
        .execute(backend)?);
    Ok(())
}

/// Deletes the oldest lines of logs that exceed their limit, and appends a line about it to each. The heads
/// of `appended`, which has the bytes that were appended to each log, are locked.
pub(super) fn enforce(
    connection: &mut AnyConnection,
    appended: BTreeMap<Uuid, i64>,
    Limits { bytes: limits, estimates }: &Limits,
) -> Result<(), QueryError> {
    for (application, appended) in appended {
        let application = DbId(application);
        let bytes: Option<i64> =
            log_usage::table.find(application).select(log_usage::bytes).first(connection).optional()?;
        if let Some(excess) = excess(bytes.unwrap_or_default(), limits.application) {
            shorten(connection, application, excess, "LAUNCHWAY_APPLICATION_LOG_SIZE")?;
        }
        enforce_organization(connection, (application, appended), limits.organization, estimates)?;
    }
    Ok(())
}

/// Returns the bytes to free: a tenth more than necessary, so that this does not happen with every line.
fn excess(bytes: i64, limit: u64) -> Option<i64> {
    let limit = i64::try_from(limit).ok().filter(|limit| *limit > 0)?;
    (bytes > limit).then(|| bytes - (limit - limit / 10))
}

fn enforce_organization(
    connection: &mut AnyConnection,
    (application, appended): (DbId, i64),
    limit: u64,
    estimates: &Estimates,
) -> Result<(), QueryError> {
    if limit == 0 {
        return Ok(());
    }
    let organization: Option<DbId> = applications::table
        .find(application)
        .select(applications::organization_id)
        .first(connection)
        .optional()?;
    let Some(organization) = organization else { return Ok(()) };
    let now = Instant::now();
    if estimates.add(organization.0, appended, limit, now) {
        return Ok(());
    }
    let logs = || {
        log_usage::table
            .inner_join(applications::table.on(applications::id.eq(log_usage::application_id)))
            .filter(applications::organization_id.eq(organization))
            .filter(applications::deleted_at.is_null())
    };
    let all: Vec<i64> = logs().select(log_usage::bytes).load(connection)?;
    let all = all.iter().sum();
    estimates.set(organization.0, all, now);
    let Some(excess) = excess(all, limit) else { return Ok(()) };
    let largest: DbId =
        logs().order(log_usage::bytes.desc()).select(log_usage::application_id).first(connection)?;
    if largest.0 == application.0 || try_hold(connection, largest)? {
        shorten(connection, largest, excess, "LAUNCHWAY_ORGANIZATION_LOG_SIZE")?;
    }
    Ok(())
}

/// Tries to lock the head of another log without waiting, and returns whether that worked: two transactions
/// that append must not wait for each other.
fn try_hold(connection: &mut AnyConnection, application: DbId) -> Result<bool, QueryError> {
    let head = log_heads::table.find(application).select(log_heads::application_id);
    let held: Option<DbId> = match connection {
        AnyConnection::Sqlite(_) => return Ok(true),
        AnyConnection::Postgres(postgres) => head.for_update().skip_locked().first(postgres).optional()?,
    };
    Ok(held.is_some())
}

/// Deletes the oldest lines until `excess` bytes are free, and appends a line with their number.
fn shorten(
    connection: &mut AnyConnection,
    application: DbId,
    excess: i64,
    setting: &str,
) -> Result<(), QueryError> {
    let (mut lines, mut freed) = (0, 0);
    for _ in 0..MOST_STEPS {
        if freed >= excess {
            break;
        }
        let bytes = line_bytes(connection, false);
        let oldest: Vec<(i64, i64)> = application_logs::table
            .filter(application_logs::application_id.eq(application))
            .order(application_logs::number.asc())
            .limit(STEP)
            .select((application_logs::number, bytes))
            .load(connection)?;
        let Some((first, _)) = oldest.first().copied() else { break };
        let mut last = first;
        for (number, bytes) in oldest {
            last = number;
            freed += bytes;
            lines += 1;
            if freed >= excess {
                break;
            }
        }
        forget(connection, application, first, last)?;
    }
    note(connection, application, lines, freed, setting)
}

/// Appends the line about the deleted lines after the newest line that is left.
fn note(
    connection: &mut AnyConnection,
    application: DbId,
    lines: i64,
    freed: i64,
    setting: &str,
) -> Result<(), QueryError> {
    let newest: Option<(DbId, crate::columns::DbTs)> = application_logs::table
        .filter(application_logs::application_id.eq(application))
        .order(application_logs::number.desc())
        .select((application_logs::deployment_id, application_logs::created_at))
        .first(connection)
        .optional()?;
    let Some((deployment, at)) = newest.filter(|_| lines > 0) else { return Ok(()) };
    let line = NewLine {
        application_id: ApplicationId::from(application.0),
        deployment_id: DeploymentId::from(deployment.0),
        level: Level::Warn,
        text: format!("The oldest {lines} lines ({} KiB) were removed ({setting})", freed >> 10),
        at: at.into(),
    };
    append(connection, &[line]).map(drop)
}
