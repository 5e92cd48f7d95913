//! Accepting, declining and listing invitations.

use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Resource},
    auth::{Actor, Forbidden, TokenHash},
    notifications::{EventKind, Fact},
    organizations::{InvitationDetail, Role, Write},
    secret::Secret,
    store::{Rule, StoreError, Unique},
};
use launchway_testkit::{
    CountingIds,
    builders::{an_actor, an_api_token, an_entry, an_organization},
};
use mockall::predicate::eq;

use super::{actors_without, ada, an_invitation, conflict, expect_detail, lacks, member, scope};
use crate::{
    announcements::announced,
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

const NO_INVITATION: Error = Error::NotFound("the invitation");

/// Returns ports with these invitations of ada.
fn ports_that_find(found: Vec<InvitationDetail>) -> MockedPorts {
    let mut ports = MockedPorts::default();
    let now = ports.now();
    ports
        .organizations
        .expect_invitations_of()
        .with(eq(ada().id), eq(now))
        .once()
        .return_once(|_, _| Ok(found));
    ports
}

fn a_program() -> Actor {
    an_actor().with_api_token(an_api_token().build()).build()
}

#[tokio::test]
async fn an_invitation_becomes_a_membership_with_its_token() {
    for token in [None, Some("lwv_token")] {
        let detail = an_invitation(&ada());
        let mut ports = ports_that_find(vec![detail.clone()]);
        let accept = Write::AcceptInvitation {
            id: detail.invitation.id,
            user_id: ada().id,
            token: token.map(TokenHash::of),
            membership: CountingIds::nth(1).into(),
            at: ports.now(),
        };
        let user_id = ada().id.to_string();
        let facts = [
            (Fact::Email, "ada@example.com"),
            (Fact::UserId, user_id.as_str()),
            (Fact::Role, "member"),
            (Fact::By, "ada"),
        ];
        let entry = an_entry()
            .of(Action::Create, Resource::User, ada().id)
            .with_message("accepted the invitation as member")
            .with("email", "ada@example.com")
            .with("role", "member");
        ports.expect_commit(vec![
            accept.into(),
            announced(2, EventKind::MemberAdded, facts),
            audited(3, entry),
        ]);
        let expected = member(&ada(), Role::Member);
        expect_detail(&mut ports, scope(), Some(an_organization().with_members(vec![expected.clone()])));

        let token = token.map(|token| Secret::new(token.to_owned()));
        let accepted =
            ports.services().organizations.accept(&an_actor().build(), detail.invitation.id, token).await;

        assert_eq!(accepted.unwrap(), (an_organization().build(), expected));
    }
}

#[tokio::test]
async fn an_invitation_that_cannot_be_accepted_says_why() {
    let id = an_invitation(&ada()).invitation.id;
    let needed = Error::InvalidCredentials(
        "this invitation needs its `token`, because your e-mail address is not verified: ask the admin who invited you \
         for it",
    );
    for (failure, expected) in [
        (StoreError::Stale, NO_INVITATION),
        (StoreError::Refused(Rule::InvitationToken), needed),
        (StoreError::Taken(Unique::Membership), conflict("you are a member of this organization already")),
        (unavailable(), unavailable().into()),
    ] {
        let mut ports = ports_that_find(vec![an_invitation(&ada())]);
        ports.expect_failing_commit(failure);
        let outcome = ports.services().organizations.accept(&an_actor().build(), id, None).await;
        assert_refused(outcome, expected);
    }
    let outcome =
        ports_that_find(vec![]).services().organizations.accept(&an_actor().build(), id, None).await;
    assert_refused(outcome, NO_INVITATION);
}

#[tokio::test]
async fn an_invitation_is_declined() {
    let detail = an_invitation(&ada());
    let mut ports = ports_that_find(vec![detail.clone()]);
    let decline = Write::DeclineInvitation { id: detail.invitation.id, user_id: ada().id, at: ports.now() };
    let entry = an_entry()
        .of(Action::Delete, Resource::User, ada().id)
        .with_message("declined the invitation")
        .with("email", "ada@example.com");
    ports.expect_commit(vec![decline.into(), audited(1, entry)]);

    let outcome = ports.services().organizations.decline(&an_actor().build(), detail.invitation.id).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_program_neither_accepts_nor_declines() {
    let id = an_invitation(&ada()).invitation.id;
    let outcome = MockedPorts::default().services().organizations.accept(&a_program(), id, None).await;
    assert_refused(outcome, Forbidden::NeedsSession);
    let outcome = MockedPorts::default().services().organizations.decline(&a_program(), id).await;
    assert_refused(outcome, Forbidden::NeedsSession);
}

#[tokio::test]
async fn invitations_of_an_organization_are_for_its_admins() {
    for actor in actors_without("organization:update") {
        let outcome = MockedPorts::default().services().organizations.invitations(&actor).await;
        assert_refused(outcome, lacks("organization:update"));
    }
    let mut ports = MockedPorts::default();
    let now = ports.now();
    let found = vec![an_invitation(&ada())];
    let given = found.clone();
    ports.organizations.expect_invitations().with(eq(scope()), eq(now)).once().return_once(|_, _| Ok(given));
    let listed = ports.services().organizations.invitations(&an_actor().build()).await;
    assert_eq!(listed.unwrap(), found);
}
