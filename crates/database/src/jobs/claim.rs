//! Claims the next job.

use std::collections::HashMap;

use diesel::{
    dsl::exists,
    prelude::*,
    sql_types::{BigInt, Bool},
};
use launchway_domain::{
    clock::Timestamp,
    jobs::{ClaimLimits, ClaimedJob, Event, Job, Lease, Pool, WorkerId},
};
use uuid::Uuid;

use super::rows::{JobRow, may_run_on, runs, waits};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::{Lock, hold},
    error::QueryError,
    schema::{homes, job_turns, jobs},
    statement::{StatementCache as _, literal},
};

diesel::alias!(jobs as busy: Busy);

/// The number of times that a claim chooses again when the chosen job was changed meanwhile.
const LOOKS: u32 = 8;

/// Selects the jobs whose subject has none that runs, none that another server than `$server` has begun and has to revert
/// first, and no home on another server. The subqueries do not depend on the job, so that they are run once and not for each
/// queued job.
macro_rules! has_free_subject {
    ($server:expr) => {
        jobs::subject.ne_all(homes::table.filter(homes::server.ne($server)).select(homes::subject)).and(
            jobs::subject.ne_all(
                busy.filter(
                    literal::<Bool>("busy.state = 'running'").or(literal::<Bool>("busy.state = 'queued'")
                        .and(busy.field(jobs::runs_on).is_not_null())
                        .and(busy.field(jobs::runs_on).assume_not_null().ne($server))),
                )
                .select(busy.field(jobs::subject)),
            ),
        )
    };
}

/// Claims the next job. Claims are serialized, so that counting running jobs is exact.
pub(super) fn claim(
    connection: &mut AnyConnection,
    worker: WorkerId,
    limits: ClaimLimits,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Option<ClaimedJob>, QueryError> {
    hold(connection, Lock::JobClaims)?;
    let server = DbId::from(worker.instance);
    for pool in pools_with_work(connection, now)? {
        for _ in 0..LOOKS {
            let Some(organization) = next_organization(connection, pool, server, limits, now)? else { break };
            let Some(job) = next_job(connection, organization, pool, server, now)? else { continue };
            // On PostgreSQL it may have been cancelled or superseded since.
            if let Some(claimed) = take(connection, &job, worker, now, lease_until)? {
                note_turn(connection, organization)?;
                return Ok(Some(claimed));
            }
        }
    }
    Ok(None)
}

/// Returns the pools that have a job which is due.
fn pools_with_work(connection: &mut AnyConnection, now: Timestamp) -> Result<Vec<Pool>, QueryError> {
    let pools: Vec<String> = jobs::table
        .filter(waits())
        .filter(jobs::run_at.le(DbTs(now)))
        .select(jobs::pool)
        .distinct()
        .order(jobs::pool.asc())
        .load(connection)?;
    let mut pools = pools
        .into_iter()
        .map(|pool| Pool::try_from(pool).map_err(QueryError::unreadable))
        .collect::<Result<Vec<_>, _>>()?;
    // Short ones first: restarting an application must not wait for its own build.
    pools.sort_by_key(|pool| *pool != Pool::Operations);
    Ok(pools)
}

/// Returns the next organization in turn among those that have a job of `pool` that may run on `server`.
fn next_organization(
    connection: &mut AnyConnection,
    pool: Pool,
    server: DbId,
    limits: ClaimLimits,
    now: Timestamp,
) -> Result<Option<DbId>, QueryError> {
    let running: Vec<(DbId, Option<DbId>)> = jobs::table
        .filter(runs())
        .filter(jobs::pool.eq(pool.as_str()))
        .select((jobs::organization_id, jobs::lease_instance))
        .load(connection)?;
    if running.iter().filter(|(_, instance)| *instance == Some(server)).count() >= limits.of(pool) {
        return Ok(None);
    }
    let mut runs: HashMap<Uuid, usize> = HashMap::new();
    for (organization, _) in running {
        *runs.entry(organization.0).or_default() += 1;
    }
    let may_run = jobs::table
        .filter(jobs::organization_id.eq(job_turns::organization_id))
        .filter(waits())
        .filter(jobs::run_at.le(DbTs(now)))
        .filter(jobs::pool.eq(pool.as_str()))
        .filter(may_run_on(server))
        .filter(has_free_subject!(server));
    let waiting: Vec<(DbId, i64)> = job_turns::table
        .filter(exists(may_run))
        .order(job_turns::last_turn.asc())
        .select((job_turns::organization_id, job_turns::last_turn))
        .load(connection)?;
    let next = waiting
        .into_iter()
        .map(|(id, last_turn)| (runs.get(&id.0).copied().unwrap_or_default(), last_turn, id))
        .filter(|(running, ..)| *running < limits.of_organization(pool))
        .min_by_key(|(running, last_turn, id)| (*running, *last_turn, id.0));
    Ok(next.map(|(.., id)| id))
}

/// Returns the job of that organization that may run on `server` and is due first.
fn next_job(
    connection: &mut AnyConnection,
    organization: DbId,
    pool: Pool,
    server: DbId,
    now: Timestamp,
) -> Result<Option<Job>, QueryError> {
    let row: Option<JobRow> = jobs::table
        .filter(jobs::organization_id.eq(organization))
        .filter(waits())
        .filter(jobs::run_at.le(DbTs(now)))
        .filter(jobs::pool.eq(pool.as_str()))
        .filter(may_run_on(server))
        .filter(has_free_subject!(server))
        .order((jobs::run_at.asc(), jobs::enqueued_at.asc(), jobs::id.asc()))
        .select(JobRow::as_select())
        .first(connection)
        .optional()?;
    Ok(row.map(Job::from))
}

/// Assigns the job to the worker; `None` when it is not queued any more.
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
            jobs::runs_on.eq(job.kind.is_bound().then(|| DbId::from(worker.instance))),
        ))
        .cached()
        .execute(connection)?;
    let lease = Lease { job: job.id, attempt: job.attempt, worker };
    Ok((taken > 0).then_some(ClaimedJob { job, lease }))
}

fn note_turn(connection: &mut AnyConnection, organization: DbId) -> Result<(), QueryError> {
    let next = literal::<BigInt>("(SELECT max(turns.last_turn) + 1 FROM job_turns AS turns)");
    diesel::update(job_turns::table.find(organization))
        .set(job_turns::last_turn.eq(next))
        .cached()
        .execute(connection)?;
    Ok(())
}
