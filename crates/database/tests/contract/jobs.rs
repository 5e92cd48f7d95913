//! Contract of `JobQueue` and its writes.

mod bound;
mod cancellation;
mod claims;
mod concurrency;
mod depth;
mod enqueue;
mod fairness;
mod leases;
mod model;
mod pools;
mod recovery;
mod retention;

use launchway_database::Database;
use launchway_domain::{
    ids::{BootId, InstanceId, JobId, SubjectId},
    jobs::{
        ClaimLimits, ClaimedJob, Job, JobKind, JobQueue as _, JobState, Lease, NewJob, Outcome, Pool,
        WorkerId, Write,
    },
    organizations::Scope,
    store::{StoreError, UnitOfWork as _},
};
use uuid::Uuid;

use crate::builders::{Resident, at, id};

/// Higher limits than any test reaches.
const NO_LIMITS: ClaimLimits = ClaimLimits { builds: 10_000, operations: 10_000, per_organization: 10_000 };

/// A job of that organization on a subject of its own, due at once.
pub(crate) fn a_job(scope: Scope) -> NewJob {
    a_job_on(scope, id())
}

fn a_job_on(scope: Scope, subject: SubjectId) -> NewJob {
    NewJob {
        id: id(),
        kind: JobKind::Deploy,
        scope,
        subject,
        replaceable: true,
        payload: r#"{"commit":"abc"}"#.to_owned(),
        pool: Pool::Builds,
        run_at: at(0),
        enqueued_at: at(0),
    }
}

pub(crate) fn worker(instance: u128, boot: u128, worker: i32) -> WorkerId {
    let [instance, boot]: [Uuid; 2] = [instance, boot].map(Uuid::from_u128);
    WorkerId { instance: InstanceId::from(instance), boot: BootId::from(boot), worker }
}

/// A worker of the first boot of the first instance.
pub(crate) fn a_worker() -> WorkerId {
    worker(1, 1, 1)
}

pub(crate) async fn enqueue(db: &Database, job: &NewJob) -> JobId {
    // Without an entry: its cause has one.
    db.commit(vec![Write::Enqueue(job.clone()).into()]).await.unwrap();
    job.id
}

/// Claims the next job for thirty seconds.
pub(crate) async fn claim(db: &Database, worker: WorkerId, seconds: i64) -> Option<ClaimedJob> {
    db.claim(&worker, NO_LIMITS, at(seconds), at(seconds + 30)).await.unwrap()
}

/// A running job.
pub(crate) async fn running(db: &Database, scope: Scope) -> ClaimedJob {
    enqueue(db, &a_job(scope)).await;
    claim(db, a_worker(), 0).await.unwrap()
}

async fn settle(db: &Database, lease: Lease, outcome: Outcome, seconds: i64) -> Result<(), StoreError> {
    db.commit(vec![Write::Settle { lease, outcome, at: at(seconds) }.into()]).await
}

pub(crate) async fn job(db: &Database, scope: Scope, id: JobId) -> Job {
    db.get(scope, id).await.unwrap().unwrap()
}

async fn state(db: &Database, scope: Scope, id: JobId) -> JobState {
    job(db, scope, id).await.state
}

pub(crate) async fn somebody(db: &Database) -> Scope {
    Resident::of(db, "ada").await.scope()
}
