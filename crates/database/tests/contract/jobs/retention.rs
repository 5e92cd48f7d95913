//! Deletion of old jobs.

use launchway_database::Database;
use launchway_domain::jobs::{JobKind, JobQueue as _, JobState, NewJob, Outcome};

use super::{a_job, a_worker, claim, enqueue, settle, somebody, state};
use crate::builders::at;

contract!(
    what_was_over_before_then_is_forgotten_and_nothing_else,
    that_something_was_stopped_is_not_forgotten,
    many_are_forgotten_some_at_a_time,
);

async fn what_was_over_before_then_is_forgotten_and_nothing_else(db: Database) {
    let scope = somebody(&db).await;
    let mut over = Vec::new();
    for seconds in [10, 20] {
        enqueue(&db, &a_job(scope)).await;
        let claimed = claim(&db, a_worker(), 0).await.unwrap();
        settle(&db, claimed.lease, Outcome::Succeeded, seconds).await.unwrap();
        over.push(claimed.job.id);
    }
    enqueue(&db, &a_job(scope)).await;
    let running = claim(&db, a_worker(), 0).await.unwrap().job.id;
    let waiting = enqueue(&db, &a_job(scope)).await;

    assert_eq!(db.forget(at(10)).await.unwrap(), 0, "not before then");
    assert_eq!(db.forget(at(11)).await.unwrap(), 1);
    assert_eq!(db.get(scope, over[0]).await.unwrap(), None);
    assert_eq!(state(&db, scope, over[1]).await, JobState::Succeeded);
    assert_eq!(db.forget(at(1_000_000)).await.unwrap(), 1);
    assert_eq!(state(&db, scope, running).await, JobState::Running);
    assert_eq!(state(&db, scope, waiting).await, JobState::Queued);
    assert_eq!(db.forget(at(1_000_000)).await.unwrap(), 0);
}

async fn that_something_was_stopped_is_not_forgotten(db: Database) {
    let scope = somebody(&db).await;
    let stop = enqueue(&db, &NewJob { kind: JobKind::Stop, ..a_job(scope) }).await;
    let claimed = claim(&db, a_worker(), 0).await.unwrap();
    settle(&db, claimed.lease, Outcome::Succeeded, 1).await.unwrap();
    assert_eq!(db.forget(at(100)).await.unwrap(), 0);
    assert_eq!(state(&db, scope, stop).await, JobState::Succeeded);
}

async fn many_are_forgotten_some_at_a_time(db: Database) {
    let scope = somebody(&db).await;
    for _ in 0..501 {
        enqueue(&db, &a_job(scope)).await;
    }
    crate::builders::execute(&db, "UPDATE jobs SET state = 'cancelled', finished_at = enqueued_at").await;
    assert_eq!(db.forget(at(1)).await.unwrap(), 500);
    assert_eq!(db.forget(at(1)).await.unwrap(), 1);
    assert_eq!(db.forget(at(1)).await.unwrap(), 0);
}
