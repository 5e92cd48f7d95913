//! Execution of deployments: the order of port calls, and the writes.

mod cancellation;
mod compositions;
mod copies;
mod failures;
mod health;
mod image_quota;
mod interruptions;
mod log;
mod order;
mod rollback;
mod writes;

use std::sync::Arc;

use launchway_domain::{
    applications::{Application, Blueprint},
    deployments::{Deployment, DeploymentState},
    jobs::JobKind,
};
use launchway_testkit::builders::{a_container, a_deployment, parsed};

use crate::{
    applications::web,
    world::{State, World, a_job},
};

/// Returns the previous version: #1 in the journal.
fn old() -> Deployment {
    let old = a_deployment().numbered(1).in_state(DeploymentState::Deployed);
    old.made_of('1').with_image().run_by(a_container("old")).build()
}

/// Returns the new version: #2 in the journal.
fn new() -> Deployment {
    a_deployment().numbered(2).build()
}

/// Returns [`web`] with an HTTP health check, with [`old`] live and a change of its blueprint.
fn application(change: impl FnOnce(&mut Blueprint)) -> Application {
    let mut application = web().living_by(old().id).build();
    application.blueprint.health_check_path = Some(parsed("/up"));
    change(&mut application.blueprint);
    application
}

/// Returns a world with the pending job of [`new`], configured by `arrange`.
fn world(arrange: impl FnOnce(&mut State)) -> Arc<World> {
    World::with(|state| {
        state.application = Some(application(|_| {}));
        state.deployments = vec![old(), new()];
        state.waiting.push_back(a_job(JobKind::Deploy, &new(), 1));
        arrange(state);
    })
}

/// Executes the pending jobs.
async fn carried_out(arrange: impl FnOnce(&mut State)) -> Arc<World> {
    let world = world(arrange);
    world.worker().drain().await;
    world
}
