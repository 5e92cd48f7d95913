//! The routes of extensions follow their containers, and their runs wait for the machine with them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use launchway_domain::{
    applications::Port,
    deployments::Condition,
    extensions::{ExtensionRoute, Write},
    ids::{ExecutionId, SubjectId},
    organizations::Scope,
    routes::Target,
};
use launchway_testkit::{CountingIds, builders::a_container};
use uuid::Uuid;

use super::{
    exit,
    homes::{LOST, servers, with_home_of},
    reconcile, running,
};
use crate::world::{World, look_after, wait};

/// Returns a route to the container "web" at its last address.
fn route(address: [u8; 4]) -> ExtensionRoute {
    ExtensionRoute {
        id: CountingIds::nth(1).into(),
        scope: Scope::of_record(CountingIds::nth(2).into()),
        extension: "pages".parse().unwrap(),
        host: "pages.example".parse().unwrap(),
        container: a_container("web").id,
        address: address.into(),
        port: Port::try_from(8080).unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_is_routed_nowhere_while_its_container_is_down() {
    for condition in [Condition::Gone, Condition::Exited(exit(0))] {
        let world = World::with(|state| {
            state.extension_routes = vec![route([10, 0, 0, 7])];
            state.condition = Some(condition);
        });
        reconcile(&world, wait(3)).await;
        let nowhere = Write::MoveRoute { id: route([0; 4]).id, address: ExtensionRoute::NOWHERE };
        assert!(world.commits().contains(&vec![nowhere.into()]), "{condition:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_is_routed_to_its_container_once_it_runs() {
    let world = World::with(|state| {
        state.extension_routes = vec![route([0, 0, 0, 0])];
        state.condition = Some(running(1));
    });
    look_after(&world, wait(3)).await;
    let back = Write::MoveRoute { id: route([0; 4]).id, address: [10, 0, 0, 7].into() };
    assert!(world.commits().contains(&vec![back.into()]));
    // Addresses that this machine reserves for itself are never routed to.
    assert_eq!(world.state().routes[0][0].target, Target::Absent);
}

#[tokio::test(start_paused = true)]
async fn a_name_stays_where_it_is_while_the_engine_is_away() {
    let world = World::with(|state| {
        state.extension_routes = vec![route([10, 0, 0, 7])];
        state.fault("condition", 100);
    });
    reconcile(&world, wait(30)).await;
    assert!(world.commits().is_empty(), "{:?}", world.commits());
}

/// The home of the organization's extensions.
fn subject() -> SubjectId {
    Uuid::from(route([0; 4]).scope.id()).into()
}

#[tokio::test(start_paused = true)]
async fn a_name_of_another_machine_is_left_alone() {
    let world = World::with(|state| {
        state.extension_routes = vec![route([10, 0, 0, 7])];
        // Its container is not seen from here.
        state.condition = Some(Condition::Gone);
        with_home_of(state, subject(), (servers()[1], true), Vec::new(), Vec::new());
    });
    reconcile(&world, wait(30)).await;
    assert!(world.commits().is_empty(), "{:?}", world.commits());
}

#[tokio::test(start_paused = true)]
async fn a_name_of_this_machine_is_followed() {
    let world = World::with(|state| {
        state.extension_routes = vec![route([0, 0, 0, 0])];
        state.condition = Some(running(1));
        with_home_of(state, subject(), (servers()[0], true), Vec::new(), Vec::new());
    });
    reconcile(&world, wait(3)).await;
    let back = Write::MoveRoute { id: route([0; 4]).id, address: [10, 0, 0, 7].into() };
    assert!(world.commits().contains(&vec![back.into()]), "{:?}", world.commits());
}

#[tokio::test(start_paused = true)]
async fn names_of_a_lost_machine_lead_nowhere_and_its_runs_say_so() {
    let world = World::with(|state| {
        state.extension_routes = vec![route([10, 0, 0, 7])];
        state.condition = Some(Condition::Gone);
        let runs = vec![ExecutionId::from(CountingIds::nth(77))];
        with_home_of(state, subject(), (servers()[1], false), Vec::new(), runs);
    });
    reconcile(&world, async {
        wait(3).await;
        world.state().extension_routes = vec![route([0, 0, 0, 0])];
        wait(60).await;
    })
    .await;
    let nowhere = Write::MoveRoute { id: route([0; 4]).id, address: ExtensionRoute::NOWHERE };
    assert_eq!(world.commits(), [vec![nowhere.into()]]);
    assert_eq!(world.run_log(), [format!("warn: Waiting for the machine of the extension: {LOST}")]);
}
