//! Adding members.

use launchway_application::{
    Error,
    organizations::{Added, AddedMember, NewMember, SentInvitation},
};
use launchway_domain::{
    audit::{Action, Resource},
    auth::{Actor, Forbidden, PasswordSetup, Token, TokenKind, Write as AuthWrite},
    ids::UserId,
    notifications::{EventKind, Fact},
    organizations::{
        Candidate, Invitation, InvitationDetail, Member, Membership, OrganizationDetail, Role, Write,
    },
    store::{self, Rule, StoreError, Unique},
    users::{User, Username, Write as UserWrite},
};
use launchway_testkit::{
    CountingEntropy, CountingIds,
    builders::{a_membership, a_user, an_actor, an_entry, an_organization, parsed},
    clock::moment,
};
use mockall::predicate::eq;

use super::{
    NO_MEMBER, NO_ORGANIZATION, actors_without, ada, conflict, expect_detail, grace, lacks, member, outsider,
    program, scope,
};
use crate::{
    announcements::announced,
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn new() -> NewMember {
    NewMember { email: grace().email, role: Role::Member, username: None }
}

/// Returns the account that is created for grace, under the first id.
fn new_account(username: &str) -> User {
    let user = a_user().named(username).with_email("grace@example.com").unverified().build();
    User { id: CountingIds::nth(1).into(), ..user }
}

/// Returns the membership that is created for `user`, under the id number `n`.
fn new_member(user: &User, role: Role, n: u64) -> Member {
    let member = a_membership().of(user).with_role(role).member();
    let membership = Membership { id: CountingIds::nth(n).into(), ..member.membership };
    Member { membership, user: user.clone() }
}

/// Returns the organization with the new member `added`.
fn detail_with(added: &Member) -> OrganizationDetail {
    an_organization().with_members(vec![member(&ada(), Role::Admin), added.clone()])
}

fn setup_token() -> Token {
    Token::new(TokenKind::PasswordSetup, CountingEntropy::nth(1))
}

/// Returns the write that lets `user_id` set their first password, for exactly a day.
fn offer(user_id: UserId) -> store::Write {
    let expires_at = moment("2026-01-02T00:00:00Z");
    AuthWrite::OfferPasswordSetup(PasswordSetup { user_id, token: setup_token().hash(), expires_at }).into()
}

/// Returns the writes that add `member`, announce it under the id number `n`, and append to the audit log
/// under the next.
fn membership_writes(member: &Member, n: u64) -> [store::Write; 3] {
    let (role, user_id) = (member.membership.role.as_str(), member.user.id.to_string());
    let facts = [
        (Fact::Email, "grace@example.com"),
        (Fact::UserId, user_id.as_str()),
        (Fact::Role, role),
        (Fact::By, "ada"),
    ];
    let entry = an_entry()
        .of(Action::Create, Resource::User, member.user.id)
        .with_message(&format!("added grace@example.com as {role}"))
        .with("email", "grace@example.com")
        .with("role", role);
    [
        Write::InsertMembership(member.membership.clone()).into(),
        announced(n, EventKind::MemberAdded, facts),
        audited(n + 1, entry),
    ]
}

/// Returns the writes that create an account and a membership.
fn new_account_writes(member: &Member) -> Vec<store::Write> {
    let mut writes = vec![UserWrite::Insert(member.user.clone()).into(), offer(member.user.id)];
    writes.extend(membership_writes(member, 3));
    writes
}

/// Returns ports that find `candidate` by the address.
fn ports_that_find(candidate: Option<Candidate>) -> MockedPorts {
    let mut ports = MockedPorts::default();
    ports.organizations.expect_candidate().with(eq(grace().email)).once().return_once(|_| Ok(candidate));
    ports
}

fn in_use() -> Option<Candidate> {
    Some(Candidate { user: grace(), is_unused: false })
}

/// Returns the invitation of `user`, under the first id, for exactly a week.
fn invitation(user: &User, role: Role, token: Option<&Token>) -> Invitation {
    Invitation {
        id: CountingIds::nth(1).into(),
        organization_id: an_organization().build().id,
        user_id: user.id,
        role,
        invited_by: ada().id,
        token: token.map(Token::hash),
        created_at: moment("2026-01-01T00:00:00Z"),
        expires_at: moment("2026-01-08T00:00:00Z"),
    }
}

fn invitation_token() -> Token {
    Token::new(TokenKind::Invitation, CountingEntropy::nth(1))
}

/// Returns the writes of an invitation, with the entry of the audit log under the second id.
fn invitation_writes(invitation: &Invitation) -> Vec<store::Write> {
    let role = invitation.role.as_str();
    let entry = an_entry()
        .of(Action::Create, Resource::User, invitation.user_id)
        .with_message(&format!("invited grace@example.com as {role}"))
        .with("email", "grace@example.com")
        .with("role", role);
    vec![Write::Invite(invitation.clone()).into(), audited(2, entry)]
}

#[track_caller]
fn assert_invited(outcome: Result<Added, Error>, user: &User, expected: Invitation, token: Option<Token>) {
    match outcome {
        Ok(Added::Invited(SentInvitation { detail, token: given })) => {
            let expected = InvitationDetail {
                invitation: expected,
                organization: an_organization().build(),
                user: user.clone(),
                invited_by: ada().username,
            };
            assert_eq!((detail, given), (expected, token));
        }
        outcome => panic!("not invited: {outcome:?}"),
    }
}

async fn add(ports: MockedPorts, actor: &Actor, new: NewMember) -> Result<Added, Error> {
    ports.services().organizations.add_member(actor, new).await
}

#[track_caller]
fn assert_added(outcome: Result<Added, Error>, expected: Member) {
    match outcome {
        Ok(Added::Member(AddedMember { organization, member, setup_token: token })) => {
            let expected = (an_organization().build(), expected, setup_token());
            assert_eq!((organization, member, token), expected);
        }
        outcome => panic!("not added: {outcome:?}"),
    }
}

#[tokio::test]
async fn new_user_gets_an_account_and_a_setup_token_for_a_day() {
    let expected = new_member(&new_account("grace"), Role::Member, 2);
    let mut ports = ports_that_find(None);
    ports.expect_commit(new_account_writes(&expected));
    expect_detail(&mut ports, scope(), Some(detail_with(&expected)));

    let outcome = add(ports, &an_actor().build(), new()).await;

    assert_added(outcome, expected);
}

#[tokio::test]
async fn a_new_account_has_the_name_that_was_chosen() {
    let username: Username = parsed("Grace Hopper");
    let expected = new_member(&new_account(username.as_str()), Role::Member, 2);
    let mut ports = ports_that_find(None);
    ports.expect_commit(new_account_writes(&expected));
    expect_detail(&mut ports, scope(), Some(detail_with(&expected)));

    let outcome = add(ports, &an_actor().build(), NewMember { username: Some(username), ..new() }).await;

    assert_added(outcome, expected);
}

#[tokio::test]
async fn a_verified_account_in_use_is_invited_without_a_token() {
    for username in [None, Some(parsed("Grace Hopper"))] {
        let expected = invitation(&grace(), Role::Member, None);
        let mut ports = ports_that_find(in_use());
        ports.expect_commit(invitation_writes(&expected));
        expect_detail(&mut ports, scope(), Some(an_organization().with_members(vec![])));

        let outcome = add(ports, &an_actor().build(), NewMember { username, ..new() }).await;

        assert_invited(outcome, &grace(), expected, None);
    }
}

#[tokio::test]
async fn an_unverified_account_in_use_is_invited_with_a_token() {
    for role in Role::ALL {
        let user = a_user().named("grace").unverified().build();
        let expected = invitation(&user, role, Some(&invitation_token()));
        let mut ports = ports_that_find(Some(Candidate { user: user.clone(), is_unused: false }));
        ports.expect_commit(invitation_writes(&expected));
        expect_detail(&mut ports, scope(), Some(an_organization().with_members(vec![])));

        let outcome = add(ports, &an_actor().build(), NewMember { role, ..new() }).await;

        assert_invited(outcome, &user, expected, Some(invitation_token()));
    }
}

#[tokio::test]
async fn a_program_never_gets_to_see_the_token_of_an_invitation() {
    let user = a_user().named("grace").unverified().build();
    let ports = ports_that_find(Some(Candidate { user, is_unused: false }));

    let outcome = add(ports, &program(&Role::Admin.permissions().names()), new()).await;

    assert_refused(outcome, Forbidden::NeedsSession);
}

#[tokio::test]
async fn an_account_that_nobody_has_used_gets_a_new_setup_token() {
    let user = a_user().named("grace").unverified().build();
    let expected = new_member(&user, Role::Member, 1);
    let mut ports = ports_that_find(Some(Candidate { user: user.clone(), is_unused: true }));
    let mut writes = vec![offer(user.id)];
    writes.extend(membership_writes(&expected, 2));
    ports.expect_commit(writes);
    expect_detail(&mut ports, scope(), Some(detail_with(&expected)));

    let outcome = add(ports, &an_actor().build(), new()).await;

    assert_added(outcome, expected);
}

#[tokio::test]
async fn a_member_has_the_role_that_was_chosen() {
    for role in Role::ALL {
        let expected = new_member(&new_account("grace"), role, 2);
        let mut ports = ports_that_find(None);
        ports.expect_commit(new_account_writes(&expected));
        expect_detail(&mut ports, scope(), Some(detail_with(&expected)));

        let outcome = add(ports, &an_actor().build(), NewMember { role, ..new() }).await;

        assert_added(outcome, expected);
    }
}

#[tokio::test]
async fn a_program_invites_a_verified_account_if_it_may() {
    let expected = invitation(&grace(), Role::Member, None);
    let mut ports = ports_that_find(in_use());
    ports.expect_commit(invitation_writes(&expected));
    expect_detail(&mut ports, scope(), Some(an_organization().with_members(vec![])));

    let outcome = add(ports, &program(&Role::Admin.permissions().names()), new()).await;

    assert_invited(outcome, &grace(), expected, None);
}

#[tokio::test]
async fn a_program_never_gets_to_see_the_token_for_a_first_password() {
    let outcome = add(ports_that_find(None), &program(&Role::Admin.permissions().names()), new()).await;

    assert_refused(outcome, Forbidden::NeedsSession);
}

#[tokio::test]
async fn nobody_gives_a_role_that_may_do_more_than_they_may() {
    let outcome = add(MockedPorts::default(), &program(&["organization:update"]), new()).await;

    assert_refused(outcome, lacks("user:read"));
}

#[tokio::test]
async fn add_needs_the_permission_before_any_account_lookup() {
    for actor in actors_without("organization:update") {
        let outcome = add(MockedPorts::default(), &actor, new()).await;

        assert_refused(outcome, lacks("organization:update"));
    }
}

#[tokio::test]
async fn whoever_is_in_no_organization_adds_nobody() {
    let outcome = add(MockedPorts::default(), &outsider(), new()).await;

    assert_refused(outcome, Forbidden::NoOrganization);
}

#[tokio::test]
async fn who_is_a_member_already_is_not_added_again() {
    let mut ports = ports_that_find(in_use());
    ports.expect_failing_commit(StoreError::Taken(Unique::Membership));

    let outcome = add(ports, &an_actor().build(), new()).await;

    assert_refused(outcome, conflict("grace@example.com is a member of this organization already"));
}

#[tokio::test]
async fn concurrent_add_of_the_same_address_can_be_retried() {
    for collision in [StoreError::Taken(Unique::UserEmail), StoreError::Refused(Rule::AccountInUse)] {
        let mut ports = ports_that_find(None);
        ports.expect_failing_commit(collision);

        let outcome = add(ports, &an_actor().build(), new()).await;

        let reason = "grace@example.com was added by someone else at the same moment; try again";
        assert_refused(outcome, conflict(reason));
    }
}

#[tokio::test]
async fn nobody_is_added_to_an_organization_deleted_meanwhile() {
    let mut stale = ports_that_find(in_use());
    stale.expect_failing_commit(StoreError::Stale);
    assert_refused(add(stale, &an_actor().build(), new()).await, NO_ORGANIZATION);

    let mut gone = ports_that_find(in_use());
    gone.expect_any_commit();
    expect_detail(&mut gone, scope(), None);
    assert_refused(add(gone, &an_actor().build(), new()).await, NO_ORGANIZATION);
}

#[tokio::test]
async fn a_member_removed_right_after_being_added_is_not_found() {
    let mut ports = ports_that_find(None);
    ports.expect_any_commit();
    let others = an_organization().with_members(vec![member(&ada(), Role::Admin)]);
    expect_detail(&mut ports, scope(), Some(others));

    assert_refused(add(ports, &an_actor().build(), new()).await, NO_MEMBER);
}

#[tokio::test]
async fn nobody_is_added_while_users_cannot_be_read() {
    let mut ports = MockedPorts::default();
    ports.organizations.expect_candidate().once().returning(|_| Err(unavailable()));

    assert_refused(add(ports, &an_actor().build(), new()).await, unavailable());
}

#[tokio::test]
async fn nobody_is_added_while_nothing_can_be_written() {
    let mut ports = ports_that_find(None);
    ports.expect_failing_commit(unavailable());

    assert_refused(add(ports, &an_actor().build(), new()).await, unavailable());
}
