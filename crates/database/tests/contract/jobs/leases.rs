//! The rights of a lease, which end with it.

use launchway_database::Database;
use launchway_domain::{
    auth,
    jobs::{Heartbeat, JobQueue as _, JobState, Lease, Outcome, Write},
    store::{StoreError, UnitOfWork as _},
};

use super::{a_job_on, a_worker, claim, enqueue, job, running, settle, somebody, state, worker};
use crate::builders::{at, audited, id, is_stale};

contract!(
    a_lease_that_holds_is_proved_and_stays_as_it_is,
    of_who_proves_a_lease_and_who_takes_it_away_one_is_first,
    a_heartbeat_extends_the_lease,
    a_job_ends_as_its_worker_says,
    an_outcome_is_stored_with_what_came_of_it_or_not_at_all,
    a_lease_is_of_one_worker_and_one_attempt,
    a_zombie_changes_nothing,
    what_has_finished_has_no_lease,
    a_released_job_waits_again_and_the_attempt_does_not_count,
    a_retried_job_waits_until_it_is_due_and_the_attempt_counts,
    the_third_retry_is_the_end,
    a_returned_job_is_superseded_by_a_newer_queued_one,
);

async fn a_heartbeat_extends_the_lease(db: Database) {
    let claimed = running(&db, somebody(&db).await).await;
    assert_eq!(db.heartbeat(&claimed.lease, at(100)).await.unwrap(), Heartbeat::Held);
    let boot = a_worker().boot;
    assert_eq!(db.rescue(a_worker().instance, boot, at(99)).await.unwrap(), vec![]);
    assert_eq!(db.rescue(a_worker().instance, boot, at(100)).await.unwrap().len(), 1);
}

async fn a_job_ends_as_its_worker_says(db: Database) {
    let scope = somebody(&db).await;
    let failed = Outcome::Failed { reason: "no such branch".to_owned() };
    for (outcome, expected) in [
        (Outcome::Succeeded, JobState::Succeeded),
        (failed.clone(), JobState::Failed),
        (Outcome::Cancelled, JobState::Cancelled),
    ] {
        let claimed = running(&db, scope).await;
        settle(&db, claimed.lease, outcome.clone(), 5).await.unwrap();
        let job = job(&db, scope, claimed.job.id).await;
        assert_eq!((job.state, job.finished_at), (expected, Some(at(5))));
        assert_eq!(job.reason.as_deref(), outcome.reason());
    }
    assert_eq!(claim(&db, a_worker(), 9).await, None);
}

async fn an_outcome_is_stored_with_what_came_of_it_or_not_at_all(db: Database) {
    let scope = somebody(&db).await;
    let claimed = running(&db, scope).await;
    let settle = Write::Settle { lease: claimed.lease, outcome: Outcome::Succeeded, at: at(1) };
    let fails = auth::Write::EndSession { id: id(), at: at(0) };
    assert!(is_stale(&db.commit(audited(vec![settle.into(), fails.into()])).await));
    assert_eq!(state(&db, scope, claimed.job.id).await, JobState::Running);
    assert_eq!(db.heartbeat(&claimed.lease, at(60)).await.unwrap(), Heartbeat::Held);
}

async fn a_lease_that_holds_is_proved_and_stays_as_it_is(db: Database) {
    let scope = somebody(&db).await;
    let claimed = running(&db, scope).await;
    db.commit(vec![Write::Prove(claimed.lease).into()]).await.unwrap();
    assert_eq!(job(&db, scope, claimed.job.id).await, claimed.job);
    assert_eq!(db.rescue(id(), id(), at(29)).await.unwrap(), vec![]);
    assert_eq!(db.rescue(id(), id(), at(30)).await.unwrap().len(), 1);
}

async fn of_who_proves_a_lease_and_who_takes_it_away_one_is_first(db: Database) {
    let scope = somebody(&db).await;
    for seconds in 0..10 {
        let claimed = running(&db, scope).await;
        let cancel = Write::RequestCancel { scope, id: claimed.job.id, at: at(seconds) };
        let proved = db.commit(vec![Write::Prove(claimed.lease).into()]);
        let rescued = db.rescue(id(), id(), at(1000));
        let (proved, rescued) = tokio::join!(proved, rescued);
        assert!(proved.is_ok() || is_stale(&proved), "{proved:?}");
        assert_eq!(rescued.unwrap().len(), 1);
        assert!(is_stale(&db.commit(vec![Write::Prove(claimed.lease).into()]).await));
        db.commit(audited(vec![cancel.into()])).await.unwrap();
    }
}

/// Asserts that every operation with the lease fails.
async fn assert_void(db: &Database, lease: Lease) {
    assert_eq!(db.heartbeat(&lease, at(1000)).await.unwrap(), Heartbeat::Lost, "{lease:?}");
    assert!(is_stale(&settle(db, lease, Outcome::Succeeded, 1).await), "{lease:?}");
    assert!(is_stale(&db.commit(vec![Write::Prove(lease).into()]).await), "{lease:?}");
    let retried = db.retry(&lease, "again", at(1), at(1)).await;
    assert!(matches!(retried, Err(StoreError::Stale)), "{lease:?}: {retried:?}");
    let released = db.release(&lease, at(1)).await;
    assert!(matches!(released, Err(StoreError::Stale)), "{lease:?}: {released:?}");
}

