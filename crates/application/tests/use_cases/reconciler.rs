//! The reconciler: each difference between the records and the engine, and the resulting calls.

mod actions;
mod attempts;
mod checks;
pub(crate) mod compositions;
mod copies;
mod extension_routes;
mod health;
mod homes;
mod leadership;
mod orphans;
mod outages;
mod records;
mod registry;

use std::{net::IpAddr, sync::Arc};

use launchway_domain::{
    applications::ApplicationState,
    deployments::{Condition, Exit, LiveVersion},
};
use launchway_testkit::{
    builders::{a_container, a_deployment},
    clock::{NEW_YEAR, moment},
};
use tokio::sync::watch;

use crate::{
    applications::web,
    world::{State, World, a_container_of},
};

/// Returns a version that is served by the container "web".
pub(crate) fn live() -> LiveVersion {
    let mut live = a_deployment().of(&web().build()).with_image().run_by(a_container("web")).live();
    live.application.status.state = ApplicationState::Running;
    live
}

pub(crate) fn running(restarts: u32) -> Condition {
    running_at([10, 0, 0, 7], restarts)
}

fn running_at(address: [u8; 4], restarts: u32) -> Condition {
    Condition::Running { address: IpAddr::from(address), restarts }
}

/// Returns the exit of a program with `code`.
const fn exit(code: i32) -> Exit {
    Exit { code, out_of_memory: false, restarts: 0 }
}

/// Puts the container of [`live`] into `condition`.
fn find(state: &mut State, condition: Condition) {
    state.found = vec![a_container_of(&live().deployment, condition, moment(NEW_YEAR))];
}

/// Returns a world in which [`live`] is recorded as running and its container is in `condition`, or missing
/// without one.
fn world(condition: impl Into<Option<Condition>>) -> Arc<World> {
    World::with(|state| {
        state.live = vec![live()];
        state.application = Some(live().application);
        state.deployments = vec![live().deployment];
        state.last_printed = Some(moment(NEW_YEAR));
        if let Some(condition) = condition.into() {
            find(state, condition);
        }
    })
}

/// Runs the reconciler of `world`, and nothing else, during `story`.
async fn reconcile(world: &Arc<World>, story: impl Future<Output = ()>) {
    let (stop, stopped) = watch::channel(false);
    tokio::join!(world.reconciler().run(stopped), async {
        story.await;
        stop.send_replace(true);
    });
}

/// Returns the journal without the reads of the engine.
fn calls(world: &World) -> Vec<String> {
    let is_look = |entry: &String| ["containers", "everything"].contains(&entry.as_str());
    world.journal().into_iter().filter(|entry| !is_look(entry)).collect()
}

/// Returns the commits with announcements, in short form.
fn announcements(world: &World) -> Vec<String> {
    world.journal().into_iter().filter(|entry| entry.contains("announce")).collect()
}

/// Returns the commit that records and announces that a version became unhealthy.
fn broken(reason: &str) -> String {
    format!("commit: broken ({reason}), announce deployment.failed ({reason})")
}

/// The commit that records and announces that a version recovered.
const RECOVERED: &str = "commit: healthy, announce application.recovered ()";
