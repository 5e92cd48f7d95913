//! Pools: jobs of different pools do not block each other.

use std::collections::HashSet;

use launchway_database::Database;
use launchway_domain::{
    ids::{JobId, SubjectId},
    jobs::{ClaimLimits, JobKind, JobQueue as _, JobState, NewJob, Outcome, Pool},
    organizations::Scope,
};

use super::{a_job, a_worker, claim, enqueue, job, running, settle, somebody, worker};
use crate::builders::{Resident, at, id};

contract!(
    each_pool_has_a_limit_of_its_own,
    a_full_pool_holds_up_no_other,
    each_server_has_the_places_of_a_pool,
    an_organization_has_its_share_of_all_servers,
    an_organization_has_its_share_of_each_pool,
    runs_of_extensions_leave_a_place_free,
    a_pool_is_read_as_it_was_stored,
    a_busy_subject_is_busy_in_every_pool,
    a_postponed_job_waits_and_the_attempt_does_not_count,
    a_postponed_job_gives_way_to_a_newer_one,
    a_postponed_job_that_nobody_wants_is_cancelled,
    the_subjects_of_running_jobs_are_listed,
);

fn a_job_in(scope: Scope, pool: Pool) -> NewJob {
    NewJob { pool, ..a_job(scope) }
}

/// Claims every job that may run, and returns their pools, sorted.
async fn claim_all(db: &Database, limits: ClaimLimits) -> Vec<&'static str> {
    let mut pools = vec![];
    while let Some(claimed) = db.claim(&a_worker(), limits, at(0), at(30)).await.unwrap() {
        pools.push(claimed.job.pool.as_str());
    }
    pools.sort_unstable();
    pools
}

async fn each_pool_has_a_limit_of_its_own(db: Database) {
    let scope = somebody(&db).await;
    for pool in Pool::ALL {
        for _ in 0..5 {
            enqueue(&db, &a_job_in(scope, *pool)).await;
        }
    }
    let limits = ClaimLimits { builds: 2, operations: 3, per_organization: 9 };
    let expected =
        ["builds", "builds", "extensions", "operations", "operations", "operations", "sites", "sites"];
    assert_eq!(claim_all(&db, limits).await, expected);
    assert_eq!(limits.total(), expected.len());
    let more = ClaimLimits { operations: 4, ..limits };
    assert_eq!(claim_all(&db, more).await, ["operations"]);
}

async fn a_full_pool_holds_up_no_other(db: Database) {
    let scope = somebody(&db).await;
    for _ in 0..100 {
        enqueue(&db, &a_job_in(scope, Pool::Builds)).await;
    }
    let limits = ClaimLimits { builds: 1, operations: 1, per_organization: 1 };
    assert_eq!(claim_all(&db, limits).await, ["builds"]);
    for pool in [Pool::Operations, Pool::Sites, Pool::Extensions] {
        let later = NewJob { run_at: at(0), enqueued_at: at(9), ..a_job_in(scope, pool) };
        enqueue(&db, &later).await;
        assert_eq!(claim_all(&db, limits).await, [pool.as_str()]);
    }
}

/// Claims as three servers in turn until none of them gets a job, and returns the number of jobs of each.
async fn claim_as_three(db: &Database, limits: ClaimLimits) -> [usize; 3] {
    let mut claimed = [0; 3];
    loop {
        let before = claimed;
        for (count, instance) in claimed.iter_mut().zip(1..) {
            let job = db.claim(&worker(instance, 1, 1), limits, at(0), at(30)).await.unwrap();
            *count += usize::from(job.is_some());
        }
        if claimed == before {
            return claimed;
        }
    }
}

async fn each_server_has_the_places_of_a_pool(db: Database) {
    let scope = somebody(&db).await;
    for pool in [Pool::Builds, Pool::Operations] {
        for _ in 0..10 {
            enqueue(&db, &a_job_in(scope, pool)).await;
        }
    }
    let limits = ClaimLimits { builds: 2, operations: 3, per_organization: 100 };
    assert_eq!(claim_as_three(&db, limits).await, [5, 5, 5]);
    let more = ClaimLimits { builds: 3, ..limits };
    assert_eq!(
        db.claim(&worker(2, 2, 1), limits, at(0), at(30)).await.unwrap(),
        None,
        "in its next boot too"
    );
    assert!(db.claim(&worker(2, 2, 1), more, at(0), at(30)).await.unwrap().is_some());
}

async fn an_organization_has_its_share_of_all_servers(db: Database) {
    let [ada, grace] = [Resident::of(&db, "ada").await.scope(), Resident::of(&db, "grace").await.scope()];
    for scope in [ada, grace] {
        for _ in 0..10 {
            enqueue(&db, &a_job_in(scope, Pool::Builds)).await;
        }
    }
    let limits = ClaimLimits { builds: 4, operations: 0, per_organization: 3 };
    assert_eq!(claim_as_three(&db, limits).await, [2, 2, 2], "three of each organization");
}

async fn an_organization_has_its_share_of_each_pool(db: Database) {
    let [ada, grace] = [Resident::of(&db, "ada").await.scope(), Resident::of(&db, "grace").await.scope()];
    for scope in [ada, ada, ada, grace] {
        for pool in [Pool::Builds, Pool::Operations] {
            enqueue(&db, &a_job_in(scope, pool)).await;
        }
    }
    let limits = ClaimLimits { builds: 9, operations: 3, per_organization: 2 };
    let mut taken = vec![];
    while let Some(claimed) = db.claim(&a_worker(), limits, at(0), at(30)).await.unwrap() {
        taken.push((claimed.job.scope, claimed.job.pool));
    }
    for pool in [Pool::Builds, Pool::Operations] {
        let count = |scope| taken.iter().filter(|one| **one == (scope, pool)).count();
        assert_eq!((count(ada), count(grace)), (2, 1), "{}", pool.as_str());
    }
}

