//! Stopping and restarting an application.

use launchway_application::Error;
use launchway_domain::{
    applications::Write,
    audit::{Action, Resource},
    auth::Actor,
    clock::Timestamp,
    deployments::Write as DeploymentWrite,
    ids::ApplicationId,
    jobs::{JobKind, Write as JobWrite},
    store::{self, StoreError},
};
use launchway_testkit::{
    builders::{ApplicationBuilder, an_actor, an_entry},
    ids::id_of,
};

use super::{NO_APPLICATION, Seen, detail, expect_application, expect_detail, job, scope, shown, web};
use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn id() -> ApplicationId {
    web().build().id
}

/// Returns [`web`] with a live version.
fn live() -> ApplicationBuilder {
    web().living_by(id_of("the live deployment"))
}

fn entry(what: &str, at: Timestamp) -> store::Write {
    let message = format!("{what} the application `web` (production)");
    audited(2, an_entry().of(Action::Update, Resource::Application, id()).with_message(&message).at(at))
}

fn stop_writes(at: Timestamp) -> Vec<store::Write> {
    vec![
        JobWrite::RequestCancelAll { scope: scope(), subject: id().into(), at }.into(),
        DeploymentWrite::FollowJobs { application: Some(id()), at }.into(),
        Write::SetStopped { scope: scope(), id: id(), is_stopped: true, at }.into(),
        JobWrite::Enqueue(job(1, JobKind::Stop, id(), String::new(), at)).into(),
        entry("stopped", at),
    ]
}

fn restart_writes(at: Timestamp) -> Vec<store::Write> {
    let job = job(1, JobKind::Restart, id(), String::new(), at);
    vec![JobWrite::Enqueue(job).into(), entry("restarted", at)]
}

/// The names of the operations.
const OPERATIONS: [&str; 2] = ["stop", "restart"];

async fn operate(ports: MockedPorts, operation: &str, actor: &Actor) -> Result<Seen, Error> {
    let applications = ports.services().applications;
    match operation {
        "stop" => applications.stop(actor, id()).await,
        _ => applications.restart(actor, id()).await,
    }
}

#[tokio::test]
async fn an_application_stops_at_once_and_its_version_by_a_job() {
    let mut ports = MockedPorts::with_a_box();
    expect_application(&mut ports, id(), Some(live().build()));
    ports.expect_commit(stop_writes(ports.now()));
    expect_detail(&mut ports, id(), Some(detail(live().stopped())));

    let outcome = ports.services().applications.stop(&a_member(), id()).await;

    assert_eq!(outcome.unwrap(), (detail(live().stopped()), shown()));
}

#[tokio::test]
async fn restart_enqueues_a_job_for_running_and_stopped_versions() {
    for application in [live(), live().stopped()] {
        let mut ports = MockedPorts::with_a_box();
        expect_application(&mut ports, id(), Some(application.clone().build()));
        ports.expect_commit(restart_writes(ports.now()));
        expect_detail(&mut ports, id(), Some(detail(application.clone())));

        let outcome = ports.services().applications.restart(&a_member(), id()).await;

        assert_eq!(outcome.unwrap(), (detail(application), shown()));
    }
}

#[tokio::test]
async fn maintenance_restarts_only_versions_that_run() {
    for (found, restarted) in
        [(Some(live().build()), 1), (Some(live().stopped().build()), 0), (Some(web().build()), 0), (None, 0)]
    {
        let mut ports = MockedPorts::default();
        expect_application(&mut ports, id(), found);
        if restarted > 0 {
            let at = ports.now();
            let message = "restarted the application `web` (production) for the maintenance of a machine";
            let entry =
                an_entry().of(Action::Update, Resource::Application, id()).with_message(message).at(at);
            let job = job(1, JobKind::Restart, id(), String::new(), at);
            ports.expect_commit(vec![JobWrite::Enqueue(job).into(), audited(2, entry.by_operator())]);
        }

        let outcome = ports.services().applications.restart_for_maintenance(&[(scope().id(), id())]).await;

        assert_eq!(outcome.unwrap(), restarted);
    }
}

#[tokio::test]
async fn stop_and_restart_need_a_live_version() {
    for operation in OPERATIONS {
        let mut ports = MockedPorts::default();
        expect_application(&mut ports, id(), Some(web().build()));

        let outcome = operate(ports, operation, &an_actor().build()).await;

        let reason = "no version of this application is live: deploy it first";
        assert_refused(outcome, Error::Conflict(reason.to_owned()));
    }
}

#[tokio::test]
async fn stop_and_restart_need_the_permission() {
    for operation in OPERATIONS {
        for actor in [a_viewer(), a_program_without("deploy:update")] {
            assert_refused(operate(MockedPorts::default(), operation, &actor).await, lacks("deploy:update"));
        }
    }
}

#[tokio::test]
async fn application_of_another_organization_is_not_found() {
    for operation in OPERATIONS {
        let mut ports = MockedPorts::default();
        expect_application(&mut ports, id(), None);

        assert_refused(operate(ports, operation, &an_actor().build()).await, NO_APPLICATION);
    }
}

#[tokio::test]
async fn operations_fail_after_concurrent_delete_or_without_database() {
    for operation in OPERATIONS {
        for (error, refusal) in [(StoreError::Stale, NO_APPLICATION), (unavailable(), unavailable().into())] {
            let mut ports = MockedPorts::default();
            expect_application(&mut ports, id(), Some(live().build()));
            ports.expect_failing_commit(error);

            assert_refused(operate(ports, operation, &an_actor().build()).await, refusal);
        }
    }
}
