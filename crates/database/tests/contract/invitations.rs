//! Contract of `OrganizationRepository` and `organizations::Write` about invitations.

use launchway_database::Database;
use launchway_domain::{
    auth::TokenHash,
    ids::InvitationId,
    organizations::{Invitation, InvitationDetail, OrganizationRepository as _, Role, Write},
    store::{Rule, StoreError, Unique},
};

use crate::builders::{Resident, a_membership, at, commit, execute, id, is_stale};

contract!(
    an_invitation_is_read_from_both_sides,
    an_accepted_invitation_is_a_membership,
    an_unverified_account_needs_the_token,
    a_verified_account_needs_no_token,
    an_invitation_is_for_its_user_alone,
    an_invitation_can_be_accepted_until_it_expires,
    a_new_invitation_replaces_the_one_before,
    a_member_is_not_invited,
    an_invitation_that_was_declined_is_void,
    an_invitation_that_was_withdrawn_is_void,
    an_invitation_ends_with_the_role_of_its_admin,
    an_invitation_ends_with_its_organization,
    an_invitation_is_accepted_once,
    a_new_member_has_no_invitation,
);

/// The organization of an admin, and a guest with an organization of their own.
async fn host_and_guest(db: &Database) -> (Resident, Resident) {
    (Resident::of(db, "ada").await, Resident::of(db, "grace").await)
}

fn an_invitation(host: &Resident, guest: &Resident, token: &str) -> Invitation {
    Invitation {
        id: id(),
        organization_id: host.organization.id,
        user_id: guest.user.id,
        role: Role::Member,
        invited_by: host.user.id,
        token: Some(TokenHash::of(token)),
        created_at: at(0),
        expires_at: at(100),
    }
}

async fn invite(db: &Database, host: &Resident, guest: &Resident, token: &str) -> Invitation {
    let invitation = an_invitation(host, guest, token);
    commit(db, Write::Invite(invitation.clone())).await.unwrap();
    invitation
}

fn accept(invitation: InvitationId, guest: &Resident, token: Option<&str>, seconds: i64) -> Write {
    Write::AcceptInvitation {
        id: invitation,
        user_id: guest.user.id,
        token: token.map(TokenHash::of),
        membership: id(),
        at: at(seconds),
    }
}

fn decline(invitation: InvitationId, guest: &Resident, seconds: i64) -> Write {
    Write::DeclineInvitation { id: invitation, user_id: guest.user.id, at: at(seconds) }
}

fn withdraw(host: &Resident, guest: &Resident, seconds: i64) -> Write {
    Write::WithdrawInvitation { scope: host.scope(), user_id: guest.user.id, at: at(seconds) }
}

fn join(host: &Resident, guest: &Resident, role: Role) -> Write {
    Write::InsertMembership(a_membership(&host.organization, &guest.user, role))
}

/// Returns the number of invitations that the host and the guest see, which must be the same.
async fn pending(db: &Database, host: &Resident, guest: &Resident, seconds: i64) -> usize {
    let sent = db.invitations(host.scope(), at(seconds)).await.unwrap().len();
    assert_eq!(db.invitations_of(guest.user.id, at(seconds)).await.unwrap().len(), sent);
    sent
}

async fn is_member(db: &Database, host: &Resident, guest: &Resident) -> bool {
    db.member(host.scope(), guest.user.id).await.unwrap().is_some()
}

fn needs_token(outcome: &Result<(), StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Refused(Rule::InvitationToken)))
}

async fn an_invitation_is_read_from_both_sides(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    let invitation = invite(&db, &ada, &grace, "one").await;
    let expected = InvitationDetail {
        invitation,
        organization: ada.organization.clone(),
        user: grace.user.clone(),
        invited_by: ada.user.username.clone(),
    };
    assert!(expected.needs_token());
    let expected = [expected];
    assert_eq!(db.invitations(ada.scope(), at(99)).await.unwrap(), expected);
    assert_eq!(db.invitations_of(grace.user.id, at(99)).await.unwrap(), expected);
    assert_eq!(db.invitations(grace.scope(), at(0)).await.unwrap(), []);
    assert_eq!(db.invitations_of(ada.user.id, at(0)).await.unwrap(), []);
    assert!(!is_member(&db, &ada, &grace).await);
}

