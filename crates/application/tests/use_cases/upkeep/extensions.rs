//! Where the names of extensions lead.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use launchway_domain::{
    applications::Port,
    deployments::Condition,
    extensions::{ExtensionRoute, Write},
    organizations::Scope,
    routes::Target,
};
use launchway_testkit::{CountingIds, builders::a_container};

use super::{look_after, running, wait};
use crate::world::World;

/// A name that leads to the container "web", where it was last.
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
async fn a_name_leads_to_nobody_else_while_its_container_does_not_run() {
    for condition in [Condition::Gone, Condition::Exited { code: 0, restarts: 0, out_of_memory: false }] {
        let world = World::with(|state| {
            state.extension_routes = vec![route([10, 0, 0, 7])];
            state.condition = Some(condition);
        });
        look_after(&world, wait(3)).await;
        let nowhere = Write::MoveRoute { id: route([0; 4]).id, address: ExtensionRoute::NOWHERE };
        assert!(world.commits().contains(&vec![nowhere.into()]), "{condition:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_leads_to_its_container_again_once_it_runs() {
    let world = World::with(|state| {
        state.extension_routes = vec![route([0, 0, 0, 0])];
        state.condition = Some(running(1));
    });
    look_after(&world, wait(3)).await;
    let back = Write::MoveRoute { id: route([0; 4]).id, address: [10, 0, 0, 7].into() };
    assert!(world.commits().contains(&vec![back.into()]));
    // Nobody connects to what this machine takes for itself.
    assert_eq!(world.state().routes[0][0].target, Target::Absent);
}
