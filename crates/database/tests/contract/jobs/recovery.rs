//! Lost workers.

use launchway_database::Database;
use launchway_domain::{
    ids::BootId,
    jobs::{Heartbeat, JobQueue as _, JobState, NewJob, Rescued, Write},
};
use tokio::task::JoinSet;

use super::{a_job, a_job_on, a_worker, claim, enqueue, job, running, somebody, worker};
use crate::{
    builders::{at, commit},
    fresh::Fresh,
};

contract!(
    jobs_of_an_earlier_boot_are_rescued_at_once,
    the_leases_of_others_are_rescued_only_when_they_have_ended,
    three_losses_are_the_end,
    a_lost_job_is_superseded_when_a_newer_one_waits,
    a_lost_job_that_is_not_replaceable_waits_beside_newer_ones,
    a_lost_job_that_was_to_be_cancelled_is_cancelled,
    of_many_rescuers_one_rescues_each_job,
    a_job_from_a_clock_that_was_ahead_is_due_at_once,
    a_lease_from_the_future_ends_unless_it_is_renewed,
    what_waits_for_a_moment_goes_on_waiting,
);

/// Rescues as the second boot of the first instance.
async fn rescue(db: &Database, seconds: i64) -> Vec<Rescued> {
    let rescuer = worker(1, 2, 0);
    db.rescue(rescuer.instance, rescuer.boot, at(seconds)).await.unwrap()
}

async fn jobs_of_an_earlier_boot_are_rescued_at_once(db: Database) {
    let scope = somebody(&db).await;
    let left = running(&db, scope).await;
    enqueue(&db, &a_job(scope)).await;
    let own = claim(&db, worker(1, 2, 1), 0).await.unwrap();
    let rescued = rescue(&db, 1).await;
    assert_eq!(rescued.len(), 1);
    assert_eq!((rescued[0].job.id, rescued[0].lost_by), (left.job.id, a_worker()));
    assert_eq!(job(&db, scope, left.job.id).await, rescued[0].job);
    assert_eq!((rescued[0].job.state, rescued[0].job.run_at), (JobState::Queued, at(1)));
    assert_eq!(rescued[0].job.reason.as_deref(), Some("the worker was lost"));
    assert_eq!(job(&db, scope, own.job.id).await.state, JobState::Running);
    assert_eq!(claim(&db, a_worker(), 1).await.unwrap().job.attempt, 2);
}

async fn the_leases_of_others_are_rescued_only_when_they_have_ended(db: Database) {
    let scope = somebody(&db).await;
    enqueue(&db, &a_job(scope)).await;
    let foreign = claim(&db, worker(2, 1, 1), 0).await.unwrap();
    assert_eq!(rescue(&db, 29).await, vec![]);
    let rescued = rescue(&db, 30).await;
    assert_eq!((rescued[0].job.id, rescued[0].lost_by), (foreign.job.id, worker(2, 1, 1)));
    assert_eq!(rescue(&db, 31).await, vec![]);
}

async fn three_losses_are_the_end(db: Database) {
    let scope = somebody(&db).await;
    let id = enqueue(&db, &a_job(scope)).await;
    for (attempt, expected) in [(1, JobState::Queued), (2, JobState::Queued), (3, JobState::Failed)] {
        let claimed = claim(&db, a_worker(), i64::from(attempt)).await.unwrap();
        assert_eq!(claimed.job.attempt, attempt);
        assert_eq!(rescue(&db, i64::from(attempt)).await[0].job.state, expected);
    }
    let job = job(&db, scope, id).await;
    assert_eq!((job.state, job.finished_at), (JobState::Failed, Some(at(3))));
    assert_eq!(claim(&db, a_worker(), 9).await, None);
}

