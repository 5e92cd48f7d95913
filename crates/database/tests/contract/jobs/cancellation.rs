//! Cancellation of jobs.

use launchway_database::Database;
use launchway_domain::{
    ids::JobId,
    jobs::{Heartbeat, JobQueue as _, JobState, Outcome, Write},
    organizations::Scope,
    store::{StoreError, UnitOfWork as _},
};

use super::{a_job, a_job_on, a_worker, claim, enqueue, job, running, settle, somebody, state};
use crate::builders::{at, commit, id, is_stale};

contract!(
    a_job_that_waits_is_cancelled_at_once,
    the_worker_of_a_running_job_learns_that_it_is_not_wanted,
    what_has_finished_or_is_unknown_cannot_be_cancelled,
    a_cancelled_job_that_is_given_back_does_not_run_again,
    the_audit_log_has_to_name_who_cancels,
);

async fn cancel(db: &Database, scope: Scope, id: JobId, seconds: i64) -> Result<(), StoreError> {
    commit(db, Write::RequestCancel { scope, id, at: at(seconds) }).await
}

async fn a_job_that_waits_is_cancelled_at_once(db: Database) {
    let scope = somebody(&db).await;
    let id = enqueue(&db, &a_job(scope)).await;
    cancel(&db, scope, id, 4).await.unwrap();
    let job = job(&db, scope, id).await;
    assert_eq!((job.state, job.finished_at), (JobState::Cancelled, Some(at(4))));
    assert_eq!(claim(&db, a_worker(), 5).await, None);
}

async fn the_worker_of_a_running_job_learns_that_it_is_not_wanted(db: Database) {
    let scope = somebody(&db).await;
    let claimed = running(&db, scope).await;
    cancel(&db, scope, claimed.job.id, 4).await.unwrap();
    cancel(&db, scope, claimed.job.id, 5).await.unwrap();
    let found = job(&db, scope, claimed.job.id).await;
    assert_eq!((found.state, found.cancel_requested_at), (JobState::Running, Some(at(4))));
    for _ in 0..2 {
        assert_eq!(db.heartbeat(&claimed.lease, at(60)).await.unwrap(), Heartbeat::CancelRequested);
    }
    settle(&db, claimed.lease, Outcome::Cancelled, 6).await.unwrap();
    assert_eq!(state(&db, scope, claimed.job.id).await, JobState::Cancelled);
}

async fn what_has_finished_or_is_unknown_cannot_be_cancelled(db: Database) {
    let scope = somebody(&db).await;
    let claimed = running(&db, scope).await;
    settle(&db, claimed.lease, Outcome::Succeeded, 1).await.unwrap();
    assert!(is_stale(&cancel(&db, scope, claimed.job.id, 2).await));
    let job = job(&db, scope, claimed.job.id).await;
    assert_eq!((job.state, job.cancel_requested_at), (JobState::Succeeded, None));

    let old = a_job(scope);
    enqueue(&db, &old).await;
    enqueue(&db, &a_job_on(scope, old.subject)).await;
    assert!(is_stale(&cancel(&db, scope, old.id, 2).await));
    assert!(is_stale(&cancel(&db, scope, id(), 2).await));
}

async fn a_cancelled_job_that_is_given_back_does_not_run_again(db: Database) {
    let scope = somebody(&db).await;
    for release in [true, false] {
        let claimed = running(&db, scope).await;
        cancel(&db, scope, claimed.job.id, 1).await.unwrap();
        let returned = if release {
            db.release(&claimed.lease, at(2)).await
        } else {
            db.retry(&claimed.lease, "again", at(2), at(2)).await
        };
        assert_eq!(returned.unwrap(), JobState::Cancelled);
        assert_eq!(job(&db, scope, claimed.job.id).await.finished_at, Some(at(2)));
        assert_eq!(claim(&db, a_worker(), 3).await, None);
    }
}

async fn the_audit_log_has_to_name_who_cancels(db: Database) {
    let scope = somebody(&db).await;
    let id = enqueue(&db, &a_job(scope)).await;
    let silent = db.commit(vec![Write::RequestCancel { scope, id, at: at(1) }.into()]).await;
    assert!(matches!(silent, Err(StoreError::Unaudited)), "{silent:?}");
    assert_eq!(state(&db, scope, id).await, JobState::Queued);
}
