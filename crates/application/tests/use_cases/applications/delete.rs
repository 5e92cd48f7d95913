//! Deletion of an application.

use launchway_domain::{
    applications::Write,
    audit::{Action, Resource},
    deployments::Write as DeploymentWrite,
    jobs::{JobKind, Write as JobWrite},
    store::StoreError,
};
use launchway_testkit::builders::{an_actor, an_entry};

use super::{NO_APPLICATION, expect_application, job, scope, web};
use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

#[tokio::test]
async fn what_is_running_is_cancelled_before_the_deletion() {
    let id = web().build().id;
    for actor in [an_actor().build(), a_member()] {
        let mut ports = MockedPorts::default();
        let at = ports.now();
        expect_application(&mut ports, id, Some(web().build()));
        let entry = an_entry()
            .of(Action::Delete, Resource::Application, id)
            .with_message("deleted the application `web` (production)")
            .at(at);
        ports.expect_commit(vec![
            JobWrite::RequestCancelAll { scope: scope(), subject: id.into(), at }.into(),
            DeploymentWrite::FollowJobs { application: Some(id), at }.into(),
            Write::Delete { scope: scope(), id, at }.into(),
            JobWrite::Enqueue(job(1, JobKind::Remove, id, String::new(), at)).into(),
            audited(2, entry),
        ]);

        let outcome = ports.services().applications.delete(&actor, id).await;

        assert!(outcome.is_ok(), "{outcome:?}");
    }
}

#[tokio::test]
async fn nobody_deletes_an_application_without_the_permission() {
    for actor in [a_viewer(), a_program_without("deploy:delete")] {
        let outcome = MockedPorts::default().services().applications.delete(&actor, web().build().id).await;
        assert_refused(outcome, lacks("deploy:delete"));
    }
}

#[tokio::test]
async fn application_of_another_organization_is_not_found() {
    let id = web().build().id;
    let mut ports = MockedPorts::default();
    expect_application(&mut ports, id, None);

    assert_refused(ports.services().applications.delete(&an_actor().build(), id).await, NO_APPLICATION);
}

#[tokio::test]
async fn delete_fails_after_concurrent_delete_or_without_database() {
    let id = web().build().id;
    for (error, refusal) in [(StoreError::Stale, NO_APPLICATION), (unavailable(), unavailable().into())] {
        let mut ports = MockedPorts::default();
        expect_application(&mut ports, id, Some(web().build()));
        ports.expect_failing_commit(error);

        assert_refused(ports.services().applications.delete(&an_actor().build(), id).await, refusal);
    }
}
