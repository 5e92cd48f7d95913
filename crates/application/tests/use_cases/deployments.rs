//! Requesting, cancelling and reading deployments.

mod cancel;
mod request;
mod show;

use launchway_application::Error;
use launchway_domain::{
    deployments::{Deployment, DeploymentDetail, KeptVersions, RetentionStatus},
    ids::DeploymentId,
};
use launchway_testkit::builders::{a_deployment, a_log_line};
use mockall::predicate::eq;

use crate::{
    applications::{scope, web},
    ports::MockedPorts,
};

/// The error for a deployment that does not exist or belongs to another organization.
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

/// Expects a check that the version of a deployment is still kept.
fn expect_kept(ports: &mut MockedPorts, id: DeploymentId, is_kept: bool) {
    let retention_status =
        RetentionStatus { deployment: id, is_live: false, is_open: false, is_worth_keeping: is_kept };
    let asked = ports.deployments.expect_retention_status();
    asked
        .withf(move |ids, kept| ids == [id] && *kept == KeptVersions(10))
        .once()
        .return_once(move |_, _| Ok(vec![retention_status]));
}

fn expect_detail(ports: &mut MockedPorts, id: DeploymentId, found: Option<DeploymentDetail>) {
    ports.deployments.expect_detail().with(eq(scope()), eq(id)).once().return_once(|_, _| Ok(found));
}
