//! Attempts that end without an outcome.

use chrono::TimeDelta;
use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::{BootId, InstanceId, JobId},
    jobs::{Event, HORIZON, Job, JobState, Lease, Rescued, SERVER_LOST_AFTER},
    store::StoreError,
};

use super::rows::{LeaseRow, held_by, held_job, runs, waits, waits_replaceable};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::hold_one,
    error::{QueryError, guarded},
    schema::jobs,
    statement::StatementCache as _,
};

/// The time in which a worker must renew a lease that comes from a clock that was ahead: several times the
/// interval of renewals.
const SIGN_OF_LIFE: TimeDelta = TimeDelta::minutes(1);

/// The reason why an attempt ended without an outcome, and the time of the next one.
pub(super) struct Interruption {
    reason: String,
    counts: bool,
    /// True if there is no further attempt in any case.
    is_final: bool,
    at: Timestamp,
    run_at: Timestamp,
}

impl Interruption {
    /// The worker is shutting down.
    pub(super) fn stopped(at: Timestamp) -> Self {
        Self { reason: "the worker had to stop".to_owned(), counts: false, is_final: false, at, run_at: at }
    }

    /// The attempt failed with a retryable error.
    pub(super) fn failed(reason: &str, at: Timestamp, run_at: Timestamp) -> Self {
        Self { reason: reason.to_owned(), counts: true, is_final: false, at, run_at }
    }

    /// A dependency of the job is unavailable.
    pub(super) fn postponed(reason: &str, at: Timestamp, run_at: Timestamp) -> Self {
        Self { reason: reason.to_owned(), counts: false, is_final: false, at, run_at }
    }

    /// The worker's lease expired.
    fn lost(at: Timestamp) -> Self {
        Self { reason: JobState::WORKER_LOST.to_owned(), counts: true, is_final: false, at, run_at: at }
    }

    /// The server was lost that the job is bound to.
    fn server_lost(at: Timestamp) -> Self {
        Self { reason: JobState::SERVER_LOST.to_owned(), is_final: true, ..Self::lost(at) }
    }
}

/// Requeues the jobs of lost workers, and fails those that were bound to a lost server.
pub(super) fn rescue(
    connection: &mut AnyConnection,
    instance: InstanceId,
    boot: BootId,
    now: Timestamp,
) -> Result<Vec<Rescued>, QueryError> {
    move_times_to_present(connection, now)?;
    let has_ended = jobs::lease_until.le(DbTs(now));
    let is_left_over =
        jobs::lease_instance.eq(DbId::from(instance)).and(jobs::lease_boot.ne(DbId::from(boot)));
    // In the order of the locks that follow, to avoid deadlocks between two rescues.
    let lost: Vec<LeaseRow> = jobs::table
        .filter(runs())
        .filter(has_ended.or(is_left_over))
        .order(jobs::subject.asc())
        .select(LeaseRow::as_select())
        .load(connection)?;
    let mut rescued = Vec::new();
    for row in lost {
        let Some(lease) = row.lease() else { continue };
        let interruption = match row.is_bound_elsewhere(instance) {
            false => Interruption::lost(now),
            true if row.has_ended_by(now - SERVER_LOST_AFTER) => Interruption::server_lost(now),
            // Its server may come back.
            true => continue,
        };
        match give_back(connection, &lease, &interruption) {
            Ok(job) => rescued.push(Rescued { job, lost_by: lease.worker }),
            // Another transaction was faster.
            Err(QueryError::Store(StoreError::Stale)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rescued)
}

/// Moves times that are too far in the future to the present. They come from a clock that was set back
/// later.
fn move_times_to_present(connection: &mut AnyConnection, now: Timestamp) -> Result<(), QueryError> {
    let due = diesel::update(jobs::table)
        .filter(waits())
        .filter(jobs::run_at.gt(DbTs(now + HORIZON)))
        .set(jobs::run_at.eq(DbTs(now)))
        .cached()
        .execute(connection)?;
    let doubtful = diesel::update(jobs::table)
        .filter(runs())
        .filter(jobs::lease_until.gt(DbTs(now + HORIZON)))
        .set(jobs::lease_until.eq(DbTs(now + SIGN_OF_LIFE)))
        .cached()
        .execute(connection)?;
    if due + doubtful > 0 {
        tracing::warn!(due, doubtful, "clock was set back, job times moved to the present");
    }
    Ok(())
}

/// Ends the attempt, and returns the updated job.
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
    let event = match interruption.is_final {
        true => Event::Fail,
        false => job.interrupted(newer, interruption.counts),
    };
    // Only a running job has a valid lease, so the guard of the update checks the same.
    let Ok(state) = job.state.after(event) else { return Err(StoreError::Stale.into()) };
    let job = Job {
        state,
        excused: job.excused + i32::from(!interruption.counts),
        // A job that has to be reverted keeps its due time: nothing may be done on top of it.
        run_at: match event {
            Event::PutBack if !job.kind.has_to_be_taken_back() => interruption.run_at,
            _ => job.run_at,
        },
        finished_at: state.is_final().then_some(interruption.at),
        superseded_by: newer.filter(|_| event == Event::Supersede),
        reason: Some(interruption.reason.clone()),
        // A queued job is wanted: the next attempt reverts the earlier one.
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
            .cached()
            .execute(connection)?,
    )?;
    Ok(job)
}

/// The values of the lease columns of a job that does not run.
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

/// Returns the replaceable queued job of the same subject and kind. It is newer than a running one, because
/// none was queued when that one was claimed.
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
