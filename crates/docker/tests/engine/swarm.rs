//! Managers of a Swarm without a leader, as a fake engine.

use std::sync::Arc;

use launchway_docker::{
    DockerEngine, DockerOptions,
    swarm::{SwarmEngine, SwarmOptions},
};
use launchway_domain::{deployments::StepError, nodes::NodeInventory as _};
use tokio::time::{Duration, sleep};

use crate::{
    fake_engine::{FakeEngine, Reply},
    installation::Installation,
};

fn swarm(fake: &FakeEngine) -> SwarmEngine {
    let options = DockerOptions::new(Installation::new().instance).at_socket(&fake.socket());
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
