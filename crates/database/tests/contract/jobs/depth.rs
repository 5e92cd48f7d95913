//! The depth of the queue.

use launchway_database::Database;
use launchway_domain::jobs::{JobKind, NewJob, Outcome, QueueDepth, QueueStatistics as _};

use super::{a_job, a_worker, claim, enqueue, settle, somebody};
use crate::builders::at;

contract!(an_empty_queue_has_no_depth, unfinished_jobs_are_counted_by_kind);

async fn an_empty_queue_has_no_depth(db: Database) {
    assert_eq!(db.depths().await.unwrap(), []);
}

async fn unfinished_jobs_are_counted_by_kind(db: Database) {
    let scope = somebody(&db).await;
    enqueue(&db, &a_job(scope)).await;
    let finished = claim(&db, a_worker(), 0).await.unwrap();
    settle(&db, finished.lease, Outcome::Succeeded, 1).await.unwrap();
    enqueue(&db, &a_job(scope)).await;
    claim(&db, a_worker(), 2).await.unwrap();
    for (kind, seconds) in [(JobKind::Stop, 9), (JobKind::Deploy, 8), (JobKind::Deploy, 7)] {
        enqueue(&db, &NewJob { kind, enqueued_at: at(seconds), ..a_job(scope) }).await;
    }
    let depth = |kind, waiting, running, oldest| QueueDepth {
        kind,
        waiting,
        running,
        oldest_waiting: Some(at(oldest)),
    };
    let expected = [depth(JobKind::Deploy, 2, 1, 7), depth(JobKind::Stop, 1, 0, 9)];
    assert_eq!(db.depths().await.unwrap(), expected);
}