async fn runs_of_extensions_leave_a_place_free(db: Database) {
    let scope = somebody(&db).await;
    for _ in 0..5 {
        let run = NewJob { kind: JobKind::RunExtension, ..a_job_in(scope, Pool::Extensions) };
        enqueue(&db, &run).await;
    }
    let limits = |builds| ClaimLimits { builds, operations: 0, per_organization: 9 };
    assert_eq!(claim_all(&db, limits(1)).await.len(), 1, "there is one place in any case");
    assert_eq!(claim_all(&db, limits(2)).await.len(), 0);
    assert_eq!(claim_all(&db, limits(4)).await.len(), 2);
}

async fn a_pool_is_read_as_it_was_stored(db: Database) {
    let scope = somebody(&db).await;
    for pool in Pool::ALL {
        let id = enqueue(&db, &a_job_in(scope, *pool)).await;
        assert_eq!(job(&db, scope, id).await.pool, *pool);
    }
}

async fn a_busy_subject_is_busy_in_every_pool(db: Database) {
    let scope = somebody(&db).await;
    let build = running(&db, scope).await;
    let restart =
        NewJob { subject: build.job.subject, kind: JobKind::Restart, ..a_job_in(scope, Pool::Operations) };
    let restart = enqueue(&db, &restart).await;
    assert_eq!(claim(&db, a_worker(), 0).await, None);
    settle(&db, build.lease, Outcome::Succeeded, 1).await.unwrap();
    assert_eq!(claim(&db, a_worker(), 1).await.unwrap().job.id, restart);
}

const AWAY: &str = "waiting for the Docker engine: it does not answer";

async fn a_postponed_job_waits_and_the_attempt_does_not_count(db: Database) {
    let scope = somebody(&db).await;
    let mut claimed = running(&db, scope).await;
    for seconds in 1..=20 {
        let (now, due) = (seconds * 3, seconds * 3 + 3);
        let postponed = db.postpone(&claimed.lease, AWAY, at(now), at(due)).await.unwrap();
        assert_eq!(postponed, JobState::Queued);
        assert!(db.postpone(&claimed.lease, AWAY, at(now), at(due)).await.is_err(), "the lease is void");
        let waiting = job(&db, scope, claimed.job.id).await;
        assert_eq!((waiting.run_at, waiting.reason.as_deref()), (at(due), Some(AWAY)));
        assert_eq!(claim(&db, a_worker(), due - 1).await, None);
        claimed = claim(&db, a_worker(), due).await.unwrap();
        assert_eq!(claimed.job.reason.as_deref(), Some(AWAY), "whoever claims it sees that it waited");
    }
    assert_eq!((claimed.job.attempt, claimed.job.excused), (21, 20));
    assert_eq!(claimed.job.started_at, Some(at(0)), "the wait is counted from the first attempt");
    assert!(!claimed.job.is_last_attempt());
    for expected in [JobState::Queued, JobState::Queued, JobState::Failed] {
        assert_eq!(db.retry(&claimed.lease, "no disk", at(90), at(90)).await.unwrap(), expected);
        if let Some(next) = claim(&db, a_worker(), 90).await {
            claimed = next;
        }
    }
}

async fn a_postponed_job_gives_way_to_a_newer_one(db: Database) {
    let scope = somebody(&db).await;
    let old = running(&db, scope).await;
    let newer = enqueue(&db, &super::a_job_on(scope, old.job.subject)).await;
    let postponed = db.postpone(&old.lease, AWAY, at(1), at(4)).await.unwrap();
    assert_eq!(postponed, JobState::Superseded);
    assert_eq!(job(&db, scope, old.job.id).await.superseded_by, Some(newer));
}

async fn a_postponed_job_that_nobody_wants_is_cancelled(db: Database) {
    let scope = somebody(&db).await;
    let claimed = running(&db, scope).await;
    let cancel = launchway_domain::jobs::Write::RequestCancel { scope, id: claimed.job.id, at: at(1) };
    crate::builders::commit(&db, cancel).await.unwrap();
    let postponed = db.postpone(&claimed.lease, AWAY, at(2), at(5)).await.unwrap();
    assert_eq!(postponed, JobState::Cancelled);
}

async fn the_subjects_of_running_jobs_are_listed(db: Database) {
    let [ada, grace] = [Resident::of(&db, "ada").await.scope(), Resident::of(&db, "grace").await.scope()];
    assert_eq!(db.running().await.unwrap(), []);
    let subjects: [SubjectId; 3] = [id(), id(), id()];
    let mut leases = vec![];
    for (scope, subject, pool) in [(ada, subjects[0], Pool::Builds), (grace, subjects[1], Pool::Operations)] {
        let _job: JobId = enqueue(&db, &NewJob { subject, ..a_job_in(scope, pool) }).await;
        leases.push(claim(&db, a_worker(), 0).await.unwrap().lease);
    }
    enqueue(&db, &NewJob { subject: subjects[2], ..a_job(ada) }).await;
    let running = async || db.running().await.unwrap().into_iter().collect::<HashSet<_>>();
    assert_eq!(running().await, HashSet::from([subjects[0], subjects[1]]), "one waits");
    settle(&db, leases[0], Outcome::Succeeded, 1).await.unwrap();
    db.postpone(&leases[1], AWAY, at(1), at(4)).await.unwrap();
    assert_eq!(running().await, HashSet::new());
}
