//! Removing members, and leaving.

use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Resource},
    auth::{Actor, Forbidden},
    clock::Timestamp,
    notifications::{EventKind, Fact},
    organizations::{InvitationDetail, Role, Write},
    store::{self, Rule, StoreError},
    users::User,
};
use launchway_testkit::builders::{a_user, an_actor, an_entry};
use mockall::predicate::eq;

use super::{
    NO_MEMBER, actors_without, ada, an_invitation, conflict, expect_member, grace, lacks, member, outsider,
    program, scope,
};
use crate::{
    announcements::announced,
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn removal_writes(user: &User, what: &str, at: Timestamp) -> Vec<store::Write> {
    let entry = an_entry().of(Action::Delete, Resource::User, user.id).with_message(what).at(at);
    let user_id = user.id.to_string();
    let facts = [
        (Fact::User, user.username.as_str()),
        (Fact::UserId, user_id.as_str()),
        (Fact::Email, user.email.as_str()),
        (Fact::By, "ada"),
    ];
    vec![
        Write::RemoveMember { scope: scope(), user_id: user.id, at }.into(),
        announced(1, EventKind::MemberRemoved, facts),
        audited(2, entry),
    ]
}

fn expect_invitations(ports: &mut MockedPorts, found: Vec<InvitationDetail>) {
    let now = ports.now();
    ports.organizations.expect_invitations().with(eq(scope()), eq(now)).once().return_once(|_, _| Ok(found));
}

/// Returns ports with `user` as a member.
fn ports_that_find(user: &User, role: Role) -> MockedPorts {
    let mut ports = MockedPorts::default();
    expect_member(&mut ports, user, Some(member(user, role)));
    ports
}

async fn remove(ports: MockedPorts, actor: &Actor, user: &User) -> Result<(), Error> {
    ports.services().organizations.remove_member(actor, user.id).await
}

#[tokio::test]
async fn an_admin_removes_a_member() {
    let mut ports = ports_that_find(&grace(), Role::Member);
    ports.expect_commit(removal_writes(&grace(), "removed grace@example.com", ports.now()));

    let outcome = remove(ports, &an_actor().build(), &grace()).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_program_removes_a_member_if_it_may() {
    let mut ports = ports_that_find(&grace(), Role::Member);
    ports.expect_commit(removal_writes(&grace(), "removed grace@example.com", ports.now()));

    let outcome = remove(ports, &program(&["organization:update"]), &grace()).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn everyone_may_leave() {
    for role in Role::ALL {
        let mut ports = ports_that_find(&ada(), role);
        ports.expect_commit(removal_writes(&ada(), "left the organization", ports.now()));

        let outcome = remove(ports, &an_actor().with_role(role).build(), &ada()).await;

        assert!(outcome.is_ok(), "{outcome:?}");
    }
}

#[tokio::test]
async fn api_token_with_permission_removes_its_owner_as_a_member() {
    let mut ports = ports_that_find(&ada(), Role::Admin);
    ports.expect_commit(removal_writes(&ada(), "removed ada@example.com", ports.now()));

    let outcome = remove(ports, &program(&["organization:update"]), &ada()).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn api_token_without_permission_cannot_remove_its_owner() {
    let outcome = remove(MockedPorts::default(), &program(&["organization:delete"]), &ada()).await;

    assert_refused(outcome, lacks("organization:update"));
}

#[tokio::test]
async fn remove_needs_the_permission_before_any_member_lookup() {
    let stranger = a_user().named("stranger").build();
    for actor in actors_without("organization:update") {
        for user in [grace(), stranger.clone()] {
            let outcome = remove(MockedPorts::default(), &actor, &user).await;

            assert_refused(outcome, lacks("organization:update"));
        }
    }
}

#[tokio::test]
async fn user_without_organization_cannot_leave_or_remove() {
    for user in [ada(), grace()] {
        let outcome = remove(MockedPorts::default(), &outsider(), &user).await;

        assert_refused(outcome, Forbidden::NoOrganization);
    }
}

#[tokio::test]
async fn who_is_no_member_cannot_be_removed() {
    let stranger = a_user().named("stranger").build();
    let mut ports = MockedPorts::default();
    expect_member(&mut ports, &stranger, None);
    expect_invitations(&mut ports, vec![an_invitation(&grace())]);

    assert_refused(remove(ports, &an_actor().build(), &stranger).await, NO_MEMBER);
}

#[tokio::test]
async fn an_invitation_is_withdrawn_instead() {
    let mut ports = MockedPorts::default();
    expect_member(&mut ports, &grace(), None);
    expect_invitations(&mut ports, vec![an_invitation(&grace())]);
    let at = ports.now();
    let what = "withdrew the invitation of grace@example.com";
    let entry = an_entry().of(Action::Delete, Resource::User, grace().id).with_message(what).at(at);
    let withdrawal = Write::WithdrawInvitation { scope: scope(), user_id: grace().id, at };
    ports.expect_commit(vec![withdrawal.into(), audited(1, entry)]);

    let outcome = remove(ports, &program(&["organization:update"]), &grace()).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn an_invitation_that_was_accepted_meanwhile_is_not_withdrawn() {
    let mut ports = MockedPorts::default();
    expect_member(&mut ports, &grace(), None);
    expect_invitations(&mut ports, vec![an_invitation(&grace())]);
    ports.expect_failing_commit(StoreError::Stale);

    let outcome = remove(ports, &an_actor().build(), &grace()).await;

    assert_refused(outcome, Error::NotFound("the invitation"));
}

#[tokio::test]
async fn who_was_removed_meanwhile_is_not_found() {
    let mut removed = ports_that_find(&grace(), Role::Viewer);
    removed.expect_failing_commit(StoreError::Stale);
    assert_refused(remove(removed, &an_actor().build(), &grace()).await, NO_MEMBER);

    let mut leaving = MockedPorts::default();
    expect_member(&mut leaving, &ada(), None);
    assert_refused(remove(leaving, &an_actor().build(), &ada()).await, NO_MEMBER);
}

#[tokio::test]
async fn the_last_admin_can_neither_leave_nor_be_removed() {
    for actor in [an_actor().build(), program(&["organization:update"])] {
        let mut ports = ports_that_find(&ada(), Role::Admin);
        ports.expect_failing_commit(StoreError::Refused(Rule::LastAdmin));

        let outcome = remove(ports, &actor, &ada()).await;

        assert_refused(outcome, conflict("an organization needs an admin: make someone else admin first"));
    }
}

#[tokio::test]
async fn nobody_is_removed_while_members_cannot_be_read() {
    let mut ports = MockedPorts::default();
    ports.organizations.expect_member().once().returning(|_, _| Err(unavailable()));

    assert_refused(remove(ports, &an_actor().build(), &grace()).await, unavailable());
}

#[tokio::test]
async fn nobody_is_removed_while_nothing_can_be_written() {
    let mut ports = ports_that_find(&grace(), Role::Viewer);
    ports.expect_failing_commit(unavailable());

    assert_refused(remove(ports, &an_actor().build(), &grace()).await, unavailable());
}
