//! Renewing and losing the lease of a job.

use std::time::Duration;

use launchway_domain::{
    deployments::Condition,
    jobs::{Heartbeat, JobKind},
};
use launchway_testkit::clock::{NEW_YEAR, moment};
use tokio::time::Instant;

use super::{carried_out, live};
use crate::{
    ports::unavailable,
    world::{FOR_EVER, a_container_of},
};

#[tokio::test(start_paused = true)]
async fn a_sign_of_life_is_given_every_ten_seconds() {
    let world = carried_out(JobKind::Deploy, |state| state.delay("build", Duration::from_secs(35))).await;

    assert_eq!(world.journal_of("heartbeat").len(), 3);
    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_has_lost_the_lease_stops_at_once_and_changes_nothing() {
    let world = carried_out(JobKind::Deploy, |state| {
        state.delay("build", FOR_EVER);
        state.heartbeats.extend([Ok(Heartbeat::Held), Ok(Heartbeat::Lost)]);
    })
    .await;

    let journal = world.journal();
    assert_eq!(journal[journal.len() - 2..], ["heartbeat", "heartbeat"]);
    let ended = ["commit: cancelled", "commit: failed", "retry", "release"];
    assert!(ended.iter().all(|end| world.journal_of(end).is_empty()), "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn lost_lease_stops_the_attempt_even_after_the_commit() {
    let world = carried_out(JobKind::Deploy, |state| {
        state.delay("switch", FOR_EVER);
        state.heartbeats.push_back(Ok(Heartbeat::Lost));
    })
    .await;

    let journal = world.journal();
    assert_eq!(journal.last().map(String::as_str), Some("heartbeat"));
    assert!(world.journal_of("commit: succeeded").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_while_the_job_is_settled_is_not_lost() {
    let world = carried_out(JobKind::Restart, |state| {
        let running = Condition::Running { address: [10, 0, 0, 7].into(), restarts: 0 };
        state.found = vec![a_container_of(&live(), running, moment(NEW_YEAR))];
        state.delay("commit", Duration::from_secs(6));
        // The second commit settles the job, after twelve seconds.
        state.heartbeats.push_back(Ok(Heartbeat::Lost));
    })
    .await;

    let journal = world.journal();
    assert_eq!(journal.last().map(String::as_str), Some("remove attempt 1 of #1"), "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn short_queue_outage_does_not_stop_the_work() {
    let world = carried_out(JobKind::Deploy, |state| {
        state.delay("build", Duration::from_secs(65));
        let failing = || Err(unavailable());
        state.heartbeats.extend([failing(), failing(), Ok(Heartbeat::Held), failing(), failing()]);
    })
    .await;

    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn queue_outage_of_a_whole_lease_loses_the_job() {
    let start = Instant::now();
    let world = carried_out(JobKind::Deploy, |state| {
        state.delay("build", FOR_EVER);
        state.heartbeats.extend((0..10).map(|_| Err(unavailable())));
    })
    .await;

    assert_eq!(start.elapsed(), Duration::from_secs(30));
    assert_eq!(world.journal().last().map(String::as_str), Some("heartbeat"));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_longer_than_half_an_hour_fails() {
    let start = Instant::now();
    let world = carried_out(JobKind::Deploy, |state| state.delay("build", FOR_EVER)).await;

    assert_eq!(start.elapsed(), Duration::from_secs(30 * 60));
    let journal = world.journal();
    assert_eq!(
        journal[journal.len() - 3..],
        ["discard #2", "remove #2", "commit: failed (timed out after 30 minutes), follow"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_live_has_the_time_that_it_needs() {
    let world =
        carried_out(JobKind::Deploy, |state| state.delay("switch", Duration::from_secs(40 * 60))).await;

    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_further_attempt_waits_longer() {
    for (attempt, seconds) in [(1, 5), (2, 10), (3, 20)] {
        let world = carried_out(JobKind::Deploy, |state| {
            state.fault("head", 1);
            state.waiting.iter_mut().for_each(|claimed| claimed.lease.attempt = attempt);
        })
        .await;

        let expected = format!("retry in {seconds} s (head does not answer)");
        assert_eq!(world.journal_of("retry"), [expected]);
    }
}
