//! State changes of runs and their steps.
//!
//! A transaction that changes a run and its steps changes the run first, to avoid deadlocks on PostgreSQL.

use std::collections::BTreeMap;

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    extensions::{ExecutionEnd, ExecutionState},
    ids::ExecutionId,
    jobs::JobState,
    store::StoreError,
};

use super::{announcements::announce_ends, writes::is_open};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::{QueryError, guarded},
    schema::{execution_steps, extension_executions, jobs},
    statement::{ListComparison as _, StatementCache as _},
};

/// The most runs that one call updates from their jobs, oldest first. The next call continues after them.
const AT_ONCE: i64 = 1000;

/// The names of the states from which `to` can be reached.
fn before(to: ExecutionState) -> Vec<&'static str> {
    ExecutionState::before(to).into_iter().map(ExecutionState::as_str).collect()
}

pub(super) fn begin(
    connection: &mut AnyConnection,
    id: ExecutionId,
    server_hostname: &str,
    at: Timestamp,
) -> Result<(), QueryError> {
    guarded(
        diesel::update(extension_executions::table)
            .filter(extension_executions::id.eq(DbId::from(id)))
            .filter(extension_executions::status.one_of(before(ExecutionState::Running)))
            .set((
                extension_executions::status.eq(ExecutionState::Running.as_str()),
                extension_executions::server_hostname.eq(server_hostname),
                extension_executions::started_at.eq(DbTs(at)),
            ))
            .cached()
            .execute(connection)?,
    )
}

pub(super) fn begin_step(
    connection: &mut AnyConnection,
    (execution, order): (ExecutionId, i32),
    at: Timestamp,
) -> Result<(), QueryError> {
    guarded(
        diesel::update(execution_steps::table)
            .filter(execution_steps::execution_id.eq(DbId::from(execution)))
            .filter(execution_steps::step_order.eq(order))
            .filter(execution_steps::status.one_of(before(ExecutionState::Running)))
            .set((
                execution_steps::status.eq(ExecutionState::Running.as_str()),
                execution_steps::started_at.eq(DbTs(at)),
            ))
            .cached()
            .execute(connection)?,
    )
}

pub(super) fn end_step(
    connection: &mut AnyConnection,
    (execution, order): (ExecutionId, i32),
    (state, exit_code): (ExecutionState, i32),
    at: Timestamp,
) -> Result<(), QueryError> {
    require_over(state)?;
    guarded(
        diesel::update(execution_steps::table)
            .filter(execution_steps::execution_id.eq(DbId::from(execution)))
            .filter(execution_steps::step_order.eq(order))
            .filter(execution_steps::status.eq(ExecutionState::Running.as_str()))
            .set((
                execution_steps::status.eq(state.as_str()),
                execution_steps::exit_code.eq(exit_code),
                execution_steps::completed_at.eq(DbTs(at)),
            ))
            .cached()
            .execute(connection)?,
    )
}

pub(super) fn finish(
    connection: &mut AnyConnection,
    id: ExecutionId,
    end: &ExecutionEnd,
    at: Timestamp,
) -> Result<(), QueryError> {
    require_over(end.state)?;
    guarded(
        diesel::update(extension_executions::table)
            .filter(extension_executions::id.eq(DbId::from(id)))
            .filter(extension_executions::status.one_of(before(end.state)))
            .set((
                extension_executions::status.eq(end.state.as_str()),
                extension_executions::exit_code.eq(end.exit_code),
                extension_executions::error_message.eq(&end.error_message),
                extension_executions::completed_at.eq(DbTs(at)),
            ))
            .cached()
            .execute(connection)?,
    )?;
    end_steps(connection, &[id.into()], (end.state, end.exit_code), at)?;
    announce_ends(connection, end.state, vec![id.into()], at)
}

/// Rejects a state that is not final.
fn require_over(state: ExecutionState) -> Result<(), QueryError> {
    if state.is_final() { Ok(()) } else { Err(StoreError::Stale.into()) }
}

