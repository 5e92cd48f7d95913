//! Writes jobs to the database, together with other changes.

use std::collections::BTreeSet;

use diesel::{
    prelude::*,
    sql_types::{Array, Text},
};
use launchway_domain::{
    clock::Timestamp,
    ids::{JobId, SubjectId},
    jobs::{Event, JobState, Lease, NewJob, Outcome, Write},
    organizations::Scope,
    store::StoreError,
};
use uuid::Uuid;

use super::{
    interrupt::no_lease,
    rows::{held_by, held_job, waits_replaceable},
};
use crate::{
    columns::{DbId, DbTs, Id, Ts},
    connection::AnyConnection,
    dialect::{each_backend, hold_each, hold_one, insert_in_chunks},
    error::{QueryError, guarded},
    schema::{job_turns, jobs},
    statement::StatementCache as _,
};

/// Applies one change.
pub(crate) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::Enqueue(job) => enqueue(connection, &[job]),
        Write::RequestCancel { scope, id, at } => request_cancel(connection, *scope, *id, *at),
        Write::RequestCancelAll { scope, subject, at } => {
            request_cancel_all(connection, *scope, *subject, *at)
        }
        Write::Prove(lease) => prove(connection, lease),
        Write::Settle { lease, outcome, at } => settle(connection, lease, outcome, *at),
    }
}

/// Enqueues jobs, no two of which have the same subject.
pub(crate) fn enqueue(connection: &mut AnyConnection, jobs: &[&NewJob]) -> Result<(), QueryError> {
    let replaceable: Vec<&NewJob> = jobs.iter().copied().filter(|job| job.replaceable).collect();
    hold_each(connection, replaceable.iter().map(|job| DbId::from(job.subject)))?;
    supersede(connection, &replaceable)?;
    let rows: Vec<NewRow<'_>> = jobs.iter().map(|job| NewRow::from(*job)).collect();
    insert_in_chunks!(connection, jobs::table, rows);
    let organizations: BTreeSet<Uuid> = jobs.iter().map(|job| job.scope.id().into()).collect();
    for organization in organizations {
        let turn = (job_turns::organization_id.eq(DbId(organization)), job_turns::last_turn.eq(0));
        each_backend!(connection, backend => diesel::insert_into(job_turns::table)
            .values(turn)
            .on_conflict(job_turns::organization_id)
            .do_nothing()
            .execute(backend))?;
    }
    Ok(())
}

#[derive(Insertable)]
#[diesel(table_name = jobs)]
struct NewRow<'a> {
    id: DbId,
    kind: &'static str,
    organization_id: DbId,
    subject: DbId,
    replaceable: bool,
    payload: &'a str,
    pool: &'static str,
    state: &'static str,
    attempt: i32,
    excused: i32,
    run_at: DbTs,
    enqueued_at: DbTs,
}

impl<'a> From<&'a NewJob> for NewRow<'a> {
    fn from(job: &'a NewJob) -> Self {
        Self {
            id: job.id.into(),
            kind: job.kind.as_str(),
            organization_id: job.scope.id().into(),
            subject: job.subject.into(),
            replaceable: job.replaceable,
            payload: &job.payload,
            pool: job.pool.as_str(),
            state: JobState::Queued.as_str(),
            attempt: 0,
            excused: 0,
            run_at: DbTs(job.run_at),
            enqueued_at: DbTs(job.enqueued_at),
        }
    }
}

/// Ends the queued jobs that `newer` ones supersede.
fn supersede(connection: &mut AnyConnection, newer: &[&NewJob]) -> Result<(), QueryError> {
    match (connection, newer) {
        (AnyConnection::Postgres(postgres), [_, _, ..]) => supersede_together(postgres, newer),
        (connection, _) => newer.iter().try_for_each(|job| supersede_by(connection, job)),
    }
}

fn supersede_by(connection: &mut AnyConnection, newer: &NewJob) -> Result<(), QueryError> {
    diesel::update(jobs::table)
        .filter(jobs::subject.eq(DbId::from(newer.subject)))
        .filter(jobs::kind.eq(newer.kind.as_str()))
        .filter(waits_replaceable())
        .set((
            jobs::state.eq(JobState::Superseded.as_str()),
            jobs::superseded_by.eq(DbId::from(newer.id)),
            jobs::finished_at.eq(DbTs(newer.enqueued_at)),
        ))
        .cached()
        .execute(connection)?;
    Ok(())
}

/// Does the same for several in one round trip. It is not kept prepared: the plan depends on their number.
fn supersede_together(postgres: &mut PgConnection, newer: &[&NewJob]) -> Result<(), QueryError> {
    const STATEMENT: &str = "\
        UPDATE jobs SET state = $1, superseded_by = newer.id, finished_at = newer.at \
        FROM unnest($2, $3, $4, $5) AS newer (subject, kind, id, at) \
        WHERE jobs.subject = newer.subject AND jobs.kind = newer.kind AND jobs.state = 'queued' AND jobs.replaceable";
    let ids = |id: fn(&NewJob) -> DbId| newer.iter().map(|job| id(job)).collect::<Vec<_>>();
    let kinds: Vec<&str> = newer.iter().map(|job| job.kind.as_str()).collect();
    let times: Vec<DbTs> = newer.iter().map(|job| DbTs(job.enqueued_at)).collect();
    diesel::sql_query(STATEMENT)
        .bind::<Text, _>(JobState::Superseded.as_str())
        .bind::<Array<Id>, _>(ids(|job| job.subject.into()))
        .bind::<Array<Text>, _>(kinds)
        .bind::<Array<Id>, _>(ids(|job| job.id.into()))
        .bind::<Array<Ts>, _>(times)
        .execute(postgres)?;
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
