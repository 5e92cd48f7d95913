use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering as Order},
};

use async_trait::async_trait;
use launchway_domain::{
    clock::{MockClock, Timestamp},
    ids::BootId,
    replicas::{EngineIdentity, LEADERSHIP, MockEngineIdentity, MockReplicaRegistry},
};
use tokio::time::advance;
use uuid::Uuid;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn a_replica(number: u128, engine: &str) -> Replica {
    Replica {
        id: Uuid::from_u128(number).into(),
        boot: BootId::from(Uuid::from_u128(100 + number)),
        version: "1.0.0".to_owned(),
        hostname: "host".to_owned(),
        address: "127.0.0.1:8080".to_owned(),
        engine: Some(engine.to_owned()),
        started_at: NOW + TimeDelta::seconds(i64::try_from(number).unwrap()),
    }
}

/// Returns the answer to a heartbeat of `replica`, whose term it is or is not, at `now`.
fn a_pulse(replica: &Replica, leads: bool, now: Timestamp) -> HeartbeatResponse {
    let term = leads.then_some(Term { replica: replica.id, boot: replica.boot, epoch: 3 });
    HeartbeatResponse { now, term, replicas: vec![seen(replica)] }
}

fn seen(replica: &Replica) -> ReplicaStatus {
    ReplicaStatus { replica: replica.clone(), seen_at: NOW, is_alive: true, is_leader: false, routes_seen: 0 }
}

fn ports(registry: MockReplicaRegistry) -> ReplicaMonitorPorts {
    let (mut engine, mut clock) = (MockEngineIdentity::new(), MockClock::new());
    engine.expect_engine_id().returning(|| Some("A".to_owned()));
    clock.expect_now().return_const(NOW);
    ReplicaMonitorPorts {
        registry: Arc::new(registry),
        engine: Arc::new(engine),
        clock: Arc::new(clock),
        on_clock_offset: Box::new(|_| ()),
    }
}

/// Returns a monitor that leads, or does not, and whose database has the clock `now`.
async fn registered(mut registry: MockReplicaRegistry, leads: bool, now: Timestamp) -> ReplicaMonitor {
    registry.expect_register().return_once(move |replica| Ok(a_pulse(replica, leads, now)));
    ReplicaMonitor::register(ports(registry), a_replica(2, "A")).await.unwrap().map_err(drop).unwrap()
}

#[test]
fn the_only_server_leads_and_proves_nothing() {
    let own = OwnReplica::default();
    assert!(own.is_leader() && own.clock_problem().is_none());
    assert!(matches!(own.term(), Ok(None)));
}

#[tokio::test(start_paused = true)]
async fn a_term_is_over_before_another_replica_may_lead() {
    let own = registered(MockReplicaRegistry::new(), true, NOW).await.own();
    assert_eq!(own.term().unwrap().unwrap().epoch, 3);
    advance(LEADERSHIP - Duration::from_millis(2001)).await;
    assert!(own.is_leader());
    advance(Duration::from_millis(2)).await;
    assert!(!own.is_leader());
    assert!(matches!(own.term(), Err(StoreError::Stale)));
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_renews_the_term_and_a_failed_one_does_not() {
    let mut registry = MockReplicaRegistry::new();
    let beats = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&beats);
    registry.expect_heartbeat().returning(move |replica| match counted.fetch_add(1, Order::Relaxed) {
        0..5 => Ok(a_pulse(replica, true, NOW)),
        _ => Err(StoreError::Unavailable("gone".into())),
    });
    let monitor = registered(registry, false, NOW).await;
    let own = monitor.own();
    assert!(!own.is_leader());
    let (_stop, stopped) = watch::channel(false);
    tokio::spawn(monitor.run(stopped));
    own.wait_for_leadership().await;
    sleep(Duration::from_secs(9)).await;
    assert!(own.is_leader(), "the last success was 5 s ago");
    sleep(Duration::from_secs(3)).await;
    assert!(!own.is_leader() && beats.load(Order::Relaxed) > 5);
}

/// An engine that never answers.
struct SilentEngine;

