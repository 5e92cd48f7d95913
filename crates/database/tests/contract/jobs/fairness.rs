//! Fairness between organizations.

use launchway_database::Database;
use launchway_domain::{
    jobs::{ClaimLimits, JobQueue as _, JobState, Outcome, Write},
    store::UnitOfWork as _,
};

use super::{a_job, a_worker, claim, enqueue, job, settle};
use crate::builders::{Resident, at};

contract!(
    a_thousand_jobs_of_one_organization_do_not_delay_the_others,
    a_place_stays_free_for_an_organization_that_comes_later,
    who_has_fewer_running_goes_first,
    among_equals_who_was_served_longest_ago_goes_first,
);

async fn a_thousand_jobs_of_one_organization_do_not_delay_the_others(db: Database) {
    let busy = Resident::of(&db, "busy").await.scope();
    let many = (0..1000).map(|_| Write::Enqueue(a_job(busy)).into()).collect();
    db.commit(many).await.unwrap();
    let mut others = vec![];
    for name in ["b", "c", "d", "e"] {
        let scope = Resident::of(&db, name).await.scope();
        enqueue(&db, &a_job(scope)).await;
        others.push(scope.id());
    }
    let two_slots = ClaimLimits { builds: 2, operations: 0, per_organization: 2 };
    let mut started = vec![];
    let mut running = vec![];
    for _ in 0..10 {
        while let Some(claimed) = db.claim(&a_worker(), two_slots, at(1), at(30)).await.unwrap() {
            started.push(claimed.job.scope.id());
            running.push(claimed.lease);
        }
        settle(&db, running.remove(0), Outcome::Succeeded, 2).await.unwrap();
    }
    let mut positions: Vec<usize> =
        others.iter().map(|other| 1 + started.iter().position(|one| one == other).unwrap()).collect();
    positions.sort_unstable();
    assert_eq!(positions, [2, 3, 4, 5]);
    assert!(started.len() > 5);
}

async fn a_place_stays_free_for_an_organization_that_comes_later(db: Database) {
    let limits = ClaimLimits { builds: 3, operations: 0, per_organization: 2 };
    let claim = async || db.claim(&a_worker(), limits, at(1), at(30)).await.unwrap();
    let busy = Resident::of(&db, "busy").await.scope();
    let mut waiting = vec![];
    for _ in 0..5 {
        waiting.push(enqueue(&db, &a_job(busy)).await);
    }
    assert!(claim().await.is_some() && claim().await.is_some());
    assert_eq!(claim().await, None, "the third place is for others");
    for id in &waiting[2..] {
        assert_eq!(job(&db, busy, *id).await.state, JobState::Queued);
    }
    let later = Resident::of(&db, "later").await.scope();
    enqueue(&db, &a_job(later)).await;
    assert_eq!(claim().await.unwrap().job.scope, later);
    assert_eq!(claim().await, None);
}

async fn who_has_fewer_running_goes_first(db: Database) {
    let ada = Resident::of(&db, "ada").await.scope();
    let mut leases = vec![];
    for _ in 0..3 {
        enqueue(&db, &a_job(ada)).await;
        leases.push(claim(&db, a_worker(), 0).await.unwrap().lease);
    }
    let grace = Resident::of(&db, "grace").await.scope();
    for scope in [ada, grace, grace, grace, grace] {
        enqueue(&db, &a_job(scope)).await;
    }
    for expected in [grace, grace, grace] {
        assert_eq!(claim(&db, a_worker(), 1).await.unwrap().job.scope, expected);
    }
    // Three each: Ada was served longer ago.
    assert_eq!(claim(&db, a_worker(), 1).await.unwrap().job.scope, ada);
}

async fn among_equals_who_was_served_longest_ago_goes_first(db: Database) {
    let mut scopes = vec![];
    for name in ["a", "b", "c"] {
        let scope = Resident::of(&db, name).await.scope();
        for _ in 0..3 {
            enqueue(&db, &a_job(scope)).await;
        }
        scopes.push(scope.id());
    }
    let mut served = vec![];
    // At the same time by the clock.
    while let Some(claimed) = claim(&db, a_worker(), 1).await {
        served.push(claimed.job.scope.id());
        settle(&db, claimed.lease, Outcome::Succeeded, 1).await.unwrap();
    }
    assert_eq!(served.len(), 9);
    for round in served.chunks(3) {
        assert_eq!(round, &served[..3]);
        assert!(scopes.iter().all(|scope| round.contains(scope)));
    }
}
