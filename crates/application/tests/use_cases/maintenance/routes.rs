//! Periodic updates of the router from the records.

use launchway_domain::applications::NamedApplication;
use launchway_testkit::clock::{NEW_YEAR, moment};

use crate::{
    reconciler::{live, running},
    world::{World, a_container_of, look_after, wait},
};

#[tokio::test(start_paused = true)]
async fn all_routes_are_sent_at_once_and_every_five_seconds() {
    let world = World::with(|state| {
        let hosts = vec!["web.analytics.localhost".to_owned()];
        state.named = vec![NamedApplication { id: live().application.id, hosts }];
        state.live = vec![live()];
        state.found = vec![a_container_of(&live().deployment, running(0), moment(NEW_YEAR))];
    });
    look_after(&world, wait(11)).await;
    let state = world.state();
    assert_eq!(state.routes.len(), 3);
    assert!(state.routes.iter().all(|routes| routes.len() == 1));
}

#[tokio::test(start_paused = true)]
async fn a_router_that_was_away_gets_routes_when_it_is_back() {
    let world = World::with(|state| state.fault("replace all", 2));
    look_after(&world, wait(11)).await;
    assert_eq!(world.state().routes.len(), 3);
}
