//! Deletion of an organization.

use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Resource},
    auth::Actor,
    clock::Timestamp,
    ids::OrganizationId,
    organizations::{Organization, Role, Write},
    store::{self, StoreError},
};
use launchway_testkit::{
    builders::{a_profile, an_actor, an_api_token, an_entry, an_organization, scope_of},
    ids::id_of,
};

use super::{NO_ORGANIZATION, actors_without, lacks, outsider, program};
use crate::{
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn analytics() -> Organization {
    an_organization().build()
}

fn engines() -> Organization {
    an_organization().named("Engines").build()
}

/// Returns an actor in Analytics with one role, who has another in Engines.
fn actor_with_roles(in_analytics: Role, in_engines: Role) -> Actor {
    let places = a_profile().member_of(&analytics(), in_analytics).member_of(&engines(), in_engines);
    an_actor().of(places.build()).acting_in(&analytics()).build()
}

/// The entry is the last in the audit log of the deleted organization.
fn delete_writes(organization: &Organization, at: Timestamp) -> Vec<store::Write> {
    let entry = an_entry()
        .in_audit_log_of(organization)
        .of(Action::Delete, Resource::Organization, organization.id)
        .with_message("deleted the organization")
        .at(at);
    vec![Write::Delete { scope: scope_of(organization), at }.into(), audited(1, entry)]
}

async fn delete(ports: MockedPorts, actor: &Actor, id: OrganizationId) -> Result<(), Error> {
    ports.services().organizations.delete(actor, id).await
}

#[tokio::test]
async fn an_admin_deletes_an_organization() {
    let mut ports = MockedPorts::default();
    ports.expect_commit(delete_writes(&analytics(), ports.now()));

    let outcome = delete(ports, &actor_with_roles(Role::Admin, Role::Viewer), analytics().id).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn nobody_deletes_their_only_organization() {
    let outcome = delete(MockedPorts::default(), &an_actor().build(), analytics().id).await;

    let reason = "this is your only organization: make another one first";
    assert_refused(outcome, Error::Conflict(reason.to_owned()));
}

#[tokio::test]
async fn admin_deletes_another_of_their_organizations() {
    let mut ports = MockedPorts::default();
    ports.expect_commit(delete_writes(&engines(), ports.now()));

    let outcome = delete(ports, &actor_with_roles(Role::Viewer, Role::Admin), engines().id).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_role_counts_in_its_own_organization_only() {
    for role in [Role::Member, Role::Viewer] {
        let actor = actor_with_roles(Role::Admin, role);

        let outcome = delete(MockedPorts::default(), &actor, engines().id).await;

        assert_refused(outcome, lacks("organization:delete"));
    }
}

#[tokio::test]
async fn a_program_deletes_its_organization_if_it_may() {
    let mut ports = MockedPorts::default();
    ports.expect_commit(delete_writes(&analytics(), ports.now()));

    let places = a_profile().member_of(&analytics(), Role::Admin).member_of(&engines(), Role::Viewer);
    let token = an_api_token().permitting(&["organization:delete"]).build();
    let program = an_actor().of(places.build()).with_api_token(token).build();

    let outcome = delete(ports, &program, analytics().id).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn nobody_deletes_an_organization_without_the_permission() {
    for actor in actors_without("organization:delete") {
        let outcome = delete(MockedPorts::default(), &actor, analytics().id).await;

        assert_refused(outcome, lacks("organization:delete"));
    }
}

#[tokio::test]
async fn an_organization_of_others_is_like_one_that_does_not_exist() {
    let missing = id_of("no organization").into();
    for id in [engines().id, missing] {
        for actor in [an_actor().build(), outsider(), program(&["organization:delete"])] {
            assert_refused(delete(MockedPorts::default(), &actor, id).await, NO_ORGANIZATION);
        }
    }
}

#[tokio::test]
async fn a_program_does_not_delete_another_organization_of_its_owner() {
    let places = a_profile().member_of(&analytics(), Role::Admin).member_of(&engines(), Role::Admin);
    let actor = an_actor().of(places.build()).with_api_token(an_api_token().build()).build();

    assert_refused(delete(MockedPorts::default(), &actor, engines().id).await, NO_ORGANIZATION);
}

#[tokio::test]
async fn an_organization_deleted_meanwhile_is_not_found() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(StoreError::Stale);

    assert_refused(
        delete(ports, &actor_with_roles(Role::Admin, Role::Viewer), analytics().id).await,
        NO_ORGANIZATION,
    );
}

#[tokio::test]
async fn no_organization_is_deleted_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.expect_failing_commit(unavailable());

    assert_refused(
        delete(ports, &actor_with_roles(Role::Admin, Role::Viewer), analytics().id).await,
        unavailable(),
    );
}
