//! Managers of a Swarm without a leader, as a fake engine.

use std::sync::Arc;

use launchway_docker::{
    DockerEngine, DockerOptions, NetworkDriver,
    swarm::{SwarmEngine, SwarmOptions},
};
use launchway_domain::{
    deployments::{Deployer as _, ImageName, StepError},
    nodes::{NodeAvailability, NodeInventory as _},
};
use launchway_testkit::docker::FakeDocker;
use tokio::time::{Duration, sleep};

use crate::{
    fake_engine::{FakeEngine, Reply},
    installation::{Installation, owner, plan},
};

fn options(fake: &FakeEngine) -> DockerOptions {
    DockerOptions::new(Installation::new().instance).at_socket(&fake.socket())
}

fn swarm(fake: &FakeEngine) -> SwarmEngine {
    swarm_with(options(fake))
}

fn swarm_with(options: DockerOptions) -> SwarmEngine {
    let (registry, ports) = ("10.0.0.5:5000".parse().unwrap(), "10000-19999".parse().unwrap());
    SwarmEngine::new(Arc::new(DockerEngine::new(options)), SwarmOptions { registry, ports })
}

/// Asks a manager for its nodes, which replies like this once, and with a list when it is asked again.
async fn ask_twice(first: Reply) {
    let fake = FakeEngine::new();
    fake.reply("/nodes", first);
    let swarm = swarm(&fake);
    let elected = async {
        while fake.requests().is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
        fake.reply("/nodes", Reply::Json("[]".to_owned()));
    };
    let (nodes, ()) = tokio::join!(swarm.nodes(), elected);
    assert_eq!(nodes.unwrap(), []);
    assert!(!fake.requests().is_empty());
}

#[tokio::test]
async fn a_manager_without_a_leader_is_asked_again() {
    ask_twice(Reply::Status("500 Internal Server Error")).await;
}

#[tokio::test]
async fn a_manager_that_holds_a_request_is_asked_again() {
    ask_twice(Reply::Nothing).await;
}

#[tokio::test]
async fn what_is_no_manager_is_asked_once() {
    let fake = FakeEngine::new();
    fake.reply("/nodes", Reply::Status("503 Service Unavailable"));
    let nodes = swarm(&fake).nodes().await;
    let said = matches!(&nodes, Err(StepError::Unavailable(why)) if why.contains("the manager answered 503"));
    assert!(said, "{nodes:?}");
    assert_eq!(fake.requests(), ["/nodes"]);
}

#[tokio::test]
async fn a_node_that_others_change_is_updated_again() {
    let fake = FakeEngine::new();
    fake.reply("/nodes", Reply::Json("[]".to_owned()));
    let folder = tempfile::tempdir().unwrap();
    let tried = folder.path().join("tried").display().to_string();
    let docker = FakeDocker::running(&format!(
        "test ! -e {tried} || exit 0
        touch {tried}
        echo 'Error response from daemon: rpc error: code = Unknown desc = update out of sequence' >&2
        exit 1"
    ));
    let swarm = swarm_with(DockerOptions { program: docker.program(), ..options(&fake) });
    let node = "qk9ltvpzp6r2r8lz1sm1imk1x".parse().unwrap();
    swarm.set_availability(&node, NodeAvailability::Active).await.unwrap();
    let updates = docker.calls().into_iter().filter(|call| call.arguments[..2] == ["node", "update"]);
    assert_eq!(updates.count(), 2);
}

#[tokio::test]
async fn an_overlay_is_looked_up_when_there_is_a_leader() {
    let fake = FakeEngine::new();
    fake.reply("/nodes", Reply::Status("500 Internal Server Error"));
    let docker = FakeDocker::running("exit 1");
    let engine = DockerEngine::new(DockerOptions {
        program: docker.program(),
        network_driver: NetworkDriver::Overlay,
        ..options(&fake)
    });
    let asks = || docker.calls().iter().any(|call| call.arguments[0] == "network");
    let owner = owner();
    let plan = plan(owner, ImageName::of(owner.application, owner.deployment));
    let elected = async {
        while fake.requests().is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
        sleep(Duration::from_millis(300)).await;
        assert!(!asks());
        fake.reply("/nodes", Reply::Json("[]".to_owned()));
    };
    let (_fails_without_an_engine, ()) = tokio::join!(engine.start(&plan), elected);
    assert!(asks());
}
