//! Carrying out deployments: which ports are asked, in which order, and what is written.

mod cancelling;
mod compositions;
mod failures;
mod health;
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

/// What is live before: #1 in the journal.
fn old() -> Deployment {
    let old = a_deployment().numbered(1).in_state(DeploymentState::Deployed);
    old.made_of('1').with_image().run_by(a_container("old")).build()
}

/// What is to be live: #2 in the journal.
fn new() -> Deployment {
    a_deployment().numbered(2).build()
}

/// [`web`], asked by HTTP whether it works, with [`old`] live and something else about it.
fn application(change: impl FnOnce(&mut Blueprint)) -> Application {
    let mut application = web().living_by(old().id).build();
    application.blueprint.health_check_path = Some(parsed("/up"));
    change(&mut application.blueprint);
    application
}

/// A world in which the job of [`new`] waits, and that is otherwise as `arrange` says.
fn world(arrange: impl FnOnce(&mut State)) -> Arc<World> {
    World::with(|state| {
        state.application = Some(application(|_| {}));
        state.deployments = vec![old(), new()];
        state.waiting.push_back(a_job(JobKind::Deploy, &new(), 1));
        arrange(state);
    })
}

/// Carries out what waits.
async fn carried_out(arrange: impl FnOnce(&mut State)) -> Arc<World> {
    let world = world(arrange);
    world.worker().drain().await;
    world
}