/// Cancels the pending steps of runs, and ends the running one of each.
///
/// In this order, because on PostgreSQL one may begin meanwhile.
fn end_steps(
    connection: &mut AnyConnection,
    executions: &[DbId],
    (state, exit_code): (ExecutionState, i32),
    at: Timestamp,
) -> Result<(), QueryError> {
    diesel::update(execution_steps::table)
        .filter(execution_steps::execution_id.one_of(executions.to_vec()))
        .filter(execution_steps::status.eq(ExecutionState::Pending.as_str()))
        .set((
            execution_steps::status.eq(ExecutionState::Cancelled.as_str()),
            execution_steps::completed_at.eq(DbTs(at)),
        ))
        .cached()
        .execute(connection)?;
    diesel::update(execution_steps::table)
        .filter(execution_steps::execution_id.one_of(executions.to_vec()))
        .filter(execution_steps::status.eq(ExecutionState::Running.as_str()))
        .set((
            execution_steps::status.eq(state.as_str()),
            execution_steps::exit_code.eq(exit_code),
            execution_steps::completed_at.eq(DbTs(at)),
        ))
        .cached()
        .execute(connection)?;
    Ok(())
}

/// Ends the runs whose jobs have finished, with the job's outcome.
pub(super) fn follow_jobs(connection: &mut AnyConnection, at: Timestamp) -> Result<(), QueryError> {
    let mut by_end: BTreeMap<(&'static str, String), (ExecutionState, Vec<DbId>)> = BTreeMap::new();
    for (id, job, reason) in mismatches(connection)? {
        let ExecutionEnd { state, error_message, .. } = ExecutionEnd::after_job(job, reason.as_deref());
        by_end.entry((state.as_str(), error_message)).or_insert((state, Vec::new())).1.push(id);
    }
    for ((_, message), (state, ids)) in by_end {
        diesel::update(extension_executions::table)
            .filter(extension_executions::id.one_of(ids.clone()))
            .set((
                extension_executions::status.eq(state.as_str()),
                extension_executions::error_message.eq(message),
                extension_executions::completed_at.eq(DbTs(at)),
            ))
            .cached()
            .execute(connection)?;
        end_steps(connection, &ids, (state, 0), at)?;
        announce_ends(connection, state, ids, at)?;
    }
    Ok(())
}

/// Returns the open runs whose job has finished, with its outcome and reason. On PostgreSQL no other
/// transaction changes them until this one ends.
fn mismatches(connection: &mut AnyConnection) -> Result<Vec<(DbId, JobState, Option<String>)>, QueryError> {
    let rows: Vec<(DbId, String, Option<String>)> = extension_executions::table
        .inner_join(jobs::table.on(jobs::id.eq(extension_executions::job_id)))
        .filter(is_open())
        .filter(jobs::finished_at.is_not_null())
        .order((extension_executions::created_at.asc(), extension_executions::id.asc()))
        .limit(AT_ONCE)
        .select((extension_executions::id, jobs::state, jobs::reason))
        .load(connection)?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let held = held_open(connection, rows.iter().map(|(id, ..)| *id).collect())?;
    let mismatch = |(id, state, reason): (DbId, String, Option<String>)| {
        Ok((id, JobState::try_from(state).map_err(QueryError::unreadable)?, reason))
    };
    rows.into_iter().filter(|(id, ..)| held.contains(id)).map(mismatch).collect()
}

/// Returns those of the runs that are still open, locked in a fixed order to avoid deadlocks.
fn held_open(connection: &mut AnyConnection, ids: Vec<DbId>) -> Result<Vec<DbId>, QueryError> {
    let open = extension_executions::table
        .filter(extension_executions::id.one_of(ids))
        .filter(is_open())
        .order(extension_executions::id.asc())
        .select(extension_executions::id);
    Ok(match connection {
        AnyConnection::Sqlite(sqlite) => open.load(sqlite)?,
        AnyConnection::Postgres(postgres) => open.for_no_key_update().load(postgres)?,
    })
}
