//! The nodes of the installation.

use std::sync::Arc;

use launchway_application::{Error, nodes::Nodes};
use launchway_domain::{
    auth::{Actor, Forbidden},
    deployments::StepError,
    nodes::{MockNodeInventory, Node, NodeAvailability, NodeRole},
    users::UserKind,
};
use launchway_testkit::builders::{an_actor, parsed};

fn administrator() -> Actor {
    an_actor().of_kind(UserKind::Admin).build()
}

fn node() -> Node {
    Node {
        id: parsed("a"),
        hostname: "server-1".to_owned(),
        address: None,
        is_ready: true,
        availability: NodeAvailability::Active,
        role: NodeRole::Leader,
        is_prepared: true,
        version: "20.10".to_owned(),
    }
}

fn inventory(answer: Result<Vec<Node>, StepError>) -> Nodes {
    let mut inventory = MockNodeInventory::new();
    inventory.expect_nodes().times(1).return_once(|| answer);
    Nodes::new(Some(Arc::new(inventory)))
}

#[tokio::test]
async fn administrators_of_the_installation_see_the_nodes() {
    assert_eq!(inventory(Ok(vec![node()])).list(&administrator()).await.unwrap(), [node()]);
}

#[tokio::test]
async fn nobody_else_asks_the_cluster() {
    let nodes = Nodes::new(Some(Arc::new(MockNodeInventory::new())));
    let refused = nodes.list(&an_actor().of_kind(UserKind::AppUser).build()).await;
    assert!(matches!(refused, Err(Error::Forbidden(Forbidden::NoMetrics))), "{refused:?}");
}

#[tokio::test]
async fn one_machine_has_no_nodes() {
    assert_eq!(Nodes::new(None).list(&administrator()).await.unwrap(), []);
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_is_unavailable() {
    let nodes = inventory(Err(StepError::Unavailable("no leader".to_owned())));
    let failed = nodes.list(&administrator()).await;
    assert!(matches!(failed, Err(Error::Unavailable(_))), "{failed:?}");
}
