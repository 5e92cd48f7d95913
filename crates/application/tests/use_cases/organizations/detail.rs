//! Reading an organization.

use launchway_application::Error;
use launchway_domain::{
    auth::{Actor, Forbidden},
    ids::OrganizationId,
    organizations::{Organization, OrganizationDetail, Role},
};
use launchway_testkit::{
    builders::{a_profile, an_actor, an_api_token, an_organization, scope_of},
    ids::id_of,
};

use super::{NO_ORGANIZATION, detail, expect_detail, lacks, outsider, program, scope};
use crate::{
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

async fn show(
    ports: MockedPorts,
    actor: &Actor,
    id: Option<OrganizationId>,
) -> Result<OrganizationDetail, Error> {
    ports.services().organizations.detail(actor, id).await
}

fn engines() -> Organization {
    an_organization().named("Engines").build()
}

#[tokio::test]
async fn everyone_in_an_organization_sees_it_with_its_members() {
    for role in Role::ALL {
        for id in [None, Some(an_organization().build().id)] {
            let mut ports = MockedPorts::default();
            expect_detail(&mut ports, scope(), Some(detail()));

            let outcome = show(ports, &an_actor().with_role(role).build(), id).await;

            assert_eq!(outcome.unwrap(), detail());
        }
    }
}

#[tokio::test]
async fn a_caller_sees_each_of_their_organizations_wherever_they_act() {
    let places = a_profile().member_of(&an_organization().build(), Role::Admin);
    let actor = an_actor().of(places.member_of(&engines(), Role::Viewer).build()).build();
    let shown = OrganizationDetail { organization: engines(), members: vec![] };
    let mut ports = MockedPorts::default();
    expect_detail(&mut ports, scope_of(&engines()), Some(shown.clone()));

    assert_eq!(show(ports, &actor, Some(engines().id)).await.unwrap(), shown);
}

#[tokio::test]
async fn an_organization_of_others_is_like_one_that_does_not_exist() {
    let missing = id_of("no organization").into();
    for id in [engines().id, missing] {
        for actor in [an_actor().build(), outsider(), program(&["organization:read"])] {
            // No port is called, so that the response time reveals nothing either.
            assert_refused(show(MockedPorts::default(), &actor, Some(id)).await, NO_ORGANIZATION);
        }
    }
}

#[tokio::test]
async fn a_program_does_not_see_another_organization_of_its_owner() {
    let places = a_profile().member_of(&an_organization().build(), Role::Admin);
    let owner = places.member_of(&engines(), Role::Admin).build();
    let actor = an_actor().of(owner).with_api_token(an_api_token().build()).build();

    assert_refused(show(MockedPorts::default(), &actor, Some(engines().id)).await, NO_ORGANIZATION);
}

#[tokio::test]
async fn an_organization_deleted_meanwhile_is_not_found() {
    let mut ports = MockedPorts::default();
    expect_detail(&mut ports, scope(), None);

    assert_refused(show(ports, &an_actor().build(), None).await, NO_ORGANIZATION);
}

#[tokio::test]
async fn a_program_without_the_permission_sees_no_organization() {
    for id in [None, Some(an_organization().build().id)] {
        let actor = program(&["organization:update", "user:read"]);

        assert_refused(show(MockedPorts::default(), &actor, id).await, lacks("organization:read"));
    }
}

#[tokio::test]
async fn whoever_is_in_no_organization_has_none_to_see() {
    assert_refused(show(MockedPorts::default(), &outsider(), None).await, Forbidden::NoOrganization);
}

#[tokio::test]
async fn no_organization_is_shown_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.organizations.expect_detail().once().returning(|_| Err(unavailable()));

    assert_refused(show(ports, &an_actor().build(), None).await, unavailable());
}
