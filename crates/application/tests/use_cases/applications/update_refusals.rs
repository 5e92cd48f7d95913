//! Rejected updates of an application.

use launchway_application::{Error, applications::ApplicationChange};
use launchway_domain::{
    applications::BuildPack,
    auth::Actor,
    store::{StoreError, Unique},
};
use launchway_testkit::builders::{an_actor, parsed};

use super::{NO_APPLICATION, Seen, expect_application, update::id, web};
use crate::{
    actors::{a_program_without, a_viewer, lacks},
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

async fn update(ports: MockedPorts, actor: &Actor, change: ApplicationChange) -> Result<Seen, Error> {
    ports.services().applications.update(actor, id(), change, None, None).await
}

fn renamed() -> ApplicationChange {
    ApplicationChange {
        name: Some(parsed("shop")),
        domain: Some(parsed("shop.example.com")),
        ..Default::default()
    }
}

fn with_application() -> MockedPorts {
    let mut ports = MockedPorts::with_a_box();
    expect_application(&mut ports, id(), Some(web().build()));
    ports
}

#[tokio::test]
async fn nobody_changes_an_application_without_the_permission() {
    for actor in [a_viewer(), a_program_without("deploy:update")] {
        assert_refused(update(MockedPorts::default(), &actor, renamed()).await, lacks("deploy:update"));
    }
}

#[tokio::test]
async fn application_of_another_organization_is_not_found() {
    let mut ports = MockedPorts::default();
    expect_application(&mut ports, id(), None);

    assert_refused(update(ports, &an_actor().build(), renamed()).await, NO_APPLICATION);
}

#[tokio::test]
async fn a_build_pack_that_does_not_fit_the_repository_is_refused() {
    let change = ApplicationChange { build_pack: Some(BuildPack::Image), ..Default::default() };

    let outcome = update(with_application(), &an_actor().build(), change).await;

    let reason =
        "repository must be an image reference for build pack `image`, and a git repository for others";
    assert_refused(outcome, Error::Invalid(reason.to_owned()));
}

#[tokio::test]
async fn rejects_an_invalid_repository_without_its_password() {
    let address = "https://ada:ghp_token@/";
    let change = ApplicationChange { repository: Some(address.to_owned()), ..Default::default() };

    let outcome = update(with_application(), &an_actor().build(), change).await;

    let refusal = format!("{:?}", outcome.err());
    assert!(refusal.contains("Invalid(\"repository must be") && !refusal.contains("ghp_token"), "{refusal}");
}

#[tokio::test]
async fn a_repository_that_the_operator_does_not_allow_is_refused() {
    let change = ApplicationChange { repository: Some("/srv/git/web.git".to_owned()), ..Default::default() };

    let outcome = update(with_application(), &an_actor().build(), change).await;

    assert!(matches!(outcome, Err(Error::Invalid(reason)) if reason.starts_with("repository ")));
}

#[tokio::test]
async fn what_is_taken_and_who_is_gone_is_named() {
    for (error, refusal) in [
        (
            StoreError::Taken(Unique::ApplicationName),
            Error::Conflict(
                "an application `shop` exists already in the environment `production`".to_owned(),
            ),
        ),
        (
            StoreError::Taken(Unique::Domain),
            Error::Conflict("the domain `shop.example.com` is in use by another application".to_owned()),
        ),
        (unavailable(), unavailable().into()),
    ] {
        let mut ports = with_application();
        ports.expect_failing_commit(error);

        assert_refused(update(ports, &an_actor().build(), renamed()).await, refusal);
    }
}

fn changed_meanwhile() -> Error {
    Error::Conflict("the application was changed in the meantime: read it again".to_owned())
}

#[tokio::test]
async fn an_application_that_is_deleted_meanwhile_is_not_found() {
    let mut ports = with_application();
    ports.expect_failing_commit(StoreError::Stale);
    expect_application(&mut ports, id(), None);

    assert_refused(update(ports, &an_actor().build(), renamed()).await, NO_APPLICATION);
}

#[tokio::test]
async fn an_application_that_others_never_leave_alone_is_given_up() {
    let mut ports = MockedPorts::with_a_box();
    for _ in 0..8 {
        expect_application(&mut ports, id(), Some(web().build()));
        ports.expect_failing_commit(StoreError::Stale);
    }

    assert_refused(update(ports, &an_actor().build(), renamed()).await, changed_meanwhile());
}

#[tokio::test]
async fn who_knows_an_older_version_changes_nothing() {
    let known = web().build().updated_at - chrono::TimeDelta::microseconds(1);
    let services = with_application().services();

    let outcome = services.applications.update(&an_actor().build(), id(), renamed(), None, Some(known)).await;

    assert_refused(outcome, changed_meanwhile());
}
