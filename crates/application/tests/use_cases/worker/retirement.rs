//! Retirement of versions that lost the traffic, concurrent with jobs.

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    deployments::{Deployment, DeploymentState},
    jobs::JobKind,
};
use launchway_testkit::builders::a_deployment;
use tokio::sync::watch;

use super::{live, next, world};
use crate::world::{FOR_EVER, State, World, a_job, wait};

/// Returns a deployment after [`next`]: #3 in the journal.
fn third() -> Deployment {
    a_deployment().numbered(3).build()
}

/// Enqueues two deployments, one after the other.
fn two_wait(state: &mut State) {
    state.has_one_job_per_subject = true;
    state.deployments = vec![live(), next(), third()];
    state.waiting.push_back(a_job(JobKind::Deploy, &third(), 1));
}

/// Runs a worker during `story`, and stops it.
async fn work(world: &Arc<World>, story: impl Future<Output = ()>) {
    let (stop, stopped) = watch::channel(false);
    tokio::join!(world.worker().run(stopped), async {
        story.await;
        stop.send_replace(true);
    });
}

#[tokio::test(start_paused = true)]
async fn a_deployment_does_not_wait_for_the_drain_before_it() {
    let world = world(JobKind::Deploy, |state| {
        two_wait(state);
        state.delay("drain", FOR_EVER);
    });
    let start = tokio::time::Instant::now();

    work(&world, wait(10)).await;

    assert_eq!(world.journal_of("commit: prove, deployed").len(), 2, "{:?}", world.journal());
    assert_eq!(world.journal_of("commit: succeeded").len(), 2);
    assert!(world.journal_of("stop").is_empty(), "requests are under way to both");
    assert!(start.elapsed() < Duration::from_secs(11), "a worker that stops does not wait for a drain");
}

#[tokio::test(start_paused = true)]
async fn what_lost_the_traffic_is_ended_once_it_is_drained() {
    let world = world(JobKind::Deploy, |state| state.delay("drain", Duration::from_secs(30)));

    work(&world, async {
        wait(20).await;
        assert!(world.journal_of("stop").is_empty());
        assert_eq!(world.journal_of("commit: succeeded").len(), 1);
        wait(20).await;
    })
    .await;

    let journal = world.journal();
    assert_eq!(
        journal[journal.len() - 4..],
        ["stop #1", "printed", "remove #1", "commit: record web removed"]
    );
}

#[tokio::test(start_paused = true)]
async fn requests_that_cannot_be_waited_for_do_not_keep_the_old_one() {
    let world = world(JobKind::Deploy, |state| state.fault("drain", 1));
    work(&world, wait(5)).await;
    assert_eq!(world.journal_of("remove"), ["remove #1"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_ended_is_left_to_the_reconciler() {
    for call in ["stop", "remove"] {
        let world = world(JobKind::Deploy, |state| state.fault(call, 1));

        work(&world, wait(5)).await;

        assert_eq!(world.journal_of("commit: succeeded").len(), 1, "{call}");
        assert!(world.journal_of("commit: record").is_empty(), "{:?}", world.journal());
        assert!(!world.log().iter().any(|line| line.contains("later")), "{:?}", world.log());
    }
}

#[tokio::test(start_paused = true)]
async fn output_that_cannot_be_collected_does_not_keep_the_old_one() {
    let world = world(JobKind::Deploy, |state| state.fault("printed", 1));
    work(&world, wait(5)).await;
    assert_eq!(world.journal_of("remove"), ["remove #1"]);
}

#[tokio::test(start_paused = true)]
async fn a_first_version_retires_nothing() {
    let world = world(JobKind::Deploy, |state| {
        state.application.iter_mut().for_each(|application| application.live = None);
        state.deployments[0].status.state = DeploymentState::Failed;
    });
    work(&world, wait(5)).await;
    assert!(world.journal_of("drain").is_empty() && world.journal_of("stop").is_empty());
}
