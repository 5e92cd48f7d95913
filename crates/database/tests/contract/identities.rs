//! Contract of `IdentityRepository`, and its cost.

use std::sync::Arc;

use launchway_database::Database;
use launchway_domain::{
    auth::{Credential, Identity, IdentityRepository as _, TokenHash, Write},
    organizations::{self, Role},
    users::{self, SettingsChange, UserRepository as _},
};

use crate::{
    builders::{Resident, a_membership, an_organization, at, commit, execute, id},
    fresh::Fresh,
};

contract!(
    the_holder_of_a_session_is_recognised,
    the_holder_of_an_api_token_is_recognised,
    an_unknown_token_is_nobodys,
    a_known_token_costs_only_a_read_of_the_epoch,
    a_revoked_token_is_not_recognised,
    an_ended_session_is_not_recognised,
    another_role_is_seen_at_once,
    a_membership_that_ended_is_seen_at_once,
    a_new_membership_is_seen_at_once,
    a_renamed_user_and_changed_settings_are_seen_at_once,
    a_deleted_organization_is_seen_at_once,
    tokens_of_a_deleted_user_are_not_recognised,
    changes_of_another_process_are_seen,
    extending_a_session_does_not_move_the_epoch,
    a_statement_by_hand_moves_the_epoch,
);

async fn known(db: &Database, hash: &TokenHash) -> Option<Arc<Identity>> {
    db.by_token(hash).await.unwrap()
}

fn roles(identity: Option<Arc<Identity>>) -> Vec<Role> {
    identity.unwrap().profile.memberships.iter().map(|detail| detail.membership.role).collect()
}

async fn the_holder_of_a_session_is_recognised(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let session = ada.log_in(&db, "one").await;
    let identity = known(&db, &session.token_hash).await.unwrap();
    assert_eq!(identity.credential, Credential::Session(session));
    assert_eq!(*identity.profile, db.profile(ada.user.id).await.unwrap().unwrap());
}

async fn the_holder_of_an_api_token_is_recognised(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let token = ada.issue(&db, "ci").await;
    let identity = known(&db, &token.token_hash).await.unwrap();
    assert_eq!(identity.credential, Credential::ApiToken(token));
    assert_eq!(identity.profile.user, ada.user);
}

async fn an_unknown_token_is_nobodys(db: Database) {
    Resident::of(&db, "ada").await.log_in(&db, "one").await;
    let unknown = TokenHash::of("two");
    assert_eq!(known(&db, &unknown).await, None);
    // An unknown token is not cached either.
    let grace = Resident::of(&db, "grace").await;
    let session = grace.log_in(&db, "two").await;
    assert_eq!(known(&db, &unknown).await.unwrap().credential, Credential::Session(session));
}

async fn a_known_token_costs_only_a_read_of_the_epoch(fresh: &Fresh) {
    let db = &fresh.database;
    let session = Resident::of(db, "ada").await.log_in(db, "one").await;
    let first = known(db, &session.token_hash).await;
    let before = db.statistics();
    let second = known(db, &session.token_hash).await;
    let reads = db.statistics().reads - before.reads;
    let on_sqlite = fresh.folder().is_some();
    assert_eq!(reads, if on_sqlite { 0 } else { 1 });
    assert!(Arc::ptr_eq(&first.unwrap(), &second.unwrap()));
}

async fn a_revoked_token_is_not_recognised(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let token = ada.issue(&db, "ci").await;
    assert!(known(&db, &token.token_hash).await.is_some());
    let (organization_id, user_id) = (ada.organization.id, ada.user.id);
    let revoke = Write::RevokeApiToken { id: token.id, organization_id, user_id, at: at(1) };
    commit(&db, revoke).await.unwrap();
    assert_eq!(known(&db, &token.token_hash).await, None);
}

async fn an_ended_session_is_not_recognised(db: Database) {
    let session = Resident::of(&db, "ada").await.log_in(&db, "one").await;
    assert!(known(&db, &session.token_hash).await.is_some());
    commit(&db, Write::EndSession { id: session.id, at: at(1) }).await.unwrap();
    assert_eq!(known(&db, &session.token_hash).await, None);
}

async fn another_role_is_seen_at_once(db: Database) {
    let session = Resident::of(&db, "ada").await.log_in(&db, "one").await;
    assert_eq!(roles(known(&db, &session.token_hash).await), [Role::Admin]);
    execute(&db, "UPDATE memberships SET role = 'viewer'").await;
    assert_eq!(roles(known(&db, &session.token_hash).await), [Role::Viewer]);
}

async fn a_membership_that_ended_is_seen_at_once(db: Database) {
    let session = Resident::of(&db, "ada").await.log_in(&db, "one").await;
    assert_eq!(roles(known(&db, &session.token_hash).await), [Role::Admin]);
    execute(&db, "UPDATE memberships SET deleted_at = updated_at").await;
    assert_eq!(roles(known(&db, &session.token_hash).await), []);
    execute(&db, "UPDATE memberships SET deleted_at = NULL").await;
    assert_eq!(roles(known(&db, &session.token_hash).await), [Role::Admin]);
    execute(&db, "DELETE FROM memberships").await;
    assert_eq!(roles(known(&db, &session.token_hash).await), []);
}

