//! Changing the roles of members.

use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Resource},
    auth::{Actor, Forbidden},
    clock::Timestamp,
    organizations::{Member, Organization, Role, Write},
    store::{self, Rule, StoreError},
    users::User,
};
use launchway_testkit::builders::{a_user, an_actor, an_entry, an_organization};

use super::{
    NO_MEMBER, NO_ORGANIZATION, actors_without, ada, conflict, expect_detail, expect_member, grace, lacks,
    member, outsider, program, scope,
};
use crate::{
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn role_writes(user: &User, role: Role, at: Timestamp) -> Vec<store::Write> {
    let entry = an_entry()
        .of(Action::Update, Resource::User, user.id)
        .with_message(&format!("changed the role of {} to {}", user.email, role.as_str()))
        .with("role", role.as_str())
        .at(at);
    vec![Write::ChangeRole { scope: scope(), user_id: user.id, role, at }.into(), audited(1, entry)]
}

/// Returns ports with grace as a viewer.
fn ports_that_find_grace() -> MockedPorts {
    let mut ports = MockedPorts::default();
    expect_member(&mut ports, &grace(), Some(member(&grace(), Role::Viewer)));
    ports
}

/// Expects a read of the organization after the change of grace's role.
fn expect_change(ports: &mut MockedPorts, role: Role) {
    let members = vec![member(&ada(), Role::Admin), member(&grace(), role)];
    expect_detail(ports, scope(), Some(an_organization().with_members(members)));
}

async fn change(
    ports: MockedPorts,
    actor: &Actor,
    user: &User,
    role: Role,
) -> Result<(Organization, Member), Error> {
    ports.services().organizations.change_role(actor, user.id, role).await
}

/// Changes the role of grace to member.
async fn promote(ports: MockedPorts) -> Result<(Organization, Member), Error> {
    change(ports, &an_actor().build(), &grace(), Role::Member).await
}

#[tokio::test]
async fn a_member_gets_another_role() {
    for role in Role::ALL {
        let mut ports = ports_that_find_grace();
        ports.expect_commit(role_writes(&grace(), role, ports.now()));
        expect_change(&mut ports, role);

        let outcome = change(ports, &an_actor().build(), &grace(), role).await;

        assert_eq!(outcome.unwrap(), (an_organization().build(), member(&grace(), role)));
    }
}

#[tokio::test]
async fn a_program_changes_roles_if_it_may() {
    let mut ports = ports_that_find_grace();
    ports.expect_commit(role_writes(&grace(), Role::Admin, ports.now()));
    expect_change(&mut ports, Role::Admin);

    let program = program(&Role::Admin.permissions().names());
    let outcome = change(ports, &program, &grace(), Role::Admin).await;

    assert_eq!(outcome.unwrap(), (an_organization().build(), member(&grace(), Role::Admin)));
}

#[tokio::test]
async fn nobody_gives_a_role_that_may_do_more_than_they_may() {
    let program = program(&["organization:update"]);
    let outcome = change(MockedPorts::default(), &program, &grace(), Role::Admin).await;

    assert_refused(outcome, lacks("user:create"));
}

#[tokio::test]
async fn an_admin_may_give_up_being_one() {
    let mut ports = MockedPorts::default();
    expect_member(&mut ports, &ada(), Some(member(&ada(), Role::Admin)));
    ports.expect_commit(role_writes(&ada(), Role::Viewer, ports.now()));
    let members = vec![member(&ada(), Role::Viewer), member(&grace(), Role::Admin)];
    expect_detail(&mut ports, scope(), Some(an_organization().with_members(members)));

    let outcome = change(ports, &an_actor().build(), &ada(), Role::Viewer).await;

    assert_eq!(outcome.unwrap(), (an_organization().build(), member(&ada(), Role::Viewer)));
}

#[tokio::test]
async fn role_change_needs_the_permission_even_for_oneself() {
    for actor in actors_without("organization:update") {
        for user in [ada(), grace()] {
            let outcome = change(MockedPorts::default(), &actor, &user, Role::Admin).await;

            assert_refused(outcome, lacks("organization:update"));
        }
    }
}

#[tokio::test]
async fn whoever_is_in_no_organization_changes_no_role() {
    let outcome = change(MockedPorts::default(), &outsider(), &grace(), Role::Admin).await;

    assert_refused(outcome, Forbidden::NoOrganization);
}

#[tokio::test]
async fn who_is_no_member_has_no_role_to_change() {
    let stranger = a_user().named("stranger").build();
    let mut ports = MockedPorts::default();
    expect_member(&mut ports, &stranger, None);

    let outcome = change(ports, &an_actor().build(), &stranger, Role::Member).await;

    assert_refused(outcome, NO_MEMBER);
}

#[tokio::test]
async fn who_was_removed_meanwhile_is_not_found() {
    let mut stale = ports_that_find_grace();
    stale.expect_failing_commit(StoreError::Stale);
    assert_refused(promote(stale).await, NO_MEMBER);

    let mut gone = ports_that_find_grace();
    gone.expect_any_commit();
    let others = an_organization().with_members(vec![member(&ada(), Role::Admin)]);
    expect_detail(&mut gone, scope(), Some(others));
    assert_refused(promote(gone).await, NO_MEMBER);
}

#[tokio::test]
async fn an_organization_deleted_right_after_the_change_is_not_found() {
    let mut ports = ports_that_find_grace();
    ports.expect_any_commit();
    expect_detail(&mut ports, scope(), None);

    assert_refused(promote(ports).await, NO_ORGANIZATION);
}

#[tokio::test]
async fn the_last_admin_stays_one() {
    let mut ports = MockedPorts::default();
    expect_member(&mut ports, &ada(), Some(member(&ada(), Role::Admin)));
    ports.expect_failing_commit(StoreError::Refused(Rule::LastAdmin));

    let outcome = change(ports, &an_actor().build(), &ada(), Role::Member).await;

    assert_refused(outcome, conflict("an organization needs an admin: make someone else admin first"));
}

#[tokio::test]
async fn no_role_changes_while_members_cannot_be_read() {
    let mut ports = MockedPorts::default();
    ports.organizations.expect_member().once().returning(|_, _| Err(unavailable()));

    assert_refused(promote(ports).await, unavailable());
}

#[tokio::test]
async fn no_role_changes_while_nothing_can_be_written() {
    let mut ports = ports_that_find_grace();
    ports.expect_failing_commit(unavailable());

    assert_refused(promote(ports).await, unavailable());
}
