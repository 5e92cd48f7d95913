//! Compositions on other machines: nothing is done to them from here.

use std::sync::Arc;

use launchway_application::{Homes, homes::HomePorts};
use launchway_domain::{
    deployments::{Condition, RetentionStatus, StepError},
    homes::{Home, Machine, MockHomeRepository},
    ids::{DeploymentId, ExecutionId, InstanceId, SubjectId},
    nodes::{MockNodeInventory, Node, NodeAvailability, NodeRole},
    replicas::MockReplicaRegistry,
};
use launchway_testkit::{CountingIds, builders::parsed};

use super::{
    calls,
    compositions::{beside, composed, live, web},
    exit, reconcile,
};
use crate::world::{State, wait};

pub(super) const LOST: &str = "it runs on machine server-2, which is not reachable; it starts nowhere else because its volumes are there";

pub(super) fn servers() -> [InstanceId; 2] {
    [CountingIds::nth(901).into(), CountingIds::nth(902).into()]
}

/// Gives the composition a home on `server`, of which only the first one is alive. Its machine is that of the second one.
fn with_home(state: &mut State, server: InstanceId, is_ready: bool, waiting: Vec<DeploymentId>) {
    with_home_of(state, live().application.id.into(), (server, is_ready), waiting, Vec::new());
}

/// Gives a subject such a home.
pub(super) fn with_home_of(
    state: &mut State,
    subject: SubjectId,
    (server, is_ready): (InstanceId, bool),
    waiting: Vec<DeploymentId>,
    runs: Vec<ExecutionId>,
) {
    let machine =
        Machine { engine: "engine-2".to_owned(), node: parsed("node2"), hostname: "server-2".to_owned() };
    let home = Home { subject, server, machine };
    let mut repository = MockHomeRepository::new();
    repository.expect_homes().returning(move || Ok(vec![home.clone()]));
    repository
        .expect_waiting_for()
        .returning(move |_| Ok(waiting.iter().map(|waits| (live().application.id, *waits)).collect()));
    repository
        .expect_runs_waiting_for()
        .returning(move |_| Ok(runs.iter().map(|waits| (subject, *waits)).collect()));
    let mut registry = MockReplicaRegistry::new();
    registry.expect_replicas().returning(|| Ok(Vec::new()));
    let mut nodes = MockNodeInventory::new();
    nodes.expect_own_node().returning(|| Err(StepError::Unavailable("not asked here".to_owned())));
    nodes.expect_nodes().returning(move || {
        Ok(vec![Node {
            id: parsed("node2"),
            hostname: "server-2".to_owned(),
            address: None,
            is_ready,
            availability: NodeAvailability::Active,
            role: NodeRole::Manager,
            is_prepared: true,
            version: String::new(),
        }])
    });
    let (repository, registry, nodes) = (Arc::new(repository), Arc::new(registry), Arc::new(nodes));
    state.homes = Homes::new(servers()[0], HomePorts { repository, registry, nodes });
}

#[tokio::test(start_paused = true)]
async fn a_composition_of_another_machine_is_left_alone() {
    let world = composed(|state| {
        // Its network is seen on every machine, and its containers on its own only.
        state.found.remove(0);
        state.found.remove(0);
        with_home(state, servers()[1], true, Vec::new());
    });
    reconcile(&world, wait(10 * 60)).await;
    assert!(calls(&world).is_empty() && world.log().is_empty(), "{:?}", calls(&world));
}

#[tokio::test(start_paused = true)]
async fn orphans_of_another_machine_are_left_alone() {
    let world = composed(|state| {
        state.live.clear();
        let deployment = live().deployment.id;
        state.retention_status =
            vec![RetentionStatus { deployment, is_live: false, is_open: false, is_worth_keeping: false }];
        state.unretired = vec![live().deployment];
        with_home(state, servers()[1], true, Vec::new());
    });
    reconcile(&world, wait(10 * 60)).await;
    assert!(calls(&world).is_empty(), "{:?}", calls(&world));
}

#[tokio::test(start_paused = true)]
async fn a_composition_of_this_machine_is_reconciled() {
    let world = composed(|state| {
        state.found = vec![web(), beside("db", Condition::Exited(exit(1)))];
        with_home(state, servers()[0], true, Vec::new());
    });
    reconcile(&world, async {
        wait(3).await;
        world.state().busy = vec![live().application.id.into()];
        wait(60).await;
    })
    .await;
    assert_eq!(calls(&world), ["commit: enqueue reconcile"]);
}

#[tokio::test(start_paused = true)]
async fn a_composition_of_a_lost_machine_says_so_once() {
    let waits = DeploymentId::from(CountingIds::nth(77));
    let world = composed(|state| {
        state.found.clear();
        with_home(state, servers()[1], false, vec![waits]);
    });
    reconcile(&world, async {
        wait(3).await;
        // The record is read again with what was committed.
        let mut live = live();
        live.deployment.breakdown = Some(LOST.to_owned());
        live.application.status.state = launchway_domain::applications::ApplicationState::Failed;
        world.state().live = vec![live];
        wait(60).await;
    })
    .await;
    let made = calls(&world);
    assert!(made.len() == 1 && made[0].contains("broken"), "{made:?}");
    let said = [
        format!("error: The application is unhealthy: {LOST}"),
        format!("warn: Waiting for the machine of the application: {LOST}"),
    ];
    assert_eq!(world.log(), said);
}
