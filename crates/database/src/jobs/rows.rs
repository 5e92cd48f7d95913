//! The rows of jobs.

use diesel::{dsl::auto_type, prelude::*, sql_types::Bool};
use launchway_domain::{
    clock::Timestamp,
    ids::{InstanceId, JobId, OrganizationId, SubjectId},
    jobs::{Job, JobKind, JobState, Lease, Pool, WorkerId},
    organizations::Scope,
};

use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    schema::jobs,
    statement::{Literal, literal},
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = jobs)]
pub(super) struct JobRow {
    #[diesel(deserialize_as = DbId)]
    id: JobId,
    #[diesel(deserialize_as = String)]
    kind: JobKind,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = DbId)]
    subject: SubjectId,
    replaceable: bool,
    payload: String,
    #[diesel(deserialize_as = String)]
    pool: Pool,
    #[diesel(deserialize_as = String)]
    state: JobState,
    attempt: i32,
    excused: i32,
    #[diesel(deserialize_as = DbTs)]
    run_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    enqueued_at: Timestamp,
    started_at: Option<DbTs>,
    finished_at: Option<DbTs>,
    cancel_requested_at: Option<DbTs>,
    superseded_by: Option<DbId>,
    reason: Option<String>,
}

impl From<JobRow> for Job {
    fn from(row: JobRow) -> Self {
        Self {
            id: row.id,
            kind: row.kind,
            scope: Scope::of_record(row.organization_id),
            subject: row.subject,
            replaceable: row.replaceable,
            payload: row.payload,
            pool: row.pool,
            state: row.state,
            attempt: row.attempt,
            excused: row.excused,
            run_at: row.run_at,
            enqueued_at: row.enqueued_at,
            started_at: row.started_at.map(Timestamp::from),
            finished_at: row.finished_at.map(Timestamp::from),
            cancel_requested_at: row.cancel_requested_at.map(Timestamp::from),
            superseded_by: row.superseded_by.map(JobId::from),
            reason: row.reason,
        }
    }
}

/// The lease of a running job.
#[derive(Queryable, Selectable)]
#[diesel(table_name = jobs)]
pub(super) struct LeaseRow {
    id: DbId,
    attempt: i32,
    lease_instance: Option<DbId>,
    lease_boot: Option<DbId>,
    lease_worker: Option<i32>,
    lease_until: Option<DbTs>,
    runs_on: Option<DbId>,
}

impl LeaseRow {
    /// Returns whether the job is bound to another server than `instance`.
    pub(super) fn is_bound_elsewhere(&self, instance: InstanceId) -> bool {
        self.runs_on.is_some_and(|server| server != instance.into())
    }

    /// Returns whether the lease expired before or at `at`.
    pub(super) fn has_ended_by(&self, at: Timestamp) -> bool {
        self.lease_until.is_some_and(|until| until.0 <= at)
    }

    /// Returns the lease; `None` for a job that does not run.
    pub(super) fn lease(&self) -> Option<Lease> {
        let worker = WorkerId {
            instance: self.lease_instance?.into(),
            boot: self.lease_boot?.into(),
            worker: self.lease_worker?,
        };
        Some(Lease { job: self.id.into(), attempt: self.attempt, worker })
    }
}

/// Selects queued jobs. Written as a literal, like the other two, because with a parameter the planner does
/// not see that the partial indexes apply.
pub(super) fn waits() -> Literal<Bool> {
    literal("jobs.state = 'queued'")
}

/// Selects queued jobs that a newer one supersedes.
pub(super) fn waits_replaceable() -> Literal<Bool> {
    literal("jobs.state = 'queued' AND jobs.replaceable")
}

/// Selects running jobs.
pub(crate) fn runs() -> Literal<Bool> {
    literal("jobs.state = 'running'")
}

/// Selects jobs that are bound to no other server.
#[auto_type(no_type_alias)]
pub(super) fn may_run_on(server: DbId) -> _ {
    jobs::runs_on.is_null().or(jobs::runs_on.assume_not_null().eq(server))
}

/// Selects the job on which the lease is still valid.
#[auto_type(no_type_alias)]
pub(super) fn held_by(lease: &Lease) -> _ {
    let id: DbId = DbId::from(lease.job);
    let attempt: i32 = lease.attempt;
    let instance: DbId = DbId::from(lease.worker.instance);
    let boot: DbId = DbId::from(lease.worker.boot);
    let worker: i32 = lease.worker.worker;
    jobs::id
        .eq(id)
        .and(jobs::state.eq("running"))
        .and(jobs::attempt.eq(attempt))
        .and(jobs::lease_instance.eq(instance))
        .and(jobs::lease_boot.eq(boot))
        .and(jobs::lease_worker.eq(worker))
}

/// Returns one job, which on PostgreSQL no other transaction changes until this one ends.
pub(super) fn held_job(connection: &mut AnyConnection, id: JobId) -> Result<Option<Job>, QueryError> {
    let job = jobs::table.find(DbId::from(id)).select(JobRow::as_select());
    let row = match connection {
        AnyConnection::Sqlite(sqlite) => job.get_result(sqlite),
        AnyConnection::Postgres(postgres) => {
            jobs::table.find(DbId::from(id)).select(JobRow::as_select()).for_update().get_result(postgres)
        }
    };
    Ok(row.optional()?.map(Job::from))
}
