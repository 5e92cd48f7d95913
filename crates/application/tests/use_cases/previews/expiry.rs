//! Removal of expired previews.

use launchway_domain::{
    applications::Write as ApplicationWrite,
    audit::{Action, Resource},
    deployments::Write as DeploymentWrite,
    jobs::{JobKind, Write as JobWrite},
    previews::{ExpiredPreview, Write},
    store::StoreError,
};
use launchway_testkit::builders::an_entry;

use super::{active, waiting};
use crate::{
    applications::{expect_application, job, scope, web},
    audit_log::audited,
    ports::{MockedPorts, unavailable},
};

#[tokio::test]
async fn expired_previews_are_deleted_and_records_removed() {
    let mut ports = MockedPorts::default();
    let (at, running) = (ports.now(), web().named("pr-7-web").build());
    let (first, second) = (active(&running, at), waiting(at));
    let found: Vec<_> = [first.clone(), second.clone()]
        .into_iter()
        .map(|preview| ExpiredPreview { organization: scope().id(), preview })
        .collect();
    ports.previews.expect_expired().once().return_once(|_| Ok(found));
    let id = running.id;
    expect_application(&mut ports, id, Some(running));
    let remove = |number| Write::Remove { parent: web().build().id, number, seen: at };
    let entry = an_entry()
        .by_launchway()
        .of(Action::Delete, Resource::Application, id)
        .with_message("deleted the application `pr-7-web` (production)")
        .with("preview_of", web().build().id)
        .with("request", 7)
        .with("reason", "its time to live ended, or its application was deleted");
    ports.expect_commit(vec![
        remove(first.number).into(),
        JobWrite::RequestCancelAll { scope: scope(), subject: id.into(), at }.into(),
        DeploymentWrite::FollowJobs { application: Some(id), at }.into(),
        ApplicationWrite::Delete { scope: scope(), id, at }.into(),
        JobWrite::Enqueue(job(1, JobKind::Remove, id, String::new(), at)).into(),
        audited(2, entry.at(at)),
    ]);
    ports.expect_commit(vec![remove(second.number).into()]);

    assert_eq!(ports.services().previews.remove_expired().await.unwrap(), 2);
}

#[tokio::test]
async fn a_preview_that_was_extended_meanwhile_stays() {
    let mut ports = MockedPorts::default();
    let at = ports.now();
    let found = vec![ExpiredPreview { organization: scope().id(), preview: waiting(at) }];
    ports.previews.expect_expired().once().return_once(|_| Ok(found));
    ports.expect_failing_commit(StoreError::Stale);
    assert_eq!(ports.services().previews.remove_expired().await.unwrap(), 0);
}

#[tokio::test]
async fn without_a_database_nothing_is_removed() {
    let mut ports = MockedPorts::default();
    ports.previews.expect_expired().once().return_once(|_| Err(unavailable()));
    assert!(ports.services().previews.remove_expired().await.is_err());
}