async fn a_lease_is_of_one_worker_and_one_attempt(db: Database) {
    let scope = somebody(&db).await;
    let claimed = running(&db, scope).await;
    for other in [worker(2, 1, 1), worker(1, 2, 1), worker(1, 1, 2)] {
        assert_void(&db, Lease { worker: other, ..claimed.lease }).await;
    }
    assert_void(&db, Lease { attempt: 0, ..claimed.lease }).await;
    assert_void(&db, Lease { attempt: 2, ..claimed.lease }).await;
    assert_void(&db, Lease { job: id(), ..claimed.lease }).await;
    assert_eq!(job(&db, scope, claimed.job.id).await, claimed.job);
}

async fn a_zombie_changes_nothing(db: Database) {
    let scope = somebody(&db).await;
    let zombie = running(&db, scope).await;
    db.rescue(id(), id(), at(30)).await.unwrap();
    assert_void(&db, zombie.lease).await;
    // Not even when the same worker has the job again.
    let claimed = claim(&db, a_worker(), 40).await.unwrap();
    assert_eq!(claimed.job.id, zombie.job.id);
    assert_void(&db, zombie.lease).await;
    assert_eq!(job(&db, scope, claimed.job.id).await, claimed.job);
    settle(&db, claimed.lease, Outcome::Succeeded, 41).await.unwrap();
}

async fn what_has_finished_has_no_lease(db: Database) {
    let scope = somebody(&db).await;
    let claimed = running(&db, scope).await;
    settle(&db, claimed.lease, Outcome::Succeeded, 1).await.unwrap();
    assert_void(&db, claimed.lease).await;
    assert_eq!(db.rescue(id(), id(), at(1000)).await.unwrap(), vec![]);
    assert_eq!(state(&db, scope, claimed.job.id).await, JobState::Succeeded);
}

async fn a_released_job_waits_again_and_the_attempt_does_not_count(db: Database) {
    let scope = somebody(&db).await;
    let mut claimed = running(&db, scope).await;
    for seconds in 1..=5 {
        assert_eq!(db.release(&claimed.lease, at(seconds)).await.unwrap(), JobState::Queued);
        assert_void(&db, claimed.lease).await;
        claimed = claim(&db, a_worker(), seconds).await.unwrap();
        assert!(!claimed.job.is_last_attempt());
    }
    assert_eq!((claimed.job.attempt, claimed.job.excused), (6, 5));
    assert_eq!(claimed.job.started_at, Some(at(0)));
    for expected in [JobState::Queued, JobState::Queued, JobState::Failed] {
        assert_eq!(db.retry(&claimed.lease, "no disk", at(6), at(6)).await.unwrap(), expected);
        if let Some(next) = claim(&db, a_worker(), 6).await {
            claimed = next;
        }
    }
}

async fn a_retried_job_waits_until_it_is_due_and_the_attempt_counts(db: Database) {
    let scope = somebody(&db).await;
    let claimed = running(&db, scope).await;
    let retried = db.retry(&claimed.lease, "the registry does not answer", at(1), at(6)).await.unwrap();
    assert_eq!(retried, JobState::Queued);
    let waiting = job(&db, scope, claimed.job.id).await;
    assert_eq!(waiting.reason.as_deref(), Some("the registry does not answer"));
    assert_eq!((waiting.run_at, waiting.finished_at), (at(6), None));
    assert_eq!(claim(&db, a_worker(), 5).await, None);
    let again = claim(&db, a_worker(), 6).await.unwrap();
    assert_eq!((again.job.attempt, again.job.excused), (2, 0));
}

async fn the_third_retry_is_the_end(db: Database) {
    let scope = somebody(&db).await;
    let first = running(&db, scope).await;
    db.retry(&first.lease, "one", at(1), at(1)).await.unwrap();
    let second = claim(&db, a_worker(), 1).await.unwrap();
    db.retry(&second.lease, "two", at(2), at(2)).await.unwrap();
    let third = claim(&db, a_worker(), 2).await.unwrap();
    assert!(third.job.is_last_attempt());
    assert_eq!(db.retry(&third.lease, "three", at(3), at(4)).await.unwrap(), JobState::Failed);
    let job = job(&db, scope, first.job.id).await;
    assert_eq!((job.reason.as_deref(), job.finished_at), (Some("three"), Some(at(3))));
}

async fn a_returned_job_is_superseded_by_a_newer_queued_one(db: Database) {
    let scope = somebody(&db).await;
    let mut old = running(&db, scope).await;
    for release in [true, false] {
        let newer = enqueue(&db, &a_job_on(scope, old.job.subject)).await;
        let returned = if release {
            db.release(&old.lease, at(1)).await
        } else {
            db.retry(&old.lease, "again", at(1), at(2)).await
        };
        assert_eq!(returned.unwrap(), JobState::Superseded);
        let given_back = job(&db, scope, old.job.id).await;
        assert_eq!((given_back.superseded_by, given_back.finished_at), (Some(newer), Some(at(1))));
        old = claim(&db, a_worker(), 1).await.unwrap();
        assert_eq!(old.job.id, newer);
    }
}