async fn an_accepted_invitation_is_a_membership(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    let invitation = invite(&db, &ada, &grace, "one").await;
    commit(&db, accept(invitation.id, &grace, Some("one"), 7)).await.unwrap();
    let member = db.member(ada.scope(), grace.user.id).await.unwrap().unwrap();
    assert_eq!((member.membership.role, member.membership.created_at), (Role::Member, at(7)));
    assert_eq!(pending(&db, &ada, &grace, 8).await, 0);
}

async fn an_unverified_account_needs_the_token(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    let invitation = invite(&db, &ada, &grace, "one").await;
    for token in [None, Some("two"), Some("")] {
        assert!(needs_token(&commit(&db, accept(invitation.id, &grace, token, 1)).await), "{token:?}");
    }
    assert!(!is_member(&db, &ada, &grace).await);
    assert_eq!(pending(&db, &ada, &grace, 1).await, 1);

    // The token of another organization is not that of this one.
    let eve = Resident::of(&db, "eve").await;
    let other = invite(&db, &eve, &grace, "two").await;
    assert!(needs_token(&commit(&db, accept(invitation.id, &grace, Some("two"), 1)).await));
    commit(&db, accept(other.id, &grace, Some("two"), 1)).await.unwrap();
    assert!(needs_token(&commit(&db, accept(invitation.id, &grace, None, 1)).await));
}

async fn a_verified_account_needs_no_token(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    let invitation = Invitation { token: None, ..an_invitation(&ada, &grace, "none") };
    commit(&db, Write::Invite(invitation.clone())).await.unwrap();
    assert!(needs_token(&commit(&db, accept(invitation.id, &grace, None, 1)).await));
    execute(&db, "UPDATE users SET is_verified = (1 = 1)").await;
    assert!(!db.invitations_of(grace.user.id, at(1)).await.unwrap()[0].needs_token());
    commit(&db, accept(invitation.id, &grace, None, 1)).await.unwrap();
    assert!(is_member(&db, &ada, &grace).await);
}

async fn an_invitation_is_for_its_user_alone(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    let eve = Resident::of(&db, "eve").await;
    let invitation = invite(&db, &ada, &grace, "one").await;
    assert!(is_stale(&commit(&db, accept(invitation.id, &eve, Some("one"), 1)).await));
    assert!(is_stale(&commit(&db, decline(invitation.id, &eve, 1)).await));
    assert!(is_stale(&commit(&db, withdraw(&eve, &grace, 1)).await));
    assert_eq!(pending(&db, &ada, &grace, 1).await, 1);
}

async fn an_invitation_can_be_accepted_until_it_expires(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    let invitation = invite(&db, &ada, &grace, "one").await;
    assert_eq!((pending(&db, &ada, &grace, 99).await, pending(&db, &ada, &grace, 100).await), (1, 0));
    assert!(is_stale(&commit(&db, accept(invitation.id, &grace, Some("one"), 100)).await));
    assert!(is_stale(&commit(&db, decline(invitation.id, &grace, 100)).await));
    assert!(is_stale(&commit(&db, withdraw(&ada, &grace, 100)).await));
    commit(&db, accept(invitation.id, &grace, Some("one"), 99)).await.unwrap();
}

async fn a_new_invitation_replaces_the_one_before(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    let first = invite(&db, &ada, &grace, "one").await;
    let second = Invitation { role: Role::Admin, ..an_invitation(&ada, &grace, "two") };
    commit(&db, Write::Invite(second.clone())).await.unwrap();
    assert_eq!(pending(&db, &ada, &grace, 1).await, 1);
    assert!(is_stale(&commit(&db, accept(first.id, &grace, Some("one"), 1)).await));
    assert!(needs_token(&commit(&db, accept(second.id, &grace, Some("one"), 1)).await));
    commit(&db, accept(second.id, &grace, Some("two"), 1)).await.unwrap();
    assert_eq!(db.member(ada.scope(), grace.user.id).await.unwrap().unwrap().membership.role, Role::Admin);
}

