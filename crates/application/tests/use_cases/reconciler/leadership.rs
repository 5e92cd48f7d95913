//! Servers that lead, and servers that do not.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use launchway_application::replicas::{ReplicaMonitor, ReplicaMonitorPorts};
use launchway_domain::{
    clock::MockClock,
    deployments::{Deployment, DiscoveredObject, DiscoveredResource, ImageName, RetentionStatus},
    ids::BootId,
    replicas::{HeartbeatResponse, MockEngineIdentity, MockReplicaRegistry, Replica, Term},
};
use launchway_testkit::{
    CountingIds,
    builders::{a_deployment, parsed},
    clock::{NEW_YEAR, moment},
};
use tokio::sync::watch;

use super::{calls, reconcile, running, running_at, world};
use crate::world::{Registry, World, a_container_of, an_image_size, wait};

/// Returns the monitor of a server, while another one leads. It leads from its fourth heartbeat on.
async fn a_monitor() -> ReplicaMonitor {
    let (mut registry, mut engine, mut clock) =
        (MockReplicaRegistry::new(), MockEngineIdentity::new(), MockClock::new());
    let now = moment(NEW_YEAR);
    registry
        .expect_register()
        .return_once(move |_| Ok(HeartbeatResponse { now, term: None, replicas: Vec::new() }));
    let beats = AtomicUsize::new(0);
    registry.expect_heartbeat().returning(move |replica| {
        let term = Term { replica: replica.id, boot: replica.boot, epoch: 1 };
        let term = (beats.fetch_add(1, Ordering::Relaxed) >= 3).then_some(term);
        Ok(HeartbeatResponse { now, term, replicas: Vec::new() })
    });
    registry.expect_leave().returning(|_, _| Ok(()));
    engine.expect_engine_id().returning(|| Some("swarm a".to_owned()));
    clock.expect_now().return_const(now);
    let ports = ReplicaMonitorPorts {
        registry: Arc::new(registry),
        engine: Arc::new(engine),
        clock: Arc::new(clock),
        on_clock_offset: Box::new(|_| ()),
    };
    let replica = Replica {
        id: CountingIds::nth(901).into(),
        boot: BootId::from(CountingIds::nth(903)),
        version: String::new(),
        hostname: "server-1".to_owned(),
        address: "127.0.0.1:8080".to_owned(),
        engine: None,
        started_at: now,
    };
    let Ok(Ok(monitor)) = ReplicaMonitor::register(ports, replica).await else { unreachable!() };
    monitor
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_looks_at_once() {
    let (world, monitor) = (world(running_at([10, 0, 0, 8], 0)), a_monitor().await);
    world.state().replica = monitor.own();
    world.state().is_quiet = true;
    let replica = monitor.own();
    let (stop, stopped) = watch::channel(false);
    let story = async {
        wait(3).await;
        assert!(!replica.is_leader() && calls(&world).is_empty());
        // The next scan would be at twelve seconds.
        wait(2).await;
        assert!(replica.is_leader());
        let calls = calls(&world);
        let last = calls.last().map(String::as_str);
        assert_eq!((calls.len(), last), (2, Some("switch to 10.0.0.8:8080")), "{calls:?}");
        stop.send_replace(true);
    };
    let (_end, ()) = tokio::join!(monitor.run(stopped), reconcile(&world, story));
}

/// Returns a container, a service, an image and a network of a deployment without a home.
fn objects_of(deployment: &Deployment) -> Vec<DiscoveredResource> {
    let container = a_container_of(deployment, running(0), moment(NEW_YEAR));
    let mut service = container.clone();
    if let DiscoveredObject::Container { id, .. } = &mut service.what {
        *id = parsed("qk9ltvpzp6r2r8lz1sm1imk1x");
    }
    let name = ImageName::of(deployment.application_id, deployment.id);
    let others = [
        DiscoveredObject::Image { name, size: an_image_size() },
        DiscoveredObject::Network("launchway-x-1".to_owned()),
    ];
    let others = others.map(|what| DiscoveredResource { what, ..container.clone() });
    [container, service].into_iter().chain(others).collect()
}

/// Returns the calls of a server that does not lead about the objects of a deployment, with or without an engine of its own.
async fn calls_of_a_follower(has_own_engine: bool, is_open: bool) -> Vec<String> {
    let replica = a_monitor().await.own();
    assert!(!replica.is_leader());
    let deployment = a_deployment().build();
    let world = World::with(|state| {
        state.found = objects_of(&deployment);
        let (is_live, is_worth_keeping, deployment_id) = (false, false, deployment.id);
        state.retention_status =
            vec![RetentionStatus { deployment: deployment_id, is_live, is_open, is_worth_keeping }];
        state.deployments = vec![deployment];
        state.registry = has_own_engine.then(Registry::default);
        state.replica = replica;
    });
    reconcile(&world, wait(10 * 60)).await;
    calls(&world)
}

#[tokio::test(start_paused = true)]
async fn a_follower_removes_orphans_of_its_own_engine() {
    let calls = calls_of_a_follower(true, false).await;
    assert_eq!(calls, ["stop attempt 1 of #1", "clear container of #1", "clear image of #1"]);
}

#[tokio::test(start_paused = true)]
async fn a_follower_keeps_what_an_open_deployment_needs() {
    assert_eq!(calls_of_a_follower(true, true).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_follower_removes_nothing_of_a_shared_engine() {
    assert_eq!(calls_of_a_follower(false, false).await, [""; 0]);
}
