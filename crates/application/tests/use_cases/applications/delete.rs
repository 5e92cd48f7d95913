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
use crate::previews::expect_previews;
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
        expect_previews(&mut ports, id, vec![]);
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
        expect_previews(&mut ports, id, vec![]);
        ports.expect_failing_commit(error);

        assert_refused(ports.services().applications.delete(&an_actor().build(), id).await, refusal);
    }
}

#[tokio::test]
async fn previews_are_deleted_with_their_application() {
    let (id, preview) = (web().build().id, web().named("pr-7-web").build());
    let mut ports = MockedPorts::default();
    let at = ports.now();
    // One was deleted in the meantime, and is not read again.
    for found in [vec![preview.clone(), web().named("pr-8-web").build()], vec![preview.clone()]] {
        expect_application(&mut ports, id, Some(web().build()));
        expect_previews(&mut ports, id, found);
    }
    ports.expect_failing_commit(StoreError::Stale);
    ports.expect_commit_seen_by(move |writes| {
        for id in [id, preview.id] {
            assert!(writes.contains(&Write::Delete { scope: scope(), id, at }.into()), "{writes:?}");
        }
        // The entries come last.
        let is_entry = |write: &&launchway_domain::store::Write| {
            matches!(write, launchway_domain::store::Write::Audit(_))
        };
        assert_eq!((writes.len(), writes[8..].iter().filter(is_entry).count()), (10, 2));
    });

    let outcome = ports.services().applications.delete(&an_actor().build(), id).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}
