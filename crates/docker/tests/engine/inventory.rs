//! The objects of an installation on the engine, and their events.

use std::time::{Duration, Instant};

use launchway_docker::{DockerEngine, DockerOptions};
use launchway_domain::deployments::{Condition, Deployer, DiscoveredObject, EngineInventory, Exit};
use launchway_testkit::docker::{base_image, docker};

use crate::installation::{Installation, owner};

#[tokio::test]
async fn everything_of_this_installation_is_found_and_nothing_else() {
    let (installation, other) = (Installation::new(), Installation::new());
    let (ours, theirs) = (owner(), owner());
    let running = installation.container(ours, "sleep 600").await;
    let ended = installation.container(owner(), "exit 4").await;
    installation
        .wait_until(&ended.id, |condition| matches!(condition, Condition::Exited(Exit { code: 4, .. })))
        .await;
    other.container(theirs, "sleep 600").await;
    let found = installation.engine.everything().await.unwrap();
    assert_eq!(found.len(), 4, "{found:?}");
    let containers: Vec<_> = found
        .iter()
        .filter_map(|found| match &found.what {
            DiscoveredObject::Container { id, condition, .. } => Some((found.owner, id.clone(), *condition)),
            DiscoveredObject::Image { .. } | DiscoveredObject::Network(_) => None,
        })
        .collect();
    let is_running = Condition::Running { address: running.address, restarts: 0 };
    assert!(containers.contains(&(ours, running.id.clone(), is_running)), "{containers:?}");
    for found in &found {
        if matches!(found.what, DiscoveredObject::Container { .. }) {
            for _ in 0..2 {
                EngineInventory::remove(&*installation.engine, found).await.unwrap();
            }
        }
    }
    for found in installation.engine.everything().await.unwrap() {
        for _ in 0..2 {
            EngineInventory::remove(&*installation.engine, &found).await.unwrap();
        }
    }
    assert_eq!(installation.engine.everything().await, Ok(vec![]));
    assert_eq!(other.engine.everything().await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_somebody_else_has_marked_as_ours_is_left_alone() {
    let installation = Installation::new();
    let instance = format!("launchway.instance={}", installation.instance);
    let named = format!("launchway-{}", installation.instance);
    docker(&["create", "--network", "none", "--name", &named, "--label", &instance, base_image()]);
    // As a step of a Dockerfile might.
    let owner = owner();
    let labels = [
        instance,
        format!("launchway.organization={}", owner.organization),
        format!("launchway.application={}", owner.application),
        format!("launchway.deployment={}", owner.deployment),
        "launchway.attempt=1".to_owned(),
    ];
    let mut create = vec!["create", "--network", "none"];
    create.extend(labels.iter().flat_map(|label| ["--label", label]));
    create.push(base_image());
    docker(&create);
    assert_eq!(installation.engine.everything().await, Ok(vec![]));
    Deployer::remove(&*installation.engine, owner.deployment).await.unwrap();
    assert_eq!(installation.traces.containers().len(), 2);
}

#[tokio::test]
async fn news_end_the_waiting_and_are_not_missed_between_two_calls() {
    let installation = Installation::new();
    let container = installation.container(owner(), "sleep 3; exit 1").await;
    let timeout = Duration::from_secs(20);
    let started = Instant::now();
    // It was started before anybody waited.
    installation.engine.wait_for_events(timeout).await;
    assert!(started.elapsed() < timeout);
    while matches!(installation.engine.condition(&container.id).await, Ok(Condition::Running { .. })) {
        installation.engine.wait_for_events(timeout).await;
    }
    assert!(started.elapsed() < timeout);
    // Events between two calls are delivered at once, and once.
    installation.engine.wait_for_events(Duration::from_secs(1)).await;
    installation.engine.restart(&container.id).await.unwrap();
    installation.engine.stop(&container.id).await.unwrap();
    let (mut calls, started) = (0, Instant::now());
    while started.elapsed() < Duration::from_secs(3) {
        installation.engine.wait_for_events(Duration::from_secs(3)).await;
        calls += 1;
    }
    assert!((2..10).contains(&calls), "{calls}");
}

#[tokio::test]
async fn news_of_others_are_none() {
    let (installation, other) = (Installation::new(), Installation::new());
    let started = Instant::now();
    let waiting = installation.engine.wait_for_events(Duration::from_secs(3));
    tokio::join!(waiting, other.container(owner(), "true"));
    assert!(started.elapsed() >= Duration::from_secs(3));
}

#[tokio::test]
async fn waiting_without_an_engine_lasts_until_the_timeout() {
    let mut options = DockerOptions::new(Installation::new().instance);
    options.program = "no-such-docker".into();
    let started = Instant::now();
    DockerEngine::new(options).wait_for_events(Duration::from_millis(1500)).await;
    assert!((1400..30_000).contains(&started.elapsed().as_millis()));
}
