//! Reading logs.

use launchway_application::{
    Error,
    logs::{LogPage, LogSubject, OpenLog},
};
use launchway_domain::{
    applications::Application,
    deployments::{Deployment, DeploymentState},
    logs::{Level, LogFilter, LogLine, LogLineId},
    page::Page,
};
use launchway_testkit::builders::{a_deployment, a_log_line, a_page, an_application};
use mockall::predicate::eq;

use crate::{
    actors::{a_program_without, a_viewer, lacks},
    applications::{NO_APPLICATION, expect_application, scope, web},
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn line(number: i64) -> LogLine {
    a_log_line().numbered(number).build()
}

fn errors() -> LogFilter {
    LogFilter { level: Some(Level::Error), ..LogFilter::default() }
}

fn expect_deployment(ports: &mut MockedPorts, found: Option<Deployment>) {
    let id = a_deployment().build().id;
    ports.deployments.expect_get().with(eq(scope()), eq(id)).once().return_once(|_, _| Ok(found));
}

/// Expects that the deployments of the lines are read, each once.
fn expect_deployments(ports: &mut MockedPorts) {
    let deployment = a_deployment().build();
    let of_lines = vec![deployment.id];
    ports
        .deployments
        .expect_many()
        .withf(move |whose, ids| *whose == scope() && ids == of_lines)
        .once()
        .return_once(|_, _| Ok(vec![deployment]));
}

/// Opens the log of an existing application.
async fn opened(ports: MockedPorts, subject: LogSubject) -> (MockedPorts, OpenLog) {
    let mut opening = MockedPorts::default();
    expect_application(&mut opening, web().build().id, Some(web().build()));
    if matches!(subject, LogSubject::Deployment(_)) {
        expect_deployment(&mut opening, Some(a_deployment().build()));
    }
    let log = opening.services().logs.open(&a_viewer(), subject, errors()).await;
    (ports, log.unwrap_or_else(|error| panic!("{error}")))
}

fn of_application() -> LogSubject {
    LogSubject::Application(web().build().id)
}

fn of_deployment() -> LogSubject {
    LogSubject::Deployment(a_deployment().build().id)
}

#[tokio::test]
async fn the_log_of_an_application_is_opened_as_it_is_asked_for() {
    let (_, log) = opened(MockedPorts::default(), of_application()).await;
    assert_eq!(log.application, web().build());
}

#[tokio::test]
async fn what_the_organization_does_not_have_has_no_log() {
    let mut ports = MockedPorts::default();
    expect_application(&mut ports, web().build().id, None);
    let outcome = ports.services().logs.open(&a_viewer(), of_application(), LogFilter::default()).await;
    assert_refused(outcome, NO_APPLICATION);

    let mut ports = MockedPorts::default();
    expect_deployment(&mut ports, None);
    let outcome = ports.services().logs.open(&a_viewer(), of_deployment(), LogFilter::default()).await;
    assert_refused(outcome, Error::NotFound("the deployment"));
}

#[tokio::test]
async fn nobody_opens_a_log_without_the_permission() {
    let actor = a_program_without("deploy:read");
    for subject in [of_application(), of_deployment()] {
        let outcome = MockedPorts::default().services().logs.open(&actor, subject, errors()).await;
        assert_refused(outcome, lacks("deploy:read"));
    }
}

#[tokio::test]
async fn a_page_comes_with_the_deployments_of_its_lines() {
    for (subject, filter) in [
        (of_application(), errors()),
        (of_deployment(), LogFilter { deployment: Some(a_deployment().build().id), ..errors() }),
    ] {
        let (mut ports, log) = opened(MockedPorts::default(), subject).await;
        let lines = || Page { items: vec![line(2), line(1)], request: a_page(1, 10), total: 2 };
        ports
            .logs
            .expect_page()
            .with(eq(scope()), eq(web().build().id), eq(filter), eq(a_page(1, 10)))
            .once()
            .return_once(move |_, _, _, _| Ok(Some(lines())));
        expect_deployments(&mut ports);

        let page = ports.services().logs.page(&a_viewer(), log, a_page(1, 10)).await;

        let deployments = vec![a_deployment().build()];
        assert_eq!(page.unwrap(), LogPage { application: web().build(), deployments, lines: lines() });
    }
}

#[tokio::test]
async fn lines_after_a_line_are_oldest_first_with_their_own_total() {
    for (after, number) in [(None, 0), (Some(line(41).id()), 41)] {
        let (mut ports, log) = opened(MockedPorts::default(), of_application()).await;
        ports
            .logs
            .expect_after()
            .with(eq(scope()), eq(web().build().id), eq(errors()), eq(number), eq(10))
            .once()
            .return_once(|_, _, _, _, _| Ok(Some(vec![line(42), line(43)])));
        expect_deployments(&mut ports);

        let page = ports.services().logs.after(&a_viewer(), log, after, a_page(1, 10)).await.unwrap();

        assert_eq!(page.lines, Page { items: vec![line(42), line(43)], request: a_page(1, 10), total: 2 });
    }
}

#[tokio::test]
async fn a_line_of_another_application_is_no_place_to_go_on_from() {
    let other: Application = an_application().named("api").build();
    let foreign: LogLineId = a_log_line().of(&a_deployment().of(&other).build()).build().id();
    let (ports, log) = opened(MockedPorts::default(), of_application()).await;

    let outcome = ports.services().logs.lines_after(&a_viewer(), &log, Some(foreign), 10).await;

    let reason = "after must be the id of a line of this application's log";
    assert_refused(outcome, Error::Invalid(reason.to_owned()));
}

#[tokio::test]
async fn a_log_that_is_gone_meanwhile_is_not_found() {
    let (mut ports, log) = opened(MockedPorts::default(), of_application()).await;
    ports.logs.expect_page().once().returning(|_, _, _, _| Ok(None));
    ports.logs.expect_after().once().returning(|_, _, _, _, _| Ok(None));
    let logs = ports.services().logs;

    assert_refused(logs.lines_after(&a_viewer(), &log, None, 10).await, NO_APPLICATION);
    assert_refused(logs.page(&a_viewer(), log, a_page(1, 10)).await, NO_APPLICATION);
}

#[tokio::test]
async fn a_log_that_was_opened_is_read_with_the_permission_only() {
    let (ports, log) = opened(MockedPorts::default(), of_deployment()).await;
    let (logs, actor) = (ports.services().logs, a_program_without("deploy:read"));

    assert_refused(logs.lines_after(&actor, &log, None, 10).await, lacks("deploy:read"));
    assert_refused(logs.is_complete(&actor, &log).await, lacks("deploy:read"));
    assert_refused(logs.page(&actor, log, a_page(1, 10)).await, lacks("deploy:read"));
}

#[tokio::test]
async fn the_log_of_an_application_never_ends() {
    let (ports, log) = opened(MockedPorts::default(), of_application()).await;
    assert!(!ports.services().logs.is_complete(&a_viewer(), &log).await.unwrap());
}

#[tokio::test]
async fn the_log_of_a_deployment_ends_when_it_is_not_live() {
    let id = a_deployment().build().id;
    for state in DeploymentState::ALL {
        for live in [None, Some(id)] {
            let (mut ports, log) = opened(MockedPorts::default(), of_deployment()).await;
            expect_deployment(&mut ports, Some(a_deployment().in_state(state).build()));
            let application = Application { live, ..web().build() };
            expect_application(&mut ports, application.id, Some(application.clone()));

            let is_complete = ports.services().logs.is_complete(&a_viewer(), &log).await.unwrap();

            assert_eq!(is_complete, state.is_final() && live.is_none(), "{state:?}, live: {live:?}");
        }
    }
}

#[tokio::test]
async fn whether_the_log_of_what_is_gone_has_ended_is_not_found() {
    let (mut ports, log) = opened(MockedPorts::default(), of_deployment()).await;
    expect_deployment(&mut ports, None);
    assert_refused(ports.services().logs.is_complete(&a_viewer(), &log).await, NO_APPLICATION);
}

#[tokio::test]
async fn no_log_is_read_without_a_database() {
    let (mut ports, log) = opened(MockedPorts::default(), of_application()).await;
    ports.logs.expect_after().once().returning(|_, _, _, _, _| Err(unavailable()));

    assert_refused(ports.services().logs.lines_after(&a_viewer(), &log, None, 10).await, unavailable());
}
