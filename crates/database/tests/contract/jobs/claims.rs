//! Claiming jobs.

use std::collections::HashSet;

use launchway_database::Database;
use launchway_domain::{
    jobs::{ClaimLimits, JobQueue as _, JobState, Lease, NewJob, Outcome},
    organizations::Scope,
};
use tokio::task::JoinSet;

use super::{a_job, a_job_on, a_worker, claim, enqueue, job, settle, somebody, state, worker};
use crate::{
    builders::{Resident, at, execute, id},
    fresh::Fresh,
};

contract!(
    a_claim_makes_the_job_run_as_an_attempt_of_that_worker,
    an_empty_queue_gives_nothing,
    each_job_is_claimed_once_however_many_claim,
    of_one_subject_one_runs_even_among_many_claims,
    the_database_rejects_a_second_running_job_of_a_subject,
    a_job_that_is_due_later_is_not_claimed_before,
    what_was_to_run_first_runs_first,
    a_busy_subject_does_not_hold_up_the_others,
    limits_hold_for_the_installation_and_each_organization,
    limits_hold_among_many_claims_at_once,
);

async fn a_claim_makes_the_job_run_as_an_attempt_of_that_worker(db: Database) {
    let scope = somebody(&db).await;
    let id = enqueue(&db, &a_job(scope)).await;
    let claimed = claim(&db, worker(1, 2, 3), 7).await.unwrap();
    assert_eq!(claimed.lease, Lease { job: id, attempt: 1, worker: worker(1, 2, 3) });
    assert_eq!((claimed.job.state, claimed.job.attempt), (JobState::Running, 1));
    assert_eq!(claimed.job.started_at, Some(at(7)));
    assert_eq!(job(&db, scope, id).await, claimed.job);
}

async fn an_empty_queue_gives_nothing(db: Database) {
    assert_eq!(claim(&db, a_worker(), 0).await, None);
    let scope = somebody(&db).await;
    enqueue(&db, &a_job(scope)).await;
    assert!(claim(&db, a_worker(), 0).await.is_some());
    assert_eq!(claim(&db, a_worker(), 0).await, None);
}