async fn a_member_is_not_invited(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    commit(&db, join(&ada, &grace, Role::Viewer)).await.unwrap();
    let refused = commit(&db, Write::Invite(an_invitation(&ada, &grace, "one"))).await;
    assert!(matches!(refused, Err(StoreError::Taken(Unique::Membership))), "{refused:?}");
    assert_eq!(pending(&db, &ada, &grace, 1).await, 0);
}

async fn an_invitation_that_was_declined_is_void(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    let invitation = invite(&db, &ada, &grace, "one").await;
    commit(&db, decline(invitation.id, &grace, 1)).await.unwrap();
    assert!(is_stale(&commit(&db, decline(invitation.id, &grace, 1)).await));
    assert!(is_stale(&commit(&db, accept(invitation.id, &grace, Some("one"), 2)).await));
    assert_eq!(pending(&db, &ada, &grace, 2).await, 0);
}

async fn an_invitation_that_was_withdrawn_is_void(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    let invitation = invite(&db, &ada, &grace, "one").await;
    commit(&db, withdraw(&ada, &grace, 1)).await.unwrap();
    assert!(is_stale(&commit(&db, withdraw(&ada, &grace, 1)).await));
    assert!(is_stale(&commit(&db, accept(invitation.id, &grace, Some("one"), 2)).await));
}

async fn an_invitation_ends_with_the_role_of_its_admin(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    let [bob, eve] = [Resident::of(&db, "bob").await, Resident::of(&db, "eve").await];
    let scope = ada.scope();
    let demotion = Write::ChangeRole { scope, user_id: bob.user.id, role: Role::Member, at: at(1) };
    let removal = Write::RemoveMember { scope, user_id: eve.user.id, at: at(1) };
    for (admin, end) in [(&bob, demotion), (&eve, removal)] {
        commit(&db, join(&ada, admin, Role::Admin)).await.unwrap();
        let invitation = Invitation { invited_by: admin.user.id, ..an_invitation(&ada, &grace, "one") };
        commit(&db, Write::Invite(invitation.clone())).await.unwrap();
        assert_eq!(pending(&db, &ada, &grace, 1).await, 1);
        commit(&db, end).await.unwrap();
        assert_eq!(pending(&db, &ada, &grace, 1).await, 0);
        assert!(is_stale(&commit(&db, accept(invitation.id, &grace, Some("one"), 1)).await));
    }
}

async fn an_invitation_ends_with_its_organization(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    let invitation = invite(&db, &ada, &grace, "one").await;
    commit(&db, Write::Delete { scope: ada.scope(), at: at(1) }).await.unwrap();
    assert_eq!(pending(&db, &ada, &grace, 1).await, 0);
    assert!(is_stale(&commit(&db, accept(invitation.id, &grace, Some("one"), 2)).await));
    assert!(is_stale(&commit(&db, Write::Invite(an_invitation(&ada, &grace, "two"))).await));
}

async fn an_invitation_is_accepted_once(db: Database) {
    for round in 0..10 {
        let ada = Resident::of(&db, &format!("ada{round}")).await;
        let grace = Resident::of(&db, &format!("grace{round}")).await;
        let invitation = invite(&db, &ada, &grace, "one").await;
        let outcomes = tokio::join!(
            commit(&db, accept(invitation.id, &grace, Some("one"), 1)),
            commit(&db, accept(invitation.id, &grace, Some("one"), 1)),
            commit(&db, withdraw(&ada, &grace, 1)),
        );
        let outcomes = [outcomes.0, outcomes.1, outcomes.2];
        let successes = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(successes, 1, "{outcomes:?}");
        assert_eq!(is_member(&db, &ada, &grace).await, outcomes[2].is_err());
    }
}

async fn a_new_member_has_no_invitation(db: Database) {
    let (ada, grace) = host_and_guest(&db).await;
    invite(&db, &ada, &grace, "one").await;
    commit(&db, join(&ada, &grace, Role::Viewer)).await.unwrap();
    assert_eq!(pending(&db, &ada, &grace, 1).await, 0);
}
