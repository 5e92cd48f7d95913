//! The domains of an application.

use launchway_application::{Error, applications::ApplicationPolicy};
use launchway_domain::{
    applications::{Hostname, Write},
    audit::{Action, Resource},
    auth::Actor,
    clock::Timestamp,
    deployments::StepError,
    ids::ApplicationId,
    routes::Target,
    store::{self, Rule, StoreError, Unique},
};
use launchway_testkit::builders::{an_actor, an_entry, parsed};
use mockall::predicate::eq;

use super::{NO_APPLICATION, Seen, detail, expect_application, expect_detail, scope, shown, web};
use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

const DOMAIN: &str = "www.example.com";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operation {
    Add,
    Remove,
}

use Operation::{Add, Remove};

fn id() -> ApplicationId {
    web().build().id
}

fn domain() -> Hostname {
    parsed(DOMAIN)
}

async fn operate(ports: MockedPorts, operation: Operation, actor: &Actor) -> Result<Seen, Error> {
    let applications = ports.services().applications;
    match operation {
        Add => applications.add_domain(actor, id(), domain()).await,
        Remove => applications.remove_domain(actor, id(), domain()).await,
    }
}

fn writes(operation: Operation, at: Timestamp) -> Vec<store::Write> {
    let (write, what) = match operation {
        Add => (
            Write::AddDomain { scope: scope(), id: id(), domain: domain(), at },
            "added the domain www.example.com to",
        ),
        Remove => {
            let write = Write::RemoveDomain { scope: scope(), id: id(), domain: domain(), at };
            (write, "removed the domain www.example.com from")
        }
    };
    let message = format!("{what} the application `web` (production)");
    let entry = an_entry().of(Action::Update, Resource::Application, id()).with_message(&message);
    vec![write.into(), audited(1, entry.with("domain", DOMAIN).at(at))]
}

#[tokio::test]
async fn a_name_is_given_and_taken_and_traffic_follows_at_once() {
    for operation in [Add, Remove] {
        for actor in [an_actor().build(), a_member()] {
            let mut ports = MockedPorts::with_a_box();
            expect_application(&mut ports, id(), Some(web().build()));
            ports.expect_commit(writes(operation, ports.now()));
            // The route is built from the stored record.
            expect_application(&mut ports, id(), Some(web().also_at(DOMAIN).build()));
            ports.router.expect_is_there().return_const(true);
            ports.router.expect_set().once().returning(|route| {
                assert_eq!(route.hosts, [DOMAIN, "web.analytics.localhost"]);
                assert_eq!(route.target, Target::Absent);
                Ok(())
            });
            expect_detail(&mut ports, id(), Some(detail(web())));

            assert_eq!(operate(ports, operation, &actor).await.unwrap(), (detail(web()), shown()));
        }
    }
}

#[tokio::test]
async fn an_unreachable_router_does_not_undo_what_is_durable() {
    for operation in [Add, Remove] {
        let mut ports = MockedPorts::with_a_box();
        expect_application(&mut ports, id(), Some(web().build()));
        ports.expect_any_commit();
        expect_application(&mut ports, id(), Some(web().build()));
        ports.router.expect_is_there().return_const(true);
        ports.router.expect_set().once().returning(|_| Err(StepError::Retryable("it is away".to_owned())));
        expect_detail(&mut ports, id(), Some(detail(web())));

        assert!(operate(ports, operation, &a_member()).await.is_ok());
    }
}

#[tokio::test]
async fn a_refused_name_is_explained_in_words() {
    let has_it = || web().also_at(DOMAIN);
    for (operation, application, error, expected) in [
        (
            Add,
            web(),
            StoreError::Taken(Unique::Domain),
            Error::Conflict("the domain `www.example.com` is in use by another application".to_owned()),
        ),
        (
            Add,
            has_it(),
            StoreError::Taken(Unique::Domain),
            Error::Conflict("the application has the domain `www.example.com` already".to_owned()),
        ),
        (
            Add,
            web(),
            StoreError::Refused(Rule::MostDomains),
            Error::Conflict("an application has at most 100 further domains".to_owned()),
        ),
        (Add, web(), StoreError::Stale, NO_APPLICATION),
        (Remove, web(), StoreError::Stale, Error::NotFound("the domain")),
        (Add, web(), unavailable(), unavailable().into()),
        (Remove, web(), unavailable(), unavailable().into()),
    ] {
        let mut ports = MockedPorts::with_a_box();
        expect_application(&mut ports, id(), Some(application.build()));
        ports.expect_failing_commit(error);

        assert_refused(operate(ports, operation, &a_member()).await, expected);
    }
}

#[tokio::test]
async fn the_name_of_the_installation_is_not_given_away() {
    let mut ports = MockedPorts::with_a_box();
    ports.policy = ApplicationPolicy { public_host: Some(DOMAIN.to_owned()), ..ApplicationPolicy::default() };

    let refused = operate(ports, Add, &a_member()).await;

    let reason = "domain must not be the host name of this installation";
    assert_refused(refused, Error::Invalid(reason.to_owned()));
}

#[tokio::test]
async fn an_application_that_is_none_of_the_actors_has_no_names() {
    for operation in [Add, Remove] {
        let mut ports = MockedPorts::with_a_box();
        expect_application(&mut ports, id(), None);
        assert_refused(operate(ports, operation, &a_member()).await, NO_APPLICATION);
    }
}

#[tokio::test]
async fn names_are_for_who_may_change_the_application() {
    for operation in [Add, Remove] {
        for actor in [a_viewer(), a_program_without("deploy:update")] {
            let refused = operate(MockedPorts::with_a_box(), operation, &actor).await;
            assert_refused(refused, lacks("deploy:update"));
        }
    }
}

#[tokio::test]
async fn whoever_asks_learns_whether_a_name_is_served() {
    for is_served in [true, false] {
        let mut ports = MockedPorts::with_a_box();
        ports.applications.expect_is_named().with(eq(DOMAIN)).once().returning(move |_| Ok(is_served));
        assert_eq!(ports.services().applications.is_served(DOMAIN).await.unwrap(), is_served);
    }
}
