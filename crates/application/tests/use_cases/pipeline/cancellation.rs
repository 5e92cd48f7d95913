//! Cancellation of running deployments.

use std::time::Duration;

use launchway_domain::jobs::Heartbeat;
use launchway_testkit::builders::parsed;

use super::{application, carried_out, world};
use crate::world::{FOR_EVER, State};

/// Makes every further heartbeat return the request to cancel.
fn is_cancelled(state: &mut State) {
    state.heartbeats.extend((0..100).map(|_| Ok(Heartbeat::CancelRequested)));
}

#[tokio::test(start_paused = true)]
async fn cancel_before_commit_removes_resources_and_ends_the_job() {
    for step in ["head", "fetch", "build", "start"] {
        let world = carried_out(|state| {
            state.delay(step, FOR_EVER);
            is_cancelled(state);
        })
        .await;

        let journal = world.journal();
        let behind: Vec<&str> =
            journal.iter().skip_while(|entry| *entry != "heartbeat").map(String::as_str).collect();
        assert_eq!(behind, ["heartbeat", "discard #2", "remove #2", "commit: cancelled, follow"], "{step}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_waited_for_can_be_cancelled() {
    let world = carried_out(|state| {
        state.illness = Some("connection refused".to_owned());
        is_cancelled(state);
    })
    .await;

    assert_eq!(world.journal().last().map(String::as_str), Some("commit: cancelled, follow"));
    assert_eq!(world.journal_of("remove").last().map(String::as_str), Some("remove #2"));
}

#[tokio::test(start_paused = true)]
async fn a_ring_is_enough_to_learn_of_it_at_once() {
    let world = world(|state| {
        state.delay("build", FOR_EVER);
        is_cancelled(state);
    });
    let (worker, start) = (world.worker(), tokio::time::Instant::now());

    tokio::join!(worker.drain(), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        world.wake.notify();
    });

    assert_eq!(start.elapsed(), Duration::from_secs(2));
    assert_eq!(world.journal().last().map(String::as_str), Some("commit: cancelled, follow"));
}

#[tokio::test(start_paused = true)]
async fn cancel_after_commit_lets_the_deployment_finish() {
    let world = carried_out(|state| {
        state.application =
            Some(application(|blueprint| blueprint.post_run_command = Some(parsed("warm up"))));
        state.delay("run", Duration::from_secs(60));
        is_cancelled(state);
    })
    .await;

    assert!(world.journal_of("heartbeat").len() >= 5);
    assert_eq!(world.journal_of("commit: succeeded, follow").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn commit_during_a_heartbeat_lets_the_deployment_finish() {
    let world = carried_out(|state| {
        state.application =
            Some(application(|blueprint| blueprint.post_run_command = Some(parsed("warm up"))));
        // Requested at 10 s with the response at 15 s; the version goes live at 12 s.
        state.delay("heartbeat", Duration::from_secs(5));
        state.delay("build", Duration::from_secs(12));
        state.delay("run", Duration::from_secs(60));
        is_cancelled(state);
    })
    .await;

    assert!(world.journal_of("commit: cancelled").is_empty());
    assert_eq!(world.journal_of("commit: succeeded, follow").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn failed_cleanup_does_not_block_the_end_of_the_job() {
    let world = world(|state| {
        state.delay("build", FOR_EVER);
        is_cancelled(state);
    });
    let worker = world.worker();
    tokio::join!(worker.drain(), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.state().delay("discard", FOR_EVER);
    });
    assert_eq!(world.journal().last().map(String::as_str), Some("commit: cancelled, follow"));
}
