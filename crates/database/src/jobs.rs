//! The job queue in the database.
//!
//! **Invariant:** whatever can enqueue a job holds the lock of its subject, so that on PostgreSQL two of
//! them never conflict at the index of queued jobs. So does whatever changes the subject in the same
//! transaction. Locks are taken in one order: that of the subject, then rows.

mod claim;
mod depth;
mod interrupt;
mod rows;
mod writes;

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::{BootId, InstanceId, JobId, SubjectId},
    jobs::{ClaimLimits, ClaimedJob, Heartbeat, Job, JobKind, JobQueue, JobState, Lease, Rescued, WorkerId},
    organizations::Scope,
    store::StoreError,
};

use self::{
    interrupt::{Interruption, give_back},
    rows::{JobRow, held_by},
};
pub(super) use self::{
    rows::runs,
    writes::{apply, enqueue},
};
use super::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    schema::jobs,
    statement::{ListComparison as _, StatementCache as _},
};

/// Bounded, because other writers wait for it.
const FORGOTTEN_AT_ONCE: i64 = 500;

#[async_trait]
impl JobQueue for Database {
    async fn claim(
        &self,
        worker: &WorkerId,
        limits: ClaimLimits,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let worker = *worker;
        self.write(move |connection| claim::claim(connection, worker, limits, now, lease_until)).await
    }

    async fn heartbeat(&self, lease: &Lease, until: Timestamp) -> Result<Heartbeat, StoreError> {
        let lease = *lease;
        self.write(move |connection| heartbeat(connection, &lease, until)).await
    }

    async fn release(&self, lease: &Lease, now: Timestamp) -> Result<JobState, StoreError> {
        let (lease, stopped) = (*lease, Interruption::stopped(now));
        self.write(move |connection| Ok(give_back(connection, &lease, &stopped)?.state)).await
    }

    async fn retry(
        &self,
        lease: &Lease,
        reason: &str,
        now: Timestamp,
        run_at: Timestamp,
    ) -> Result<JobState, StoreError> {
        let (lease, failed) = (*lease, Interruption::failed(reason, now, run_at));
        self.write(move |connection| Ok(give_back(connection, &lease, &failed)?.state)).await
    }

    async fn postpone(
        &self,
        lease: &Lease,
        reason: &str,
        now: Timestamp,
        run_at: Timestamp,
    ) -> Result<JobState, StoreError> {
        let (lease, postponed) = (*lease, Interruption::postponed(reason, now, run_at));
        self.write(move |connection| Ok(give_back(connection, &lease, &postponed)?.state)).await
    }

    async fn rescue(
        &self,
        instance: InstanceId,
        boot: BootId,
        now: Timestamp,
    ) -> Result<Vec<Rescued>, StoreError> {
        self.write(move |connection| interrupt::rescue(connection, instance, boot, now)).await
    }

    async fn forget(&self, before: Timestamp) -> Result<usize, StoreError> {
        self.write(move |connection| forget(connection, before)).await
    }

    async fn running(&self) -> Result<Vec<SubjectId>, StoreError> {
        self.read_point(|connection| {
            let subjects: Vec<DbId> = jobs::table.filter(runs()).select(jobs::subject).load(connection)?;
            Ok(subjects.into_iter().map(SubjectId::from).collect())
        })
        .await
    }

    async fn get(&self, scope: Scope, id: JobId) -> Result<Option<Job>, StoreError> {
        self.read_point(move |connection| {
            let row: Option<JobRow> = jobs::table
                .find(DbId::from(id))
                .filter(jobs::organization_id.eq(DbId::from(scope.id())))
                .select(JobRow::as_select())
                .first(connection)
                .optional()?;
            Ok(row.map(Job::from))
        })
        .await
    }
}

fn forget(connection: &mut AnyConnection, before: Timestamp) -> Result<usize, QueryError> {
    let old: Vec<DbId> = jobs::table
        .filter(jobs::finished_at.lt(DbTs(before)))
        .filter(jobs::kind.ne(JobKind::Stop.as_str()))
        .select(jobs::id)
        .limit(FORGOTTEN_AT_ONCE)
        .load(connection)?;
    Ok(diesel::delete(jobs::table).filter(jobs::id.one_of(old)).execute(connection)?)
}

fn heartbeat(
    connection: &mut AnyConnection,
    lease: &Lease,
    until: Timestamp,
) -> Result<Heartbeat, QueryError> {
    let held = diesel::update(jobs::table)
        .filter(held_by(lease))
        .set(jobs::lease_until.eq(DbTs(until)))
        .cached()
        .execute(connection)?;
    if held == 0 {
        return Ok(Heartbeat::Lost);
    }
    let cancel: Option<DbTs> =
        jobs::table.find(DbId::from(lease.job)).select(jobs::cancel_requested_at).first(connection)?;
    Ok(if cancel.is_some() { Heartbeat::CancelRequested } else { Heartbeat::Held })
}
