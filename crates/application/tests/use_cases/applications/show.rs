//! Reading applications.

use launchway_application::applications::ShownVariables;
use launchway_domain::{
    applications::{ApplicationFilter, ApplicationState},
    page::Page,
};
use launchway_testkit::builders::{a_page, an_actor, parsed};
use mockall::predicate::eq;

use super::{NO_APPLICATION, detail, expect_detail, scope, shown, web};
use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn filter() -> ApplicationFilter {
    ApplicationFilter {
        search: Some("we".to_owned()),
        environment: Some(parsed("production")),
        state: Some(ApplicationState::Running),
    }
}

fn expect_page(ports: &mut MockedPorts) {
    let page = Page { items: vec![web().summary()], request: a_page(2, 10), total: 11 };
    ports
        .applications
        .expect_page()
        .with(eq(scope()), eq(filter()), eq(a_page(2, 10)))
        .once()
        .return_once(|_, _, _| Ok(page));
}

#[tokio::test]
async fn a_page_shows_variables_to_who_may_change_applications() {
    for actor in [an_actor().build(), a_member()] {
        let mut ports = MockedPorts::with_a_box();
        expect_page(&mut ports);

        let page = ports.services().applications.list(&actor, &filter(), a_page(2, 10)).await.unwrap();

        assert_eq!(page, Page { items: vec![(web().summary(), shown())], request: a_page(2, 10), total: 11 });
    }
}

#[tokio::test]
async fn a_page_shows_no_variables_to_others_and_opens_none() {
    for actor in [a_viewer(), a_program_without("deploy:update")] {
        let mut ports = MockedPorts::default();
        expect_page(&mut ports);

        let page = ports.services().applications.list(&actor, &filter(), a_page(2, 10)).await.unwrap();

        assert_eq!(page.items, [(web().summary(), ShownVariables::default())]);
    }
}

#[tokio::test]
async fn shows_variables_only_with_the_update_permission() {
    let id = web().build().id;
    for (actor, variables) in [(a_member(), shown()), (a_viewer(), ShownVariables::default())] {
        let mut ports = MockedPorts::with_a_box();
        expect_detail(&mut ports, id, Some(detail(web())));

        let found = ports.services().applications.detail(&actor, id).await.unwrap();

        assert_eq!(found, (detail(web()), variables));
    }
}

#[tokio::test]
async fn application_of_another_organization_is_not_found() {
    let id = web().build().id;
    let mut ports = MockedPorts::default();
    expect_detail(&mut ports, id, None);

    assert_refused(ports.services().applications.detail(&an_actor().build(), id).await, NO_APPLICATION);
}

#[tokio::test]
async fn rejects_variables_sealed_for_another_application() {
    let other = super::secrets(web().named("api").build().id, "{}", "{}");
    let (id, moved) = (web().build().id, web().with_secrets(other));
    let mut ports = MockedPorts::with_a_box();
    expect_detail(&mut ports, id, Some(detail(moved)));

    let outcome = ports.services().applications.detail(&an_actor().build(), id).await;

    assert_refused(outcome, launchway_domain::secret::SecretBoxError::CannotOpen);
}

#[tokio::test]
async fn nobody_sees_applications_without_the_permission() {
    let services = MockedPorts::default().services();
    let actor = a_program_without("deploy:read");

    let page = services.applications.list(&actor, &filter(), a_page(1, 10)).await;
    let one = services.applications.detail(&actor, web().build().id).await;

    assert_refused(page, lacks("deploy:read"));
    assert_refused(one, lacks("deploy:read"));
}

#[tokio::test]
async fn nothing_is_shown_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.applications.expect_page().once().returning(|_, _, _| Err(unavailable()));

    let outcome = ports.services().applications.list(&an_actor().build(), &filter(), a_page(1, 10)).await;

    assert_refused(outcome, unavailable());
}