/// Lets 32 workers claim until nothing is left, and returns the result of each claim.
async fn claim_by_many(fresh: &Fresh, limits: ClaimLimits) -> Vec<Lease> {
    let replica = fresh.open_again();
    let mut tasks = JoinSet::new();
    for number in 0..32 {
        let db = if number % 2 == 0 { fresh.database.clone() } else { replica.clone() };
        tasks.spawn(async move {
            let mut leases = vec![];
            while let Some(claimed) = db.claim(&worker(1, 1, number), limits, at(0), at(30)).await.unwrap() {
                leases.push(claimed.lease);
            }
            leases
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

async fn each_job_is_claimed_once_however_many_claim(fresh: &Fresh) {
    let scope = somebody(&fresh.database).await;
    let mut enqueued = HashSet::new();
    for _ in 0..40 {
        enqueued.insert(enqueue(&fresh.database, &a_job(scope)).await);
    }
    let leases = claim_by_many(fresh, super::NO_LIMITS).await;
    assert_eq!(leases.len(), 40);
    assert_eq!(leases.iter().map(|lease| lease.job).collect::<HashSet<_>>(), enqueued);
}

async fn of_one_subject_one_runs_even_among_many_claims(fresh: &Fresh) {
    let db = &fresh.database;
    let scope = somebody(db).await;
    let subject = id();
    for _ in 0..5 {
        enqueue(db, &NewJob { replaceable: false, ..a_job_on(scope, subject) }).await;
    }
    for left in (0..5).rev() {
        let leases = claim_by_many(fresh, super::NO_LIMITS).await;
        assert_eq!(leases.len(), 1, "with {left} left");
        settle(db, leases[0], Outcome::Succeeded, 1).await.unwrap();
    }
    assert_eq!(claim(db, a_worker(), 0).await, None);
}

async fn the_database_rejects_a_second_running_job_of_a_subject(db: Database) {
    let scope = somebody(&db).await;
    let subject = id();
    for _ in 0..2 {
        enqueue(&db, &NewJob { replaceable: false, ..a_job_on(scope, subject) }).await;
    }
    claim(&db, a_worker(), 0).await.unwrap();
    let force = "UPDATE jobs SET state = 'running', attempt = 1, started_at = run_at, lease_until = run_at,
                 lease_instance = subject, lease_boot = subject, lease_worker = 1 WHERE state = 'queued'";
    let forced = tokio::spawn(async move { execute(&db, force).await });
    assert!(forced.await.is_err());
}

async fn a_job_that_is_due_later_is_not_claimed_before(db: Database) {
    let scope = somebody(&db).await;
    enqueue(&db, &NewJob { run_at: at(10), ..a_job(scope) }).await;
    assert_eq!(claim(&db, a_worker(), 9).await, None);
    assert!(claim(&db, a_worker(), 10).await.is_some());
}

async fn what_was_to_run_first_runs_first(db: Database) {
    let scope = somebody(&db).await;
    let mut order = vec![];
    for (run_at, enqueued_at) in [(3, 3), (2, 9), (2, 4), (9, 0), (1, 8)] {
        let new = NewJob { run_at: at(run_at), enqueued_at: at(enqueued_at), ..a_job(scope) };
        order.push((run_at, enqueued_at, enqueue(&db, &new).await));
    }
    order.sort_unstable();
    for (.., id) in order {
        assert_eq!(claim(&db, a_worker(), 10).await.unwrap().job.id, id);
    }
}

async fn a_busy_subject_does_not_hold_up_the_others(db: Database) {
    let scope = somebody(&db).await;
    let first = a_job(scope);
    enqueue(&db, &first).await;
    claim(&db, a_worker(), 0).await.unwrap();
    let blocked = enqueue(&db, &a_job_on(scope, first.subject)).await;
    let free = enqueue(&db, &NewJob { run_at: at(1), ..a_job(scope) }).await;
    assert_eq!(claim(&db, a_worker(), 1).await.unwrap().job.id, free);
    assert_eq!(claim(&db, a_worker(), 1).await, None);
    assert_eq!(state(&db, scope, blocked).await, JobState::Queued);
}

async fn three_each_of_two(db: &Database) -> [Scope; 2] {
    let scopes = [Resident::of(db, "ada").await.scope(), Resident::of(db, "grace").await.scope()];
    for scope in scopes {
        for _ in 0..3 {
            enqueue(db, &a_job(scope)).await;
        }
    }
    scopes
}

async fn limits_hold_for_the_installation_and_each_organization(db: Database) {
    let [ada, grace] = three_each_of_two(&db).await;
    let claim = async |builds, per_organization| {
        let limits = ClaimLimits { builds, operations: 0, per_organization };
        db.claim(&a_worker(), limits, at(0), at(30)).await.unwrap()
    };
    assert_eq!(claim(0, 1).await, None);
    assert_eq!(claim(1, 0).await, None);
    let first = claim(9, 1).await.unwrap();
    let second = claim(9, 1).await.unwrap();
    assert_eq!(
        HashSet::from([first.job.scope.id(), second.job.scope.id()]),
        HashSet::from([ada.id(), grace.id()])
    );
    assert_eq!(claim(9, 1).await, None);
    assert_eq!(claim(2, 9).await, None);
    assert!(claim(3, 9).await.is_some());
    settle(&db, first.lease, Outcome::Succeeded, 1).await.unwrap();
    assert!(claim(3, 9).await.is_some());
    assert_eq!(claim(3, 9).await, None);
}

async fn limits_hold_among_many_claims_at_once(fresh: &Fresh) {
    three_each_of_two(&fresh.database).await;
    let first = claim_by_many(fresh, ClaimLimits { builds: 9, operations: 0, per_organization: 1 }).await;
    assert_eq!(first.len(), 2);
    let more = claim_by_many(fresh, ClaimLimits { builds: 5, operations: 0, per_organization: 9 }).await;
    assert_eq!(more.len(), 3);
}