async fn a_lost_job_is_superseded_when_a_newer_one_waits(db: Database) {
    let scope = somebody(&db).await;
    let old = running(&db, scope).await;
    let newer = enqueue(&db, &a_job_on(scope, old.job.subject)).await;
    let rescued = rescue(&db, 1).await;
    assert_eq!(rescued[0].job.state, JobState::Superseded);
    assert_eq!(rescued[0].job.superseded_by, Some(newer));
    assert_eq!(job(&db, scope, old.job.id).await, rescued[0].job);
    assert_eq!(claim(&db, a_worker(), 1).await.unwrap().job.id, newer);
}

async fn a_lost_job_that_is_not_replaceable_waits_beside_newer_ones(db: Database) {
    let scope = somebody(&db).await;
    let rollback = launchway_domain::jobs::NewJob { replaceable: false, ..a_job(scope) };
    enqueue(&db, &rollback).await;
    claim(&db, a_worker(), 0).await.unwrap();
    let newer = enqueue(&db, &a_job_on(scope, rollback.subject)).await;
    assert_eq!(rescue(&db, 1).await[0].job.state, JobState::Queued);
    assert_eq!(job(&db, scope, newer).await.state, JobState::Queued);
}

async fn a_lost_job_that_was_to_be_cancelled_is_cancelled(db: Database) {
    let scope = somebody(&db).await;
    let lost = running(&db, scope).await;
    commit(&db, Write::RequestCancel { scope, id: lost.job.id, at: at(1) }).await.unwrap();
    let rescued = rescue(&db, 2).await;
    assert_eq!((rescued[0].job.state, rescued[0].job.finished_at), (JobState::Cancelled, Some(at(2))));
}

async fn of_many_rescuers_one_rescues_each_job(fresh: &Fresh) {
    let db = &fresh.database;
    let scope = somebody(db).await;
    for _ in 0..10 {
        running(db, scope).await;
    }
    let replica = fresh.open_again();
    let mut tasks = JoinSet::new();
    for number in 0..16_u128 {
        let db = if number % 2 == 0 { db.clone() } else { replica.clone() };
        let boot = BootId::from(uuid::Uuid::from_u128(100 + number));
        tasks.spawn(async move { db.rescue(a_worker().instance, boot, at(1)).await.unwrap() });
    }
    let rescued: Vec<Rescued> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(rescued.len(), 10);
    for _ in 0..10 {
        assert_eq!(claim(db, a_worker(), 1).await.unwrap().job.attempt, 2);
    }
}

/// A day, in seconds.
const DAY: i64 = 24 * 60 * 60;

async fn a_job_from_a_clock_that_was_ahead_is_due_at_once(db: Database) {
    let scope = somebody(&db).await;
    let ahead = enqueue(&db, &NewJob { run_at: at(DAY), enqueued_at: at(DAY), ..a_job(scope) }).await;
    assert_eq!(claim(&db, a_worker(), 1).await, None);
    assert_eq!(rescue(&db, 1).await, vec![]);
    assert_eq!(claim(&db, a_worker(), 1).await.unwrap().job.id, ahead);
}

async fn a_lease_from_the_future_ends_unless_it_is_renewed(db: Database) {
    let scope = somebody(&db).await;
    for job in [a_job(scope), a_job(scope)] {
        enqueue(&db, &job).await;
    }
    let lost = claim(&db, worker(2, 1, 1), DAY).await.unwrap();
    let living = claim(&db, worker(2, 1, 2), DAY).await.unwrap();
    assert_eq!(rescue(&db, 0).await, vec![]);
    assert_eq!(db.heartbeat(&living.lease, at(90)).await.unwrap(), Heartbeat::Held);
    assert_eq!(rescue(&db, 59).await, vec![]);
    let rescued: Vec<_> = rescue(&db, 60).await.into_iter().map(|rescued| rescued.job.id).collect();
    assert_eq!(rescued, [lost.job.id]);
}

async fn what_waits_for_a_moment_goes_on_waiting(db: Database) {
    let scope = somebody(&db).await;
    enqueue(&db, &NewJob { run_at: at(599), ..a_job(scope) }).await;
    rescue(&db, 0).await;
    assert_eq!(claim(&db, a_worker(), 598).await, None);
}
