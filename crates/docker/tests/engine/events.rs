//! Events of the engine's stream.

use std::time::{Duration, Instant};

use launchway_docker::{DockerEngine, DockerOptions};
use launchway_domain::deployments::{Deployer as _, EngineInventory as _};
use launchway_testkit::docker::docker;

use crate::{
    fake_engine::{FakeEngine, Reply},
    installation::{Installation, owner},
};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(1);

#[tokio::test]
async fn everything_that_counts_is_news() {
    let installation = Installation::new();
    let ours = owner();
    let container = installation.container(ours, "sleep 600").await;
    let (id, engine) = (container.id.as_str(), &installation.engine);
    let network = format!("launchway-{}", ours.organization);
    assert!(engine.wait_for_events(LONG).await, "it was started before anybody waited");
    assert!(!engine.wait_for_events(SHORT).await);
    let address = container.address.to_string();
    let commands: [&[&str]; 7] = [
        &["pause", id],
        &["unpause", id],
        &["network", "disconnect", &network, id],
        &["network", "connect", "--ip", &address, &network, id],
        &["kill", id],
        &["start", id],
        &["rm", "-f", id],
    ];
    for command in commands {
        docker(command);
        assert!(engine.wait_for_events(LONG).await, "{command:?}");
        assert!(!engine.wait_for_events(SHORT).await, "{command:?} is reported once");
    }
}

#[tokio::test]
async fn two_who_wait_are_both_notified() {
    let installation = Installation::new();
    let container = installation.container(owner(), "sleep 600").await;
    let engine = &installation.engine;
    assert!(engine.wait_for_events(LONG).await);
    let stop = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        engine.stop(&container.id).await.unwrap();
    };
    let (one, other, ()) = tokio::join!(engine.wait_for_events(LONG), engine.wait_for_events(LONG), stop);
    assert!(one && other);
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_news_and_opened_again() {
    let fake = FakeEngine::new();
    let instance = Installation::new().instance;
    fake.reply("/events", Reply::Stream(String::new()));
    let engine = DockerEngine::new(DockerOptions::new(instance).at_socket(&fake.socket()));
    assert!(!engine.wait_for_events(SHORT).await);
    let event = |instance: &str, action: &str| {
        format!(
            r#"{{"Type":"container","Action":"{action}","Actor":{{"ID":"a","Attributes":{{"launchway.instance":"{instance}","name":"launchway-1"}}}},"timeNano":5}}"#
        ) + "\n"
    };
    let ours = event(&instance.to_string(), "die");
    fake.send(&event("another", "die"));
    assert!(!engine.wait_for_events(SHORT).await, "that was another's");
    let (begun, rest) = ours.split_at(30);
    fake.send(begun);
    assert!(!engine.wait_for_events(SHORT).await, "the line has no end yet");
    fake.send(rest);
    assert!(engine.wait_for_events(LONG).await);
    assert_eq!(fake.requests(), ["/events"], "one stream for all of it");

    fake.break_off();
    let started = Instant::now();
    assert!(engine.wait_for_events(LONG).await, "something may have been missed");
    assert!(engine.wait_for_events(LONG).await, "the engine is back");
    assert!((500..30_000).contains(&started.elapsed().as_millis()));
    assert!(!engine.wait_for_events(SHORT).await);
    fake.send(&ours);
    assert!(engine.wait_for_events(LONG).await);
    assert_eq!(fake.requests(), ["/events"]);
}

#[tokio::test]
async fn waiting_for_an_engine_that_is_away_costs_little() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let engine = DockerEngine::new(DockerOptions::new(Installation::new().instance).at_socket(&socket));
    let started = Instant::now();
    assert!(!engine.wait_for_events(Duration::from_millis(2500)).await);
    assert!((2400..30_000).contains(&started.elapsed().as_millis()));
    drop(engine);
}
