//! Creation of an organization.

use launchway_application::{Error, organizations::NewOrganization};
use launchway_domain::{
    audit::{Action, Resource},
    auth::{Actor, Forbidden},
    clock::Timestamp,
    organizations::{Member, Membership, Organization, OrganizationDetail, Role, Write},
    store::{self, StoreError, Unique},
};
use launchway_testkit::{
    CountingIds,
    builders::{a_membership, an_actor, an_entry, an_organization, parsed, scope_of},
};

use super::{NO_ORGANIZATION, actors_without, ada, conflict, expect_detail, lacks, outsider, program};
use crate::{
    audit_log::audited,
    keys::{a_key, claimed},
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn new() -> NewOrganization {
    NewOrganization { name: parsed("Engines"), description: parsed("Steam and brass") }
}

/// Returns the created organization.
fn engines() -> Organization {
    let engines = an_organization().named("Engines").described("Steam and brass").build();
    Organization { id: CountingIds::nth(1).into(), ..engines }
}

/// Returns its first membership: that of its creator.
fn membership() -> Membership {
    let membership = a_membership().of(&ada()).in_organization(&engines()).with_role(Role::Admin).build();
    Membership { id: CountingIds::nth(2).into(), ..membership }
}

fn made() -> OrganizationDetail {
    let member = Member { membership: membership(), user: ada() };
    OrganizationDetail { organization: engines(), members: vec![member] }
}

/// The entry is the first in the audit log of the new organization.
fn create_writes(at: Timestamp) -> Vec<store::Write> {
    let entry = an_entry()
        .in_audit_log_of(&engines())
        .of(Action::Create, Resource::Organization, engines().id)
        .with_message("created the organization `Engines`")
        .with("name", "Engines")
        .at(at);
    vec![Write::Insert(engines()).into(), Write::InsertMembership(membership()).into(), audited(3, entry)]
}

async fn create(ports: MockedPorts, actor: &Actor) -> Result<OrganizationDetail, Error> {
    ports.services().organizations.create(actor, new(), None).await
}

#[tokio::test]
async fn who_creates_an_organization_is_its_admin_and_audited() {
    let mut ports = MockedPorts::default();
    ports.expect_commit(create_writes(ports.now()));
    expect_detail(&mut ports, scope_of(&engines()), Some(made()));

    let outcome = create(ports, &an_actor().build()).await;

    assert_eq!(outcome.unwrap(), made());
}

#[tokio::test]
async fn a_program_makes_an_organization_for_its_owner_if_it_may() {
    let mut ports = MockedPorts::default();
    ports.expect_commit(create_writes(ports.now()));
    expect_detail(&mut ports, scope_of(&engines()), Some(made()));

    let outcome = create(ports, &program(&["organization:create"])).await;

    assert_eq!(outcome.unwrap(), made());
}

#[tokio::test]
async fn nobody_makes_an_organization_without_the_permission() {
    for actor in actors_without("organization:create") {
        assert_refused(create(MockedPorts::default(), &actor).await, lacks("organization:create"));
    }
}

#[tokio::test]
async fn whoever_is_in_no_organization_makes_none() {
    assert_refused(create(MockedPorts::default(), &outsider()).await, Forbidden::NoOrganization);
}

#[tokio::test]
async fn a_name_that_is_in_use_conflicts() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(StoreError::Taken(Unique::OrganizationName));

    let outcome = create(ports, &an_actor().build()).await;

    assert_refused(outcome, conflict("an organization named `Engines` exists already"));
}

#[tokio::test]
async fn a_request_with_a_key_is_claimed_before_anything_is_made() {
    let mut ports = MockedPorts::default();
    let key = a_key("POST /organizations");
    let mut writes = vec![claimed(&key, CountingIds::nth(1), ports.now())];
    writes.extend(create_writes(ports.now()));
    ports.expect_commit(writes);
    expect_detail(&mut ports, scope_of(&engines()), Some(made()));

    let outcome = ports.services().organizations.create(&an_actor().build(), new(), Some(key)).await;

    assert_eq!(outcome.unwrap(), made());
}

#[tokio::test]
async fn a_request_that_was_carried_out_is_not_carried_out_again() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(StoreError::Taken(Unique::IdempotencyKey));

    let key = Some(a_key("POST /organizations"));
    let outcome = ports.services().organizations.create(&an_actor().build(), new(), key).await;

    assert_refused(outcome, Error::Repeated);
}

#[tokio::test]
async fn anything_else_that_is_taken_is_a_fault() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(StoreError::Taken(Unique::Membership));

    let outcome = create(ports, &an_actor().build()).await;

    assert_refused(outcome, StoreError::Taken(Unique::Membership));
}

#[tokio::test]
async fn no_organization_is_made_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(unavailable());

    assert_refused(create(ports, &an_actor().build()).await, unavailable());
}

#[tokio::test]
async fn an_organization_deleted_right_after_it_was_made_is_not_found() {
    let mut ports = MockedPorts::default();
    ports.expect_commit(create_writes(ports.now()));
    expect_detail(&mut ports, scope_of(&engines()), None);

    assert_refused(create(ports, &an_actor().build()).await, NO_ORGANIZATION);
}
