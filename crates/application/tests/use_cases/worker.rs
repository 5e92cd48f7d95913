//! Workers: claiming jobs, renewing their lease, and settling them.

mod copies;
mod engine;
mod execution;
mod leases;
mod lifecycle;
mod reconcile;
mod restart;
mod retirement;
mod runs;
mod uninstall;

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

/// Returns the live version: #1 in the journal.
fn live() -> Deployment {
    let live = a_deployment().in_state(DeploymentState::Deployed).with_image();
    live.run_by(a_container("web")).build()
}

/// Returns [`web`], with [`live`] live and an HTTP health check.
fn application() -> Application {
    let mut application = web().living_by(live().id).build();
    application.blueprint.health_check_path = Some(parsed("/up"));
    application
}

/// Returns a pending deployment: #2 in the journal.
fn next() -> Deployment {
    a_deployment().numbered(2).build()
}

/// Returns a world with a pending job of `kind`, configured by `arrange`.
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
