//! Attempts that end without an outcome.

use chrono::TimeDelta;
use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::{BootId, InstanceId, JobId},
    jobs::{Event, HORIZON, Job, Lease, Rescued},
    store::StoreError,
};

use super::rows::{LeaseRow, held_by, held_job, runs, waits, waits_replaceable};
use crate::database::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::hold_one,
    error::{QueryError, guarded},
    schema::jobs,
};

/// How long the worker of a lease from a clock that was ahead has to give a sign of life: several
/// times as long as it takes.
const SIGN_OF_LIFE: TimeDelta = TimeDelta::minutes(1);

/// Why an attempt ended without an outcome, and what follows.
pub(super) struct Interruption {
    reason: String,
    counts: bool,
    at: Timestamp,
    run_at: Timestamp,
}

impl Interruption {
    /// The worker has to stop.
    pub(super) fn stopped(at: Timestamp) -> Self {
        Self { reason: "the worker had to stop".to_owned(), counts: false, at, run_at: at }
    }

    /// It did not work, and may do so later.
    pub(super) fn failed(reason: &str, at: Timestamp, run_at: Timestamp) -> Self {
        Self { reason: reason.to_owned(), counts: true, at, run_at }
    }

    /// Something that the job needs does not answer.
    pub(super) fn postponed(reason: &str, at: Timestamp, run_at: Timestamp) -> Self {
        Self { reason: reason.to_owned(), counts: false, at, run_at }
    }

    /// The worker is gone.
    fn lost(at: Timestamp) -> Self {
        Self { reason: "the worker was lost".to_owned(), counts: true, at, run_at: at }
    }
}

/// Takes the jobs of lost workers.
pub(super) fn rescue(
    connection: &mut AnyConnection,
    instance: InstanceId,
    boot: BootId,
    now: Timestamp,
) -> Result<Vec<Rescued>, QueryError> {
    undo_the_future(connection, now)?;
    let has_ended = jobs::lease_until.le(DbTs(now));
    let is_left_over =
        jobs::lease_instance.eq(DbId::from(instance)).and(jobs::lease_boot.ne(DbId::from(boot)));
    // In the order of the locks that follow, so that two who rescue do not wait for each other.
    let lost: Vec<LeaseRow> = jobs::table
        .filter(runs())
        .filter(has_ended.or(is_left_over))
        .order(jobs::subject.asc())
        .select(LeaseRow::as_select())
        .load(connection)?;
    let mut rescued = Vec::new();
    for lease in lost.iter().filter_map(LeaseRow::lease) {
        match give_back(connection, &lease, &Interruption::lost(now)) {
            Ok(job) => rescued.push(Rescued { job, lost_by: lease.worker }),
            // Somebody else was faster.
            Err(QueryError::Store(StoreError::Stale)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rescued)
}

/// Brings near what lies too far ahead, because a clock was set back after it had been written.
fn undo_the_future(connection: &mut AnyConnection, now: Timestamp) -> Result<(), QueryError> {
    let due = diesel::update(jobs::table)
        .filter(waits())
        .filter(jobs::run_at.gt(DbTs(now + HORIZON)))
        .set(jobs::run_at.eq(DbTs(now)))
        .execute(connection)?;
    let doubtful = diesel::update(jobs::table)
        .filter(runs())
        .filter(jobs::lease_until.gt(DbTs(now + HORIZON)))
        .set(jobs::lease_until.eq(DbTs(now + SIGN_OF_LIFE)))
        .execute(connection)?;
    if due + doubtful > 0 {
        tracing::warn!(due, doubtful, "the clock was set back: jobs do not wait for it");
    }
    Ok(())
}

/// Ends the attempt, and returns the job as it is then.
pub(super) fn give_back(
    connection: &mut AnyConnection,
    lease: &Lease,
    interruption: &Interruption,
) -> Result<Job, QueryError> {
    let subject: Option<DbId> =
        jobs::table.find(DbId::from(lease.job)).select(jobs::subject).first(connection).optional()?;
    hold_one(connection, subject.ok_or(StoreError::Stale)?)?;
    let job = held_job(connection, lease.job)?.ok_or(StoreError::Stale)?;
    let newer = waiting_in_place_of(connection, &job)?;
    let event = job.interrupted(newer, interruption.counts);
    // Only what runs has a lease that holds, so the guard of the change tells the same.
    let Ok(state) = job.state.after(event) else { return Err(StoreError::Stale.into()) };
    let job = Job {
        state,
        excused: job.excused + i32::from(!interruption.counts),
        // What has to be taken back keeps its place: nothing may be done on top of it.
        run_at: match event {
            Event::PutBack if !job.kind.has_to_be_taken_back() => interruption.run_at,
            _ => job.run_at,
        },
        finished_at: state.is_over().then_some(interruption.at),
        superseded_by: newer.filter(|_| event == Event::Supersede),
        reason: Some(interruption.reason.clone()),
        // What waits is wanted: the next attempt takes back what was done.
        cancel_requested_at: job.cancel_requested_at.filter(|_| event != Event::PutBack),
        ..job
    };
    guarded(
        diesel::update(jobs::table)
            .filter(held_by(lease))
            .set((
                jobs::state.eq(job.state.as_str()),
                jobs::excused.eq(job.excused),
                jobs::run_at.eq(DbTs(job.run_at)),
                jobs::finished_at.eq(job.finished_at.map(DbTs)),
                jobs::superseded_by.eq(job.superseded_by.map(DbId::from)),
                jobs::reason.eq(&job.reason),
                jobs::cancel_requested_at.eq(job.cancel_requested_at.map(DbTs)),
                no_lease(),
            ))
            .execute(connection)?,
    )?;
    Ok(job)
}

/// What a job that does not run has in place of a lease.
pub(super) type NoLease = (
    diesel::dsl::Eq<jobs::lease_instance, Option<DbId>>,
    diesel::dsl::Eq<jobs::lease_boot, Option<DbId>>,
    diesel::dsl::Eq<jobs::lease_worker, Option<i32>>,
    diesel::dsl::Eq<jobs::lease_until, Option<DbTs>>,
);

pub(super) fn no_lease() -> NoLease {
    (
        jobs::lease_instance.eq(None),
        jobs::lease_boot.eq(None),
        jobs::lease_worker.eq(None),
        jobs::lease_until.eq(None),
    )
}

/// The replaceable job of the same subject and kind that waits. It is newer than one that runs,
/// because nothing else of them waited when that one was claimed.
fn waiting_in_place_of(connection: &mut AnyConnection, job: &Job) -> Result<Option<JobId>, QueryError> {
    let waiting: Option<DbId> = jobs::table
        .filter(jobs::subject.eq(DbId::from(job.subject)))
        .filter(jobs::kind.eq(job.kind.as_str()))
        .filter(waits_replaceable())
        .select(jobs::id)
        .first(connection)
        .optional()?;
    Ok(waiting.map(JobId::from))
}
