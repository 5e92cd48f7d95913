//! Several copies: each is restored on its own, and the version serves meanwhile.

use std::sync::Arc;

use launchway_domain::deployments::{Condition, ContainerRecord, Deployment, LiveVersion};
use launchway_testkit::{
    builders::a_container,
    clock::{NEW_YEAR, moment},
};

use super::{calls, exit, live, reconcile, running, running_at};
use crate::world::{World, a_container_of, copies, wait};

fn a_copy() -> ContainerRecord {
    ContainerRecord { address: Some([10, 0, 0, 8].into()), ..a_container("copy") }
}

fn two() -> LiveVersion {
    let mut live = live();
    live.application.blueprint.copies = copies(2);
    live.deployment.further_copies = vec![a_copy()];
    live
}

/// Returns a world with two copies in these conditions.
fn world(first: Condition, second: Condition) -> Arc<World> {
    World::with(|state| {
        state.live = vec![two()];
        state.application = Some(two().application);
        state.deployments = vec![two().deployment];
        state.last_printed = Some(moment(NEW_YEAR));
        let copy = Deployment { container: Some(a_copy()), ..two().deployment };
        state.found = vec![
            a_container_of(&two().deployment, first, moment(NEW_YEAR)),
            a_container_of(&copy, second, moment(NEW_YEAR)),
        ];
    })
}

#[tokio::test(start_paused = true)]
async fn copies_that_are_as_recorded_are_left_alone() {
    let world = world(running(0), running_at([10, 0, 0, 8], 0));
    reconcile(&world, wait(60)).await;
    assert!(calls(&world).is_empty() && world.log().is_empty(), "{:?} {:?}", calls(&world), world.log());
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_is_down_leaves_the_route_until_it_is_back() {
    let world = world(running(0), Condition::Exited(exit(137)));
    reconcile(&world, wait(10)).await;
    let calls = calls(&world);
    assert_eq!(calls[..2], ["commit: record copy exited", "switch to 10.0.0.7:8080"]);
    assert!(calls.contains(&"resume #1".to_owned()), "{calls:?}");
    assert!(!calls.iter().any(|call| call.contains("broken")), "{calls:?}");
    assert!(calls.contains(&"commit: record copy running".to_owned()), "{calls:?}");
    let log = world.log();
    assert!(
        log.contains(&"warn: Copy 2: the container exited with code 137: restarting it".to_owned()),
        "{log:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_without_a_copy_that_runs_is_broken() {
    let world = world(Condition::Paused, Condition::Paused);
    world.state().stays_down = true;
    reconcile(&world, wait(5)).await;
    let calls = calls(&world);
    assert!(calls.contains(&"switch to nowhere: absent".to_owned()), "{calls:?}");
    assert!(calls.iter().any(|call| call.contains("broken (copy 1: the container is paused)")), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn another_number_of_copies_is_noticed_after_a_while() {
    let world = world(running(0), running_at([10, 0, 0, 8], 0));
    world.state().live[0].application.blueprint.copies = copies(3);
    reconcile(&world, wait(25)).await;
    let log = world.log();
    assert_eq!(log.first().map(String::as_str), Some("warn: 2 of 3 copies exist"), "{log:?}");
}
