//! Workers: taking jobs, keeping their lease, and ending them.

mod engine;
mod leases;
mod lifecycle;
mod reconcile;
mod restart;
mod retirement;
mod running;
mod runs;
mod uninstalling;

use std::sync::Arc;

use launchway_domain::{
    applications::Application,
    deployments::{Deployment, DeploymentState},
    jobs::JobKind,
};
use launchway_testkit::builders::{a_container, a_deployment, parsed};

use crate::{
    applications::web,
    world::{State, World, a_job},
};

/// The live version: #1 in the journal.
fn live() -> Deployment {
    let live = a_deployment().in_state(DeploymentState::Deployed).with_image();
    live.run_by(a_container("web")).build()
}

/// [`web`], with [`live`] live, asked by HTTP whether it works.
fn application() -> Application {
    let mut application = web().living_by(live().id).build();
    application.blueprint.health_check_path = Some(parsed("/up"));
    application
}

/// A deployment that waits: #2 in the journal.
fn next() -> Deployment {
    a_deployment().numbered(2).build()
}

/// A world in which a job of `kind` waits, and that is otherwise as `arrange` says.
fn world(kind: JobKind, arrange: impl FnOnce(&mut State)) -> Arc<World> {
    World::with(|state| {
        state.application = Some(application());
        state.deployments = vec![live(), next()];
        state.waiting.push_back(a_job(kind, &next(), 1));
        arrange(state);
    })
}

async fn carried_out(kind: JobKind, arrange: impl FnOnce(&mut State)) -> Arc<World> {
    let world = world(kind, arrange);
    world.worker().drain().await;
    world
}
