//! Writes jobs to the database, together with other changes.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::{JobId, SubjectId},
    jobs::{Event, JobState, Lease, NewJob, Outcome, Write},
    organizations::Scope,
    store::StoreError,
};

use super::{
    interrupt::no_lease,
    rows::{held_by, held_job, waits_replaceable},
};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::{each_backend, hold_one},
    error::{QueryError, guarded},
    schema::{job_turns, jobs},
    statement::StatementCache as _,
};

/// Applies one change.
pub(crate) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::Enqueue(job) => enqueue(connection, job),
        Write::RequestCancel { scope, id, at } => request_cancel(connection, *scope, *id, *at),
        Write::RequestCancelAll { scope, subject, at } => {
            request_cancel_all(connection, *scope, *subject, *at)
        }
        Write::Prove(lease) => prove(connection, lease),
        Write::Settle { lease, outcome, at } => settle(connection, lease, outcome, *at),
    }
}

fn enqueue(connection: &mut AnyConnection, job: &NewJob) -> Result<(), QueryError> {
    if job.replaceable {
        hold_one(connection, job.subject.into())?;
        supersede(connection, job)?;
    }
    diesel::insert_into(jobs::table)
        .values((
            jobs::id.eq(DbId::from(job.id)),
            jobs::kind.eq(job.kind.as_str()),
            jobs::organization_id.eq(DbId::from(job.scope.id())),
            jobs::subject.eq(DbId::from(job.subject)),
            jobs::replaceable.eq(job.replaceable),
            jobs::payload.eq(&job.payload),
            jobs::pool.eq(job.pool.as_str()),
            jobs::state.eq(JobState::Queued.as_str()),
            jobs::attempt.eq(0),
            jobs::excused.eq(0),
            jobs::run_at.eq(DbTs(job.run_at)),
            jobs::enqueued_at.eq(DbTs(job.enqueued_at)),
        ))
        .execute(connection)?;
    let turn = (job_turns::organization_id.eq(DbId::from(job.scope.id())), job_turns::last_turn.eq(0));
    each_backend!(connection, backend => diesel::insert_into(job_turns::table)
        .values(turn)
        .on_conflict(job_turns::organization_id)
        .do_nothing()
        .execute(backend))?;
    Ok(())
}

/// Ends the queued job that `job` supersedes.
fn supersede(connection: &mut AnyConnection, job: &NewJob) -> Result<(), QueryError> {
    diesel::update(jobs::table)
        .filter(jobs::subject.eq(DbId::from(job.subject)))
        .filter(jobs::kind.eq(job.kind.as_str()))
        .filter(waits_replaceable())
        .set((
            jobs::state.eq(JobState::Superseded.as_str()),
            jobs::superseded_by.eq(DbId::from(job.id)),
            jobs::finished_at.eq(DbTs(job.enqueued_at)),
        ))
        .cached()
        .execute(connection)?;
    Ok(())
}

fn request_cancel(
    connection: &mut AnyConnection,
    scope: Scope,
    id: JobId,
    at: Timestamp,
) -> Result<(), QueryError> {
    hold_subject_of(connection, id)?;
    let job = held_job(connection, id)?.filter(|job| job.scope == scope).ok_or(StoreError::Stale)?;
    let Ok(cancelled) = job.state.after(Event::Cancel) else { return Err(StoreError::Stale.into()) };
    let this = jobs::table.find(DbId::from(id));
    if job.state == JobState::Queued {
        let over = (jobs::state.eq(cancelled.as_str()), jobs::finished_at.eq(DbTs(at)));
        diesel::update(this).set(over).cached().execute(connection)?;
    } else if job.cancel_requested_at.is_none() {
        diesel::update(this).set(jobs::cancel_requested_at.eq(DbTs(at))).cached().execute(connection)?;
    }
    Ok(())
}

/// Rejects a lease that is not valid. On PostgreSQL it stays valid until this transaction ends.
fn prove(connection: &mut AnyConnection, lease: &Lease) -> Result<(), QueryError> {
    hold_subject_of(connection, lease.job)?;
    let held = jobs::table.filter(held_by(lease)).select(jobs::id);
    let found: Option<DbId> = match connection {
        AnyConnection::Sqlite(sqlite) => held.get_result(sqlite),
        AnyConnection::Postgres(postgres) => held.for_no_key_update().get_result(postgres),
    }
    .optional()?;
    guarded(found.into_iter().count())
}

/// Takes the lock of a job's subject before that of its row, because other writes of the transaction may
/// need it.
fn hold_subject_of(connection: &mut AnyConnection, id: JobId) -> Result<(), QueryError> {
    if matches!(connection, AnyConnection::Sqlite(_)) {
        return Ok(());
    }
    let subject: Option<DbId> =
        jobs::table.find(DbId::from(id)).select(jobs::subject).first(connection).optional()?;
    hold_one(connection, subject.ok_or(StoreError::Stale)?)
}

fn request_cancel_all(
    connection: &mut AnyConnection,
    scope: Scope,
    subject: SubjectId,
    at: Timestamp,
) -> Result<(), QueryError> {
    hold_one(connection, subject.into())?;
    let open: Vec<DbId> = jobs::table
        .filter(jobs::subject.eq(DbId::from(subject)))
        .filter(jobs::organization_id.eq(DbId::from(scope.id())))
        .filter(jobs::finished_at.is_null())
        .select(jobs::id)
        .load(connection)?;
    for id in open {
        match request_cancel(connection, scope, id.into(), at) {
            // It finished between the two statements.
            Err(QueryError::Store(StoreError::Stale)) => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

fn settle(
    connection: &mut AnyConnection,
    lease: &Lease,
    outcome: &Outcome,
    at: Timestamp,
) -> Result<(), QueryError> {
    hold_subject_of(connection, lease.job)?;
    let settled = JobState::Running.after(outcome.event()).map_err(QueryError::unreadable)?;
    guarded(
        diesel::update(jobs::table)
            .filter(held_by(lease))
            .set((
                jobs::state.eq(settled.as_str()),
                jobs::finished_at.eq(DbTs(at)),
                jobs::reason.eq(outcome.reason()),
                no_lease(),
            ))
            .cached()
            .execute(connection)?,
    )
}
