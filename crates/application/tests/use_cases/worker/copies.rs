//! Jobs on a version with several copies.

use std::sync::Arc;

use launchway_domain::{
    deployments::{Condition, ContainerRecord, Deployment, DiscoveredObject, DiscoveredResource},
    jobs::JobKind,
};
use launchway_testkit::{
    builders::a_container,
    clock::{NEW_YEAR, moment},
};

use super::{carried_out, live, next};
use crate::world::{State, World, a_container_of, copies};

/// Returns the record of a copy, which runs at 10.0.0.6 and the number.
fn a_copy(number: u8) -> ContainerRecord {
    match number {
        1 => a_container("web"),
        _ => ContainerRecord {
            address: Some([10, 0, 0, 6 + number].into()),
            ..a_container(&format!("web {number}"))
        },
    }
}

/// Returns [`live`] with this number of copies.
fn copied(count: u8) -> Deployment {
    Deployment { further_copies: (2..=count).map(a_copy).collect(), ..live() }
}

/// Returns a copy as it is found on the engine.
fn found(number: u8) -> DiscoveredResource {
    let condition = Condition::Running { address: [10, 0, 0, 6 + number].into(), restarts: 0 };
    let one = Deployment { container: Some(a_copy(number)), ..live() };
    a_container_of(&one, condition, moment(NEW_YEAR))
}

/// Runs a job while `running` of the recorded copies run and `wanted` are wanted.
async fn with_copies(kind: JobKind, recorded: u8, running: &[u8], wanted: i64) -> Arc<World> {
    carried_out(kind, |state| arrange(state, recorded, running, wanted)).await
}

fn arrange(state: &mut State, recorded: u8, running: &[u8], wanted: i64) {
    let copies = copies(wanted);
    state.application.iter_mut().for_each(|application| application.blueprint.copies = copies);
    state.deployments = vec![copied(recorded), next()];
    state.found = running.iter().copied().map(found).collect();
}

#[tokio::test(start_paused = true)]
async fn more_copies_are_started_checked_and_routed_to() {
    let world = with_copies(JobKind::Reconcile, 1, &[1], 3).await;
    assert_eq!(
        world.journal(),
        [
            "containers",
            "containers",
            "start on 8080 with PASSWORD as copy 2",
            "start on 8080 with PASSWORD as copy 3",
            "commit: prove, replace by web running, new 2 running, new 3 running",
            "switch to 10.0.0.7:8080 10.0.1.2:8080 10.0.1.3:8080",
            "keep",
            "keep",
            "commit: succeeded, follow",
        ]
    );
    assert_eq!(
        world.log(),
        [
            "info: Scaling from 1 to 3 copies",
            "info: Starting 2 copies of the container",
            "info: Running at http://10.0.0.7:8080, http://10.0.1.2:8080, http://10.0.1.3:8080",
        ]
    );
    let mut probed: Vec<String> = world.state().probed.iter().map(ToString::to_string).collect();
    probed.sort();
    assert_eq!(probed, ["10.0.1.2:8080", "10.0.1.3:8080"]);
}

#[tokio::test(start_paused = true)]
async fn copies_too_many_lose_the_traffic_and_are_drained() {
    let world = with_copies(JobKind::Reconcile, 3, &[1, 2, 3], 1).await;
    assert_eq!(
        world.journal(),
        [
            "containers",
            "commit: prove, replace by web running",
            "switch to 10.0.0.7:8080",
            "commit: succeeded, follow",
            "drain",
            "drain",
            "stop attempt 1 of #1",
            "stop attempt 1 of #1",
            "printed",
            "printed",
            "containers",
            "clear container of #1",
            "clear container of #1",
        ]
    );
    let left = world.state().found.clone();
    assert!(matches!(&left[..], [one] if one.what == found(1).what), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn only_a_missing_copy_is_created_anew() {
    let world = with_copies(JobKind::Reconcile, 3, &[1, 3], 3).await;
    let expected = [
        "containers",
        "containers",
        "start on 8080 with PASSWORD as copy 2",
        "commit: prove, replace by web running, new 2 running, web 3 running",
        "switch to 10.0.0.7:8080 10.0.1.2:8080 10.0.0.9:8080",
        "keep",
        "commit: succeeded, follow",
    ];
    assert_eq!(world.journal(), expected);
    assert_eq!(world.state().started[0].owner.attempt, 2, "no container of the first attempt is replaced");
}

#[tokio::test(start_paused = true)]
async fn a_failed_copy_leaves_the_others_and_degrades_the_version() {
    let world = carried_out(JobKind::Reconcile, |state| {
        arrange(state, 1, &[1], 2);
        state.refuse("start", "no memory");
    })
    .await;
    let journal = world.journal();
    assert!(journal.contains(&"remove attempt 2 of #1".to_owned()), "{journal:?}");
    assert!(!journal.iter().any(|entry| entry.starts_with("switch")), "{journal:?}");
    assert!(journal.contains(&"commit: degraded (no memory)".to_owned()), "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn copies_that_are_as_recorded_are_left_alone() {
    let world = with_copies(JobKind::Reconcile, 3, &[1, 2, 3], 3).await;
    assert_eq!(world.journal(), ["containers", "commit: succeeded, follow"]);
    assert!(world.log().is_empty(), "{:?}", world.log());
}

#[tokio::test(start_paused = true)]
async fn a_restart_replaces_every_copy_at_once() {
    let world = with_copies(JobKind::Restart, 2, &[1, 2], 2).await;
    let journal = world.journal();
    let switches: Vec<&String> = journal.iter().filter(|entry| entry.starts_with("switch")).collect();
    assert_eq!(switches, ["switch to 10.0.0.9:8080 10.0.1.2:8080"]);
    let position = |text: &str| journal.iter().position(|entry| entry == text);
    assert!(position("drain") > position("switch to 10.0.0.9:8080 10.0.1.2:8080"), "{journal:?}");
    assert_eq!(journal.iter().filter(|entry| *entry == "clear container of #1").count(), 2, "{journal:?}");
    assert!(!journal.iter().any(|entry| entry.starts_with("remove attempt")), "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn every_copy_of_a_stopped_application_is_stopped() {
    let world = with_copies(JobKind::Stop, 2, &[1, 2], 2).await;
    let journal = world.journal();
    assert_eq!(journal.iter().filter(|entry| *entry == "stop #1").count(), 2, "{journal:?}");
    let recorded = world.state().deployments[0].clone();
    assert!(recorded.copies().all(|copy| copy.state.as_str() == "exited"), "{recorded:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_container_found_decides_no_more_than_its_own_copy() {
    // All are gone: each is created anew, in one attempt.
    let world = with_copies(JobKind::Reconcile, 2, &[], 2).await;
    let state = world.state();
    assert_eq!(
        state.started.iter().map(|plan| (plan.owner.attempt, plan.copy)).collect::<Vec<_>>(),
        [(1, 1), (1, 2)]
    );
    assert!(matches!(found(1).what, DiscoveredObject::Container { .. }));
}