#[async_trait]
impl EngineIdentity for SilentEngine {
    async fn engine_id(&self) -> Option<String> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_does_not_answer_delays_no_heartbeat() {
    let mut registry = MockReplicaRegistry::new();
    let beats = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&beats);
    registry.expect_register().return_once(|replica| Ok(a_pulse(replica, true, NOW)));
    registry.expect_heartbeat().returning(move |replica| {
        counted.fetch_add(1, Order::Relaxed);
        Ok(a_pulse(replica, true, NOW))
    });
    let ports = ReplicaMonitorPorts { engine: Arc::new(SilentEngine), ..ports(registry) };
    let Ok(Ok(monitor)) = ReplicaMonitor::register(ports, a_replica(2, "A")).await else { unreachable!() };
    let (_stop, stopped) = watch::channel(false);
    tokio::spawn(monitor.run(stopped));
    sleep(Duration::from_millis(10_500)).await;
    assert_eq!(beats.load(Order::Relaxed), 10);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_server_leaves() {
    let mut registry = MockReplicaRegistry::new();
    registry.expect_leave().once().returning(|_, _| Ok(()));
    let monitor = registered(registry, true, NOW).await;
    let own = monitor.own();
    let (stop, stopped) = watch::channel(false);
    stop.send_replace(true);
    assert_eq!(monitor.run(stopped).await, None);
    assert!(!own.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_server_with_another_engine_does_not_start() {
    let mut registry = MockReplicaRegistry::new();
    let other = a_replica(1, "B");
    let known = other.clone();
    registry.expect_register().return_once(move |replica| {
        Ok(HeartbeatResponse { replicas: vec![seen(&known), seen(replica)], ..a_pulse(replica, false, NOW) })
    });
    registry.expect_leave().once().returning(|_, _| Ok(()));
    let refused = ReplicaMonitor::register(ports(registry), a_replica(2, "A")).await.unwrap();
    assert_eq!(refused.err(), Some(ReplicaEnd::OtherEngine(Box::new(other))));
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_id_another_run_has_stops() {
    let mut registry = MockReplicaRegistry::new();
    registry.expect_heartbeat().returning(|_| Err(StoreError::Stale));
    registry.expect_leave().once().returning(|_, _| Ok(()));
    let monitor = registered(registry, true, NOW).await;
    let own = monitor.own();
    let (_stop, stopped) = watch::channel(false);
    assert_eq!(monitor.run(stopped).await, Some(ReplicaEnd::SameId));
    assert!(!own.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_clock_may_be_ten_seconds_off() {
    for (milliseconds, told) in [
        (0, None),
        (10_000, None),
        (-10_000, None),
        (10_001, Some("10 s behind")),
        (-62_000, Some("62 s ahead of")),
    ] {
        let now = NOW + TimeDelta::milliseconds(milliseconds);
        let own = registered(MockReplicaRegistry::new(), true, now).await.own();
        match (own.clock_problem(), told) {
            (None, None) => {}
            (Some(problem), Some(told)) => assert!(problem.contains(told), "{problem}"),
            (problem, _) => panic!("{milliseconds}: {problem:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_switch_waits_for_the_others_but_not_for_long() {
    for (behind_for, waited) in [(0, 0), (3, 150), (usize::MAX, 10_000)] {
        let mut registry = MockReplicaRegistry::new();
        let left = Mutex::new(behind_for);
        registry.expect_routes_epoch().returning(|| Ok(7));
        registry.expect_behind().returning(move |_, epoch| {
            assert_eq!(epoch, 7);
            let mut left = left.lock().unwrap();
            let is_behind = *left > 0;
            *left = left.saturating_sub(1);
            Ok(usize::from(is_behind))
        });
        let own = registered(registry, true, NOW).await.own();
        let start = Instant::now();
        own.wait_for_routes().await;
        assert_eq!(start.elapsed().as_millis(), waited);
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_those_that_were_requested() {
    let drain = Drain { application: Uuid::from_u128(9).into(), container: None };
    let mut alone = MockReplicaRegistry::new();
    alone.expect_request_drain().return_once(|_, _, _| Ok(0));
    alone.expect_forget_drain().returning(|_| Ok(()));
    registered(alone, true, NOW).await.own().drain_others(&drain, DrainScope::Living).await;

    let mut registry = MockReplicaRegistry::new();
    let left = AtomicUsize::new(4);
    registry.expect_request_drain().return_once(|_, _, _| Ok(2));
    registry.expect_undrained().returning(move |_, _| Ok(left.fetch_sub(1, Order::Relaxed) - 1));
    registry.expect_forget_drain().once().returning(|_| Ok(()));
    let own = registered(registry, true, NOW).await.own();
    let start = Instant::now();
    own.drain_others(&drain, DrainScope::Living).await;
    assert_eq!(start.elapsed(), DRAIN_POLL * 3);
}
