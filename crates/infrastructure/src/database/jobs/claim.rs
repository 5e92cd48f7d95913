//! Taking the next job.

use std::collections::HashMap;

use diesel::{
    dsl::{exists, max, not, sql},
    prelude::*,
    sql_types::Bool,
};
use launchway_domain::{
    clock::Timestamp,
    jobs::{ClaimLimits, ClaimedJob, Event, Job, JobKind, Lease, WorkerId},
};
use uuid::Uuid;

use super::rows::{JobRow, runs, waits};
use crate::database::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::{Lock, hold},
    error::QueryError,
    schema::{job_turns, jobs},
};

diesel::alias!(jobs as busy: Busy);

/// How often a claim looks again when the job that it chose was changed meanwhile.
const LOOKS: u32 = 8;

/// Takes the next job. One claim at a time, so that counting what runs is exact.
pub(super) fn claim(
    connection: &mut AnyConnection,
    worker: WorkerId,
    limits: ClaimLimits,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Option<ClaimedJob>, QueryError> {
    hold(connection, Lock::JobClaims)?;
    for _ in 0..LOOKS {
        let Some((organization, unwanted)) = next_organization(connection, limits, now)? else {
            return Ok(None);
        };
        let Some(job) = next_job(connection, organization, unwanted, now)? else { continue };
        // On PostgreSQL it may have been cancelled or superseded since.
        if let Some(claimed) = take(connection, &job, worker, now, lease_until)? {
            note_turn(connection, organization)?;
            return Ok(Some(claimed));
        }
    }
    Ok(None)
}

/// Whose turn it is among those who have a job that may run, and which kind may not.
fn next_organization(
    connection: &mut AnyConnection,
    limits: ClaimLimits,
    now: Timestamp,
) -> Result<Option<(DbId, &'static str)>, QueryError> {
    let running: Vec<(DbId, String)> =
        jobs::table.filter(runs()).select((jobs::organization_id, jobs::kind)).load(connection)?;
    if running.len() >= limits.global {
        return Ok(None);
    }
    let of_extensions = running.iter().filter(|(_, kind)| kind == JobKind::RunExtension.as_str()).count();
    let unwanted = match of_extensions >= limits.of_extensions() {
        true => JobKind::RunExtension.as_str(),
        false => "",
    };
    let mut runs: HashMap<Uuid, usize> = HashMap::new();
    for (organization, _) in running {
        *runs.entry(organization.0).or_default() += 1;
    }
    let of_same_subject = busy
        .filter(sql::<Bool>("busy.state = 'running'"))
        .filter(busy.field(jobs::subject).eq(jobs::subject));
    let may_run = jobs::table
        .filter(jobs::organization_id.eq(job_turns::organization_id))
        .filter(waits())
        .filter(jobs::run_at.le(DbTs(now)))
        .filter(jobs::kind.ne(unwanted))
        .filter(not(exists(of_same_subject)));
    let waiting: Vec<(DbId, i64)> = job_turns::table
        .filter(exists(may_run))
        .order(job_turns::last_turn.asc())
        .select((job_turns::organization_id, job_turns::last_turn))
        .load(connection)?;
    let next = waiting
        .into_iter()
        .map(|(id, last_turn)| (runs.get(&id.0).copied().unwrap_or_default(), last_turn, id))
        .filter(|(running, ..)| *running < limits.per_organization)
        .min_by_key(|(running, last_turn, id)| (*running, *last_turn, id.0));
    Ok(next.map(|(.., id)| (id, unwanted)))
}

/// The job of that organization that was to run first.
fn next_job(
    connection: &mut AnyConnection,
    organization: DbId,
    unwanted: &str,
    now: Timestamp,
) -> Result<Option<Job>, QueryError> {
    let of_same_subject = busy
        .filter(sql::<Bool>("busy.state = 'running'"))
        .filter(busy.field(jobs::subject).eq(jobs::subject));
    let row: Option<JobRow> = jobs::table
        .filter(jobs::organization_id.eq(organization))
        .filter(waits())
        .filter(jobs::run_at.le(DbTs(now)))
        .filter(jobs::kind.ne(unwanted))
        .filter(not(exists(of_same_subject)))
        .order((jobs::run_at.asc(), jobs::enqueued_at.asc(), jobs::id.asc()))
        .select(JobRow::as_select())
        .first(connection)
        .optional()?;
    Ok(row.map(Job::from))
}

/// Makes the job the worker's; `None` when it does not wait any more.
fn take(
    connection: &mut AnyConnection,
    job: &Job,
    worker: WorkerId,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Option<ClaimedJob>, QueryError> {
    let job = Job {
        state: job.state.after(Event::Claim).map_err(QueryError::unreadable)?,
        attempt: job.attempt + 1,
        started_at: Some(job.started_at.unwrap_or(now)),
        ..job.clone()
    };
    let taken = diesel::update(jobs::table.find(DbId::from(job.id)))
        .filter(waits())
        .filter(jobs::attempt.eq(job.attempt - 1))
        .set((
            jobs::state.eq(job.state.as_str()),
            jobs::attempt.eq(job.attempt),
            jobs::started_at.eq(job.started_at.map(DbTs)),
            jobs::lease_instance.eq(DbId::from(worker.instance)),
            jobs::lease_boot.eq(DbId::from(worker.boot)),
            jobs::lease_worker.eq(worker.worker),
            jobs::lease_until.eq(DbTs(lease_until)),
        ))
        .execute(connection)?;
    let lease = Lease { job: job.id, attempt: job.attempt, worker };
    Ok((taken > 0).then_some(ClaimedJob { job, lease }))
}

fn note_turn(connection: &mut AnyConnection, organization: DbId) -> Result<(), QueryError> {
    let last: Option<i64> = job_turns::table.select(max(job_turns::last_turn)).first(connection)?;
    diesel::update(job_turns::table.find(organization))
        .set(job_turns::last_turn.eq(last.unwrap_or_default() + 1))
        .execute(connection)?;
    Ok(())
}
