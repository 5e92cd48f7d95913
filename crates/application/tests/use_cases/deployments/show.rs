//! Reading deployments.

use launchway_domain::page::Page;
use launchway_testkit::builders::{a_deployment, a_page};
use mockall::predicate::eq;

use super::{NO_DEPLOYMENT, detail, expect_detail};
use crate::{
    actors::{a_program_without, a_viewer, lacks},
    applications::{NO_APPLICATION, expect_application, scope, web},
    ports::MockedPorts,
    refusals::assert_refused,
};

#[tokio::test]
async fn whoever_may_look_sees_a_deployment() {
    let id = a_deployment().build().id;
    let mut ports = MockedPorts::default();
    expect_detail(&mut ports, id, Some(detail()));

    assert_eq!(ports.services().deployments.detail(&a_viewer(), id).await.unwrap(), detail());
}

#[tokio::test]
async fn whoever_may_look_sees_the_deployments_of_an_application() {
    let id = web().build().id;
    let page = || Page { items: vec![a_deployment().build()], request: a_page(1, 10), total: 1 };
    let mut ports = MockedPorts::default();
    expect_application(&mut ports, id, Some(web().build()));
    ports
        .deployments
        .expect_page()
        .with(eq(scope()), eq(id), eq(a_page(1, 10)))
        .once()
        .return_once(move |_, _, _| Ok(page()));

    assert_eq!(ports.services().deployments.list(&a_viewer(), id, a_page(1, 10)).await.unwrap(), page());
}

#[tokio::test]
async fn what_the_organization_does_not_have_is_not_found() {
    let id = a_deployment().build().id;
    let mut ports = MockedPorts::default();
    expect_detail(&mut ports, id, None);
    assert_refused(ports.services().deployments.detail(&a_viewer(), id).await, NO_DEPLOYMENT);

    let id = web().build().id;
    let mut ports = MockedPorts::default();
    expect_application(&mut ports, id, None);
    assert_refused(ports.services().deployments.list(&a_viewer(), id, a_page(1, 10)).await, NO_APPLICATION);
}

#[tokio::test]
async fn nobody_sees_deployments_without_the_permission() {
    let (actor, deployments) =
        (a_program_without("deploy:read"), MockedPorts::default().services().deployments);

    let one = deployments.detail(&actor, a_deployment().build().id).await;
    let page = deployments.list(&actor, web().build().id, a_page(1, 10)).await;

    assert_refused(one, lacks("deploy:read"));
    assert_refused(page, lacks("deploy:read"));
}
