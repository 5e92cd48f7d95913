//! Jobs of lost workers, and retention.

use std::time::Duration;

use launchway_domain::{deployments::Write, extensions::Write as ExtensionWrite, jobs::JobKind};
use launchway_testkit::builders::a_deployment;

use crate::world::{World, a_job, look_after, wait};

#[tokio::test(start_paused = true)]
async fn deployments_and_runs_follow_the_jobs_of_an_earlier_boot() {
    let world = World::with(|state| {
        state.waiting.push_back(a_job(JobKind::Deploy, &a_deployment().build(), 1));
    });
    let mut listener = world.wake.listen();

    world.begin().await.unwrap();

    let follow = Write::FollowJobs { application: None, at: world.now() };
    let runs = ExtensionWrite::FollowJobs { at: world.now() };
    assert_eq!(world.commits(), [vec![follow.into(), runs.into()]]);
    let rung = tokio::time::timeout(Duration::ZERO, listener.wait_timeout(Duration::from_secs(60))).await;
    assert!(rung.is_ok(), "whoever waits for work is woken");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_woken_when_no_job_was_lost() {
    let world = World::with(|_| {});
    let mut listener = world.wake.listen();

    world.begin().await.unwrap();

    assert_eq!(world.journal(), ["rescue", "commit: follow all, follow runs", "containers"]);
    let rung =
        tokio::time::timeout(Duration::from_secs(1), listener.wait_timeout(Duration::from_secs(60))).await;
    assert!(rung.is_err());
}

#[tokio::test(start_paused = true)]
async fn nothing_begins_without_a_database() {
    let world = World::with(|state| state.failing_claims = 1);

    assert!(world.begin().await.is_err());
    assert!(world.commits().is_empty());
}

#[tokio::test(start_paused = true)]
async fn lost_jobs_are_looked_for_every_ten_seconds() {
    let world = World::with(|state| state.failing_claims = 1);

    look_after(&world, wait(35)).await;

    assert_eq!(world.journal_of("rescue").len(), 3);
    assert_eq!(world.journal_of("commit: follow all").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn old_requests_deliveries_and_lines_are_forgotten_every_hour() {
    let world = World::with(|_| {});

    look_after(&world, wait(60 * 60 + 1)).await;

    assert_eq!(world.journal_of("forget 2"), ["forget 2025-12-31 00:00:00 UTC"; 2]);
    let deliveries = "forget deliveries 2025-12-25 00:00:00 UTC and secrets 2026-01-01 00:00:00 UTC";
    assert_eq!(world.journal_of("forget deliveries"), [deliveries; 2]);
    assert_eq!(world.journal_of("forget jobs"), ["forget jobs 2025-12-02 00:00:00 UTC"; 2]);
    assert_eq!(world.journal_of("trim"), ["trim 200000"; 2]);
}
