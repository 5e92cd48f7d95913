//! Waiting until a version is healthy.

use std::time::Duration;

use launchway_domain::deployments::{Condition, Exit};
use tokio::time::Instant;

use super::{application, carried_out, world};
use crate::world::ADDRESS;

#[tokio::test(start_paused = true)]
async fn version_without_response_fails_after_the_timeout() {
    let start = Instant::now();

    let world = carried_out(|state| state.illness = Some("status 503".to_owned())).await;

    let waited = start.elapsed();
    assert!((Duration::from_secs(60)..Duration::from_secs(61)).contains(&waited), "{waited:?}");
    let end = "commit: failed (not healthy within 60 s: status 503), follow";
    assert_eq!(world.journal_of(end).len(), 1, "{:?}", world.journal());
    assert!(!world.journal().iter().any(|entry| entry.contains("go live")));
    // The engine is queried at a lower rate than the health check.
    assert!(world.journal_of("condition").len() <= 150);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_answers_by_http_is_healthy_at_once() {
    let start = Instant::now();

    let world = carried_out(|_| {}).await;

    assert!(start.elapsed() < Duration::from_secs(1));
    assert!(world.journal_of("condition").is_empty());
}

#[tokio::test(start_paused = true)]
async fn version_without_http_check_has_to_stay_up_for_a_second() {
    let start = Instant::now();

    let world = carried_out(|state| {
        state.application = Some(application(|blueprint| blueprint.health_check_path = None));
    })
    .await;

    let waited = start.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(2)).contains(&waited), "{waited:?}");
    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
    assert!(world.log().contains(&"info: Waiting for 10.0.0.9:8080".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_listens_and_then_ends_is_refused() {
    let world = carried_out(|state| {
        state.application = Some(application(|blueprint| blueprint.health_check_path = None));
        state.condition = Some(Condition::Exited(Exit { code: 1, out_of_memory: false, restarts: 0 }));
    })
    .await;

    let end = "commit: failed (the container exited with code 1 before it was healthy), follow";
    assert_eq!(world.journal_of(end).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_version_may_take_its_time_to_answer() {
    let world = world(|state| {
        state.illness = Some("connection refused".to_owned());
        state.condition = Some(Condition::Running { address: ADDRESS.into(), restarts: 0 });
    });
    let worker = world.worker();

    tokio::join!(worker.drain(), async {
        tokio::time::sleep(Duration::from_secs(40)).await;
        world.state().illness = None;
    });

    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn engine_failure_during_a_health_check_is_a_fault() {
    let world = carried_out(|state| {
        state.illness = Some("connection refused".to_owned());
        state.fault("condition", 1);
    })
    .await;

    assert_eq!(world.journal_of("retry"), ["retry in 5 s (condition does not answer)"]);
    assert_eq!(world.journal_of("remove"), ["remove #2", "remove #2"]);
}
