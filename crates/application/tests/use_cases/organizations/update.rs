//! Updating an organization.

use launchway_application::{Error, organizations::OrganizationChange};
use launchway_domain::{
    audit::{Action, Resource},
    auth::{Actor, Forbidden},
    clock::Timestamp,
    organizations::{Description, OrganizationDetail, OrganizationName, Role, Write},
    store::{self, StoreError, Unique},
};
use launchway_testkit::builders::{
    EntryBuilder, a_profile, an_actor, an_entry, an_organization, parsed, scope_of,
};

use super::{
    NO_ORGANIZATION, actors_without, conflict, detail, expect_detail, lacks, outsider, program, scope,
};
use crate::{
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn name() -> Option<OrganizationName> {
    Some(parsed("Engines"))
}

fn description() -> Option<Description> {
    Some(parsed("Steam and brass"))
}

fn change() -> OrganizationChange {
    OrganizationChange { name: name(), description: description() }
}

/// Returns the audit entry of an update of [`an_organization`].
fn changing() -> EntryBuilder {
    let id = an_organization().build().id;
    an_entry().of(Action::Update, Resource::Organization, id).with_message("changed the organization")
}

fn update_writes(change: OrganizationChange, entry: EntryBuilder, at: Timestamp) -> Vec<store::Write> {
    let OrganizationChange { name, description } = change;
    vec![Write::Update { scope: scope(), name, description, at }.into(), audited(1, entry.at(at))]
}

fn changing_both() -> EntryBuilder {
    changing().with("name", "Engines").with("description", "Steam and brass")
}

async fn update(
    ports: MockedPorts,
    actor: &Actor,
    change: OrganizationChange,
) -> Result<OrganizationDetail, Error> {
    ports.services().organizations.update(actor, change).await
}

#[tokio::test]
async fn an_organization_changes_in_what_is_named_and_is_read_back() {
    for (name, description, entry) in [
        (name(), description(), changing_both()),
        (name(), None, changing().with("name", "Engines")),
        (None, description(), changing().with("description", "Steam and brass")),
        (None, Some(Description::default()), changing().with("description", "")),
    ] {
        let expected = OrganizationChange { name: name.clone(), description: description.clone() };
        let mut ports = MockedPorts::default();
        ports.expect_commit(update_writes(expected, entry, ports.now()));
        expect_detail(&mut ports, scope(), Some(detail()));

        let outcome = update(ports, &an_actor().build(), OrganizationChange { name, description }).await;

        assert_eq!(outcome.unwrap(), detail());
    }
}

#[tokio::test]
async fn a_change_of_nothing_writes_nothing() {
    let mut ports = MockedPorts::default();
    expect_detail(&mut ports, scope(), Some(detail()));

    let outcome = update(ports, &an_actor().build(), OrganizationChange::default()).await;

    assert_eq!(outcome.unwrap(), detail());
}

#[tokio::test]
async fn the_organization_is_the_one_that_the_caller_acts_in() {
    let other = an_organization().named("Other").build();
    let places = a_profile().member_of(&an_organization().build(), Role::Viewer);
    let actor = an_actor().of(places.member_of(&other, Role::Admin).build()).acting_in(&other).build();
    let mut ports = MockedPorts::default();
    let entry = changing_both().in_audit_log_of(&other).of(Action::Update, Resource::Organization, other.id);
    let (scope, at) = (scope_of(&other), ports.now());
    ports.expect_commit(vec![
        Write::Update { scope, name: name(), description: description(), at }.into(),
        audited(1, entry),
    ]);
    expect_detail(&mut ports, scope, Some(detail()));

    assert_eq!(update(ports, &actor, change()).await.unwrap(), detail());
}

#[tokio::test]
async fn a_program_changes_an_organization_if_it_may() {
    let mut ports = MockedPorts::default();
    ports.expect_commit(update_writes(change(), changing_both(), ports.now()));
    expect_detail(&mut ports, scope(), Some(detail()));

    let outcome = update(ports, &program(&["organization:update"]), change()).await;

    assert_eq!(outcome.unwrap(), detail());
}

#[tokio::test]
async fn nobody_changes_an_organization_without_the_permission() {
    for change in [change, OrganizationChange::default] {
        for actor in actors_without("organization:update") {
            let outcome = update(MockedPorts::default(), &actor, change()).await;

            assert_refused(outcome, lacks("organization:update"));
        }
    }
}

#[tokio::test]
async fn whoever_is_in_no_organization_has_none_to_change() {
    let outcome = update(MockedPorts::default(), &outsider(), change()).await;

    assert_refused(outcome, Forbidden::NoOrganization);
}

#[tokio::test]
async fn a_name_that_is_in_use_conflicts() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(StoreError::Taken(Unique::OrganizationName));

    let outcome = update(ports, &an_actor().build(), change()).await;

    assert_refused(outcome, conflict("an organization named `Engines` exists already"));
}

#[tokio::test]
async fn name_conflict_of_a_description_change_is_a_fault() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(StoreError::Taken(Unique::OrganizationName));

    let outcome = update(ports, &an_actor().build(), OrganizationChange { name: None, ..change() }).await;

    assert_refused(outcome, StoreError::Taken(Unique::OrganizationName));
}

#[tokio::test]
async fn an_organization_deleted_meanwhile_is_not_found() {
    let mut stale = MockedPorts::default();
    stale.expect_failing_commit(StoreError::Stale);
    assert_refused(update(stale, &an_actor().build(), change()).await, NO_ORGANIZATION);

    let mut gone = MockedPorts::default();
    gone.expect_any_commit();
    expect_detail(&mut gone, scope(), None);
    assert_refused(update(gone, &an_actor().build(), change()).await, NO_ORGANIZATION);
}

#[tokio::test]
async fn no_organization_is_changed_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(unavailable());

    assert_refused(update(ports, &an_actor().build(), change()).await, unavailable());
}
