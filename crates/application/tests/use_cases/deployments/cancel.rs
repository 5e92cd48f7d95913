//! Cancellation of a deployment.

use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Resource},
    clock::Timestamp,
    deployments::{Deployment, DeploymentState, Write},
    jobs::Write as JobWrite,
    store::{self, StoreError},
};
use launchway_testkit::builders::{a_deployment, an_entry};

use super::{NO_DEPLOYMENT, detail, expect_deployment, expect_detail};
use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    applications::scope,
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn deployment(state: DeploymentState) -> Deployment {
    a_deployment().in_state(state).build()
}

fn writes(deployment: &Deployment, at: Timestamp) -> Vec<store::Write> {
    let id = deployment.id;
    let entry = an_entry()
        .of(Action::Update, Resource::Deployment, id)
        .with_message(&format!("cancelled the deployment {id}"))
        .at(at);
    vec![
        JobWrite::RequestCancel { scope: scope(), id: deployment.job_id, at }.into(),
        Write::FollowJobs { application: Some(deployment.application_id), at }.into(),
        audited(1, entry),
    ]
}

#[tokio::test]
async fn a_queued_or_running_job_is_asked_to_end() {
    for state in DeploymentState::ALL.into_iter().filter(|state| !state.is_final()) {
        let mut ports = MockedPorts::default();
        let deployment = deployment(state);
        expect_deployment(&mut ports, deployment.id, Some(deployment.clone()));
        ports.expect_commit(writes(&deployment, ports.now()));
        expect_detail(&mut ports, deployment.id, Some(detail()));

        let outcome = ports.services().deployments.cancel(&a_member(), deployment.id).await;

        assert_eq!(outcome.unwrap(), detail());
    }
}

#[tokio::test]
async fn what_has_finished_cannot_be_cancelled() {
    for state in DeploymentState::ALL.into_iter().filter(|state| state.is_final()) {
        let mut ports = MockedPorts::default();
        let deployment = deployment(state);
        expect_deployment(&mut ports, deployment.id, Some(deployment.clone()));

        let outcome = ports.services().deployments.cancel(&a_member(), deployment.id).await;

        assert_refused(outcome, Error::Conflict(format!("the deployment is {} already", state.as_str())));
    }
}

#[tokio::test]
async fn what_came_to_its_end_meanwhile_says_how() {
    let id = deployment(DeploymentState::Deploying).id;
    for (found, refusal) in [
        (
            Some(deployment(DeploymentState::Deployed)),
            Error::Conflict("the deployment is deployed already".to_owned()),
        ),
        (None, NO_DEPLOYMENT),
    ] {
        let mut ports = MockedPorts::default();
        expect_deployment(&mut ports, id, Some(deployment(DeploymentState::Deploying)));
        ports.expect_failing_commit(StoreError::Stale);
        expect_deployment(&mut ports, id, found);

        assert_refused(ports.services().deployments.cancel(&a_member(), id).await, refusal);
    }
}

#[tokio::test]
async fn nobody_cancels_a_deployment_without_the_permission() {
    for actor in [a_viewer(), a_program_without("deploy:update")] {
        let id = deployment(DeploymentState::Queued).id;
        let outcome = MockedPorts::default().services().deployments.cancel(&actor, id).await;
        assert_refused(outcome, lacks("deploy:update"));
    }
}

#[tokio::test]
async fn deployment_of_another_organization_is_not_found() {
    let id = deployment(DeploymentState::Queued).id;
    let mut ports = MockedPorts::default();
    expect_deployment(&mut ports, id, None);

    assert_refused(ports.services().deployments.cancel(&a_member(), id).await, NO_DEPLOYMENT);
}

#[tokio::test]
async fn nothing_is_cancelled_without_a_database() {
    let waiting = deployment(DeploymentState::Queued);
    let mut ports = MockedPorts::default();
    expect_deployment(&mut ports, waiting.id, Some(waiting.clone()));
    ports.expect_failing_commit(unavailable());

    assert_refused(ports.services().deployments.cancel(&a_member(), waiting.id).await, unavailable());
}
