//! Upkeep: lost jobs, leftovers, what containers print, and whether they stay up.

mod companions;
mod extensions;
mod reaping;
mod records;
mod rescuing;
mod routing;
mod runtime_logs;
mod stability;

use std::{net::IpAddr, sync::Arc, time::Duration};

use launchway_domain::deployments::{Condition, LiveVersion};
use launchway_testkit::builders::{a_container, a_deployment};
use tokio::sync::watch;

use crate::{applications::web, world::World};

/// A version that serves, by the container "web".
fn live() -> LiveVersion {
    let mut live = a_deployment().of(&web().build()).run_by(a_container("web")).live();
    live.application.status.state = launchway_domain::applications::ApplicationState::Running;
    live
}

fn running(restarts: u32) -> Condition {
    Condition::Running { address: IpAddr::from([10, 0, 0, 7]), restarts }
}

/// Looks after `world` while `story` is told, and stops.
async fn look_after(world: &Arc<World>, story: impl Future<Output = ()>) {
    let (stop, stopped) = watch::channel(false);
    let upkeep = world.upkeep();
    tokio::join!(upkeep.run(stopped), async {
        story.await;
        stop.send_replace(true);
    });
}

/// So much time passes.
async fn wait(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
