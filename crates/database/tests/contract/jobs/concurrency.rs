//! Concurrent operations of all kinds, by several processes.

use launchway_database::Database;
use launchway_domain::{
    ids::{JobId, SubjectId},
    jobs::{ClaimLimits, JobQueue as _, NewJob, Outcome, Write},
    organizations::Scope,
    store::StoreError,
};
use tokio::task::JoinSet;

use super::{a_job_on, a_worker, claim, enqueue, job, settle, state, worker};
use crate::{
    builders::{Resident, at, commit, id},
    fresh::Fresh,
};

contract!(whatever_happens_at_once_breaks_no_promise_and_loses_no_job);

/// A stale write is allowed; no other error is.
fn expect_done_or_stale<T>(outcome: Result<T, StoreError>) {
    assert!(matches!(outcome, Ok(_) | Err(StoreError::Stale)), "{:?}", outcome.err());
}

/// Enqueues a job for every subject, and cancels some of them.
async fn push(db: Database, subjects: Vec<(Scope, SubjectId)>) -> Vec<(Scope, JobId)> {
    let mut pushed = vec![];
    for round in 0..6 {
        for (scope, subject) in &subjects {
            let new = NewJob { replaceable: round % 3 != 0, ..a_job_on(*scope, *subject) };
            pushed.push((*scope, enqueue(&db, &new).await));
            if round % 2 == 0 {
                let cancel = Write::RequestCancel { scope: *scope, id: new.id, at: at(1) };
                expect_done_or_stale(commit(&db, cancel).await);
            }
        }
    }
    pushed
}

/// Works on the jobs that it claims, and ends them in all possible ways.
async fn work(db: Database, number: i32) {
    let limits = ClaimLimits { builds: 5, operations: 0, per_organization: 3 };
    for round in 0..30 {
        let claimed = db.claim(&worker(1, 1, number), limits, at(1), at(30)).await.unwrap();
        let Some(claimed) = claimed else { continue };
        let stored = job(&db, claimed.job.scope, claimed.job.id).await;
        assert!(stored.attempt >= claimed.job.attempt);
        db.heartbeat(&claimed.lease, at(30)).await.unwrap();
        match (round + number) % 5 {
            4 => expect_done_or_stale(db.postpone(&claimed.lease, "away", at(1), at(1)).await),
            0 => expect_done_or_stale(db.retry(&claimed.lease, "again", at(1), at(1)).await),
            1 => expect_done_or_stale(db.release(&claimed.lease, at(1)).await),
            // Left to the rescuers.
            2 => {}
            _ => expect_done_or_stale(settle(&db, claimed.lease, Outcome::Succeeded, 1).await),
        }
    }
}

/// Rescues the jobs of all workers, repeatedly.
async fn rescue(db: Database) {
    for _ in 0..20 {
        db.rescue(id(), id(), at(1000)).await.unwrap();
        tokio::task::yield_now().await;
    }
}

async fn whatever_happens_at_once_breaks_no_promise_and_loses_no_job(fresh: &Fresh) {
    let db = &fresh.database;
    let mut subjects = vec![];
    for name in ["ada", "grace"] {
        let scope = Resident::of(db, name).await.scope();
        subjects.extend([(scope, id()), (scope, id())]);
    }
    let replica = fresh.open_again();
    let either = |number: i32| if number % 2 == 0 { db.clone() } else { replica.clone() };
    let (mut pushers, mut others) = (JoinSet::new(), JoinSet::new());
    for number in 0..6 {
        pushers.spawn(push(either(number), subjects.clone()));
        others.spawn(work(either(number), number));
        others.spawn(rescue(either(number)));
    }
    let pushed: Vec<_> = pushers.join_all().await.into_iter().flatten().collect();
    others.join_all().await;

    db.rescue(id(), id(), at(1000)).await.unwrap();
    while let Some(claimed) = claim(db, a_worker(), 1000).await {
        settle(db, claimed.lease, Outcome::Succeeded, 1000).await.unwrap();
    }
    assert_eq!(pushed.len(), 144);
    for (scope, id) in pushed {
        let state = state(db, scope, id).await;
        assert!(state.is_final(), "{id} is {state:?}");
    }
}
