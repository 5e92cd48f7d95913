//! Deployments: asking for them, cancelling them, showing them.

mod cancel;
mod request;
mod show;

use launchway_application::Error;
use launchway_domain::{
    deployments::{Deployment, DeploymentDetail},
    ids::DeploymentId,
};
use launchway_testkit::builders::{a_deployment, a_log_line};
use mockall::predicate::eq;

use crate::{
    applications::{scope, web},
    ports::MockedPorts,
};

/// What a deployment is called that is gone, and one that is none of the caller's.
const NO_DEPLOYMENT: Error = Error::NotFound("the deployment");

fn detail() -> DeploymentDetail {
    DeploymentDetail {
        deployment: a_deployment().build(),
        application: web().summary(),
        logs: vec![a_log_line().build()],
    }
}

fn expect_deployment(ports: &mut MockedPorts, id: DeploymentId, found: Option<Deployment>) {
    ports.deployments.expect_get().with(eq(scope()), eq(id)).once().return_once(|_, _| Ok(found));
}

fn expect_detail(ports: &mut MockedPorts, id: DeploymentId, found: Option<DeploymentDetail>) {
    ports.deployments.expect_detail().with(eq(scope()), eq(id)).once().return_once(|_, _| Ok(found));
}
