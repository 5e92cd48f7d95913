//! The loop of the worker, and its shutdown.

use std::{sync::Arc, time::Duration};

use launchway_domain::jobs::{ClaimLimits, JobKind, Pool};
use launchway_testkit::builders::a_deployment;
use tokio::{sync::watch, time::Instant};

use super::{live, next, world};
use crate::world::{FOR_EVER, World, a_job};

/// Runs a worker for `time` and stops it. Returns the time that it took to stop.
async fn run_for(world: &Arc<World>, limits: ClaimLimits, time: Duration) -> Duration {
    let (stop, stopped) = watch::channel(false);
    let worker = world.worker_with(limits);
    let running = worker.run(stopped);
    let mut message = None;
    tokio::join!(running, async {
        tokio::time::sleep(time).await;
        message = Some(Instant::now());
        stop.send_replace(true);
    });
    message.map(|message| message.elapsed()).unwrap_or_default()
}

const TWO: ClaimLimits = ClaimLimits { builds: 2, operations: 2, per_organization: 2 };
const ONE: ClaimLimits = ClaimLimits { builds: 1, operations: 1, per_organization: 1 };

#[tokio::test(start_paused = true)]
async fn every_job_that_is_due_is_carried_out_until_there_is_none() {
    let world = world(JobKind::Stop, |state| {
        state.waiting.extend((0..3).map(|_| a_job(JobKind::Stop, &next(), 1)));
    });

    world.worker().drain().await;

    assert_eq!(world.journal_of("commit: succeeded").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn several_jobs_are_carried_out_at_once_within_the_limit() {
    for (limits, seconds) in [(TWO, 20), (ONE, 40)] {
        let world = world(JobKind::Stop, |state| {
            state.waiting.extend((0..3).map(|_| a_job(JobKind::Stop, &next(), 1)));
            state.delay("stop", Duration::from_secs(10));
        });

        let looking = async {
            tokio::time::sleep(Duration::from_secs(9)).await;
            assert_eq!(world.journal_of("switch to nowhere").len(), limits.operations);
            tokio::time::sleep(Duration::from_millis(seconds * 1000 - 8999)).await;
            assert_eq!(world.journal_of("commit: succeeded").len(), 4);
        };
        tokio::join!(run_for(&world, limits, Duration::from_secs(seconds + 1)), looking);
    }
}

#[tokio::test(start_paused = true)]
async fn a_ring_wakes_a_worker_that_waits() {
    let world = world(JobKind::Stop, |state| state.waiting.clear());
    let start = Instant::now();

    let waking = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        world.state().waiting.push_back(a_job(JobKind::Stop, &next(), 1));
        world.wake.notify();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(world.journal_of("commit: succeeded").len(), 1);
        start.elapsed()
    };
    let (_, waited) = tokio::join!(run_for(&world, TWO, Duration::from_millis(400)), waking);

    assert_eq!(waited, Duration::from_millis(301));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_cannot_be_asked_does_not_end_the_worker() {
    let world = world(JobKind::Stop, |state| state.failing_claims = 3);

    run_for(&world, TWO, Duration::from_millis(3500)).await;

    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_nobody_can_stop_any_more_goes_on_at_its_pace() {
    let world = world(JobKind::Stop, |state| state.failing_claims = 3);
    let (stop, stopped) = watch::channel(false);
    drop(stop);

    let running = tokio::time::timeout(Duration::from_millis(3500), world.worker().run(stopped)).await;

    assert!(running.is_err());
    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ends_in_time_is_finished_when_the_worker_stops() {
    let world = world(JobKind::Deploy, |state| state.delay("build", Duration::from_secs(4)));

    let took = run_for(&world, TWO, Duration::from_secs(1)).await;

    assert_eq!(took, Duration::from_secs(3));
    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
    assert!(world.journal_of("release").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_does_not_is_returned_after_the_grace_period() {
    let world = world(JobKind::Deploy, |state| state.delay("build", FOR_EVER));

    let took = run_for(&world, TWO, Duration::from_secs(1)).await;

    assert_eq!(took, Duration::from_secs(5));
    let journal = world.journal();
    assert_eq!(
        journal[journal.len() - 4..],
        ["discard #2", "remove #2", "release attempt 1", "commit: follow"]
    );
}

#[tokio::test(start_paused = true)]
async fn returned_job_keeps_its_live_version() {
    let world = world(JobKind::Deploy, |state| state.delay("switch", FOR_EVER));

    run_for(&world, TWO, Duration::from_secs(1)).await;

    let journal = world.journal();
    assert_eq!(journal[journal.len() - 2..], ["release attempt 1", "commit: follow"]);
    assert!(world.journal_of("remove").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_takes_no_more_jobs() {
    let world = world(JobKind::Deploy, |state| {
        state.waiting.push_back(a_job(JobKind::Deploy, &a_deployment().numbered(3).build(), 1));
        state.delay("build", Duration::from_secs(3));
    });

    run_for(&world, ONE, Duration::from_secs(1)).await;

    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
    assert_eq!(world.state().waiting.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_pool_holds_up_no_other() {
    let world = world(JobKind::Deploy, |state| {
        state.delay("build", FOR_EVER);
        state.waiting.push_back(a_job(JobKind::Deploy, &a_deployment().numbered(3).build(), 1));
        state.waiting.push_back(a_job(JobKind::Stop, &live(), 1));
    });

    run_for(&world, ONE, Duration::from_secs(1)).await;

    assert_eq!(world.journal_of("build").len(), 1, "builds have one place");
    assert_eq!(world.journal_of("commit: succeeded").len(), 1, "the operation has another");
    let waiting: Vec<Pool> = world.state().waiting.iter().map(|waiting| waiting.job.pool).collect();
    assert_eq!(waiting, [Pool::Builds]);
}
