//! Pages of the audit log of an organization.

use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Entry, Filter, Resource},
    auth::{Actor, Forbidden},
    organizations::{Role, Scope},
    page::{Page, PageRequest},
};
use launchway_testkit::{
    builders::{a_page, a_profile, an_actor, an_api_token, an_entry, an_organization, parsed, scope_of},
    clock::moment,
};
use mockall::predicate::eq;

use crate::{
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn second_page() -> PageRequest {
    a_page(2, 1)
}

/// Returns a filter with every field set.
fn filter() -> Filter {
    Filter {
        search: Some("grace".to_owned()),
        resource: Some(Resource::User),
        action: Some(Action::Create),
        actor: Some("ada".to_owned()),
        from: Some(moment("2026-01-01T00:00:00Z")),
        to: Some(moment("2026-01-31T23:59:59Z")),
    }
}

fn shown() -> Page<Entry> {
    Page { items: vec![an_entry().build()], request: second_page(), total: 2 }
}

/// Returns ports with one entry in the audit log of `scope`, for exactly that page.
fn ports_that_show(scope: Scope) -> MockedPorts {
    let mut ports = MockedPorts::default();
    ports
        .audit
        .expect_page()
        .with(eq(scope), eq(filter()), eq(second_page()))
        .once()
        .returning(|_, _, _| Ok(shown()));
    ports
}

async fn list(ports: MockedPorts, actor: &Actor) -> Result<Page<Entry>, Error> {
    ports.services().audit.list(actor, &filter(), second_page()).await
}

#[tokio::test]
async fn admins_and_members_see_the_page_that_they_ask_for() {
    for role in [Role::Admin, Role::Member] {
        let ports = ports_that_show(scope_of(&an_organization().build()));
        let actor = an_actor().with_role(role).build();

        assert_eq!(list(ports, &actor).await.unwrap(), shown());
    }
}

#[tokio::test]
async fn lists_the_audit_log_of_the_current_organization() {
    let [oldest, other] = ["Oldest", "Other"].map(|name| an_organization().named(name).build());
    let profile = a_profile().member_of(&oldest, Role::Admin).member_of(&other, Role::Member).build();
    let actor = an_actor().of(profile).acting_in(&other).build();
    let ports = ports_that_show(scope_of(&other));

    assert_eq!(list(ports, &actor).await.unwrap(), shown());
}

#[tokio::test]
async fn a_program_sees_the_audit_log_if_it_may_read_it() {
    let token = an_api_token().permitting(&["audit:read"]).build();
    let ports = ports_that_show(scope_of(&an_organization().build()));

    let actor = an_actor().with_api_token(token).build();

    assert_eq!(list(ports, &actor).await.unwrap(), shown());
}

#[tokio::test]
async fn whoever_may_not_read_the_audit_log_sees_nothing_of_it() {
    let token = an_api_token().permitting(&["audit:update", "organization:read"]).build();
    for actor in [an_actor().with_role(Role::Viewer), an_actor().with_api_token(token)] {
        let outcome = list(MockedPorts::default(), &actor.build()).await;

        assert_refused(outcome, Forbidden::Lacks(parsed("audit:read")));
    }
}

#[tokio::test]
async fn whoever_is_in_no_organization_has_no_audit_log_to_see() {
    let outsider = an_actor().of(a_profile().build()).build();

    assert_refused(list(MockedPorts::default(), &outsider).await, Forbidden::NoOrganization);
}

#[tokio::test]
async fn nothing_is_shown_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.audit.expect_page().once().returning(|_, _, _| Err(unavailable()));

    assert_refused(list(ports, &an_actor().build()).await, unavailable());
}