async fn a_new_membership_is_seen_at_once(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let session = ada.log_in(&db, "one").await;
    assert_eq!(roles(known(&db, &session.token_hash).await), [Role::Admin]);
    let other = an_organization("Other");
    let mut membership = a_membership(&other, &ada.user, Role::Member);
    membership.created_at = at(1);
    commit(&db, organizations::Write::Insert(other)).await.unwrap();
    commit(&db, organizations::Write::InsertMembership(membership)).await.unwrap();
    assert_eq!(roles(known(&db, &session.token_hash).await), [Role::Admin, Role::Member]);
}

async fn a_renamed_user_and_changed_settings_are_seen_at_once(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let session = ada.log_in(&db, "one").await;
    assert_eq!(known(&db, &session.token_hash).await.unwrap().profile.settings, None);

    let user_id = ada.user.id;
    let rename = users::Write::Rename { id: user_id, username: "Countess".parse().unwrap(), at: at(1) };
    commit(&db, rename).await.unwrap();
    let seen = known(&db, &session.token_hash).await.unwrap();
    assert_eq!(seen.profile.user.username.as_str(), "Countess");

    for theme in ["dark", "sepia"] {
        let changes = vec![SettingsChange::Theme(theme.parse().unwrap())];
        let change = users::Write::ChangeSettings { user_id, new_id: id(), changes, at: at(1) };
        commit(&db, change).await.unwrap();
        let seen = known(&db, &session.token_hash).await.unwrap();
        assert_eq!(seen.profile.settings.as_ref().unwrap().theme.as_str(), theme);
    }
}

async fn a_deleted_organization_is_seen_at_once(db: Database) {
    let session = Resident::of(&db, "ada").await.log_in(&db, "one").await;
    assert_eq!(roles(known(&db, &session.token_hash).await), [Role::Admin]);
    execute(&db, "UPDATE organizations SET deleted_at = updated_at").await;
    assert_eq!(roles(known(&db, &session.token_hash).await), []);
}

async fn tokens_of_a_deleted_user_are_not_recognised(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (session, token) = (ada.log_in(&db, "one").await, ada.issue(&db, "ci").await);
    assert!(known(&db, &session.token_hash).await.is_some());
    assert!(known(&db, &token.token_hash).await.is_some());
    execute(&db, "UPDATE users SET deleted_at = updated_at").await;
    assert_eq!(known(&db, &session.token_hash).await, None);
    assert_eq!(known(&db, &token.token_hash).await, None);
}

/// A replica's change on PostgreSQL is seen at once. On SQLite the server is alone with its file; a tool
/// that writes beside it is noticed with the next commit, or when the writer is idle.
async fn changes_of_another_process_are_seen(fresh: &Fresh) {
    let db = &fresh.database;
    let ada = Resident::of(db, "ada").await;
    let session = ada.log_in(db, "one").await;
    let other = fresh.open_again();
    for (role, statement) in [
        (Role::Viewer, "UPDATE memberships SET role = 'viewer'"),
        (Role::Member, "UPDATE memberships SET role = 'member'"),
    ] {
        assert_ne!(roles(known(db, &session.token_hash).await), [role]);
        execute(&other, statement).await;
        if fresh.folder().is_some() {
            ada.log_in(db, role.as_str()).await;
        }
        assert_eq!(roles(known(db, &session.token_hash).await), [role]);
    }
    let epoch = db.identity_epoch().await.unwrap();
    commit(&other, Write::EndSession { id: session.id, at: at(1) }).await.unwrap();
    while db.identity_epoch().await.unwrap() == epoch {
        tokio::task::yield_now().await;
    }
    assert_eq!(known(db, &session.token_hash).await, None);
}

async fn extending_a_session_does_not_move_the_epoch(db: Database) {
    let session = Resident::of(&db, "ada").await.log_in(&db, "one").await;
    let before = db.identity_epoch().await.unwrap();
    let extend = Write::ExtendSession { id: session.id, at: at(1), expires_at: at(2) };
    commit(&db, extend).await.unwrap();
    assert_eq!(db.identity_epoch().await.unwrap(), before);
}

async fn a_statement_by_hand_moves_the_epoch(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    ada.log_in(&db, "one").await;
    ada.issue(&db, "ci").await;
    let change =
        users::Write::ChangeSettings { user_id: ada.user.id, new_id: id(), changes: vec![], at: at(1) };
    commit(&db, change).await.unwrap();
    let mut epoch = db.identity_epoch().await.unwrap();
    for statement in [
        "UPDATE users SET username = 'x'",
        "UPDATE user_settings SET theme = 'x'",
        "UPDATE memberships SET role = 'viewer'",
        "UPDATE organizations SET name = 'x'",
        "UPDATE sessions SET ended_at = created_at",
        "UPDATE api_tokens SET permissions = ''",
        "DELETE FROM user_settings",
        "DELETE FROM sessions",
        "DELETE FROM api_tokens",
        "DELETE FROM memberships",
        "DELETE FROM organizations",
        "DELETE FROM users",
    ] {
        execute(&db, statement).await;
        let moved = db.identity_epoch().await.unwrap();
        assert!(moved > epoch, "{statement}");
        epoch = moved;
    }
}
