//! API tokens: what `CredentialRepository::api_tokens` and the writes about them promise.

use launchway_domain::{
    auth::{ApiToken, CredentialRepository as _, Write},
    ids::{OrganizationId, UserId},
    organizations,
    store::{StoreError, Unique},
};
use launchway_infrastructure::database::Database;

use crate::builders::{Resident, an_api_token, an_organization, at, commit, execute, id, is_stale};

contract!(
    tokens_are_listed_newest_first_as_they_were_issued,
    tokens_of_others_and_of_other_organizations_are_not_listed,
    a_name_in_use_is_taken,
    the_same_name_is_free_elsewhere_and_after_a_revocation,
    a_revoked_token_is_not_listed,
    only_the_owner_revokes_a_token_and_only_once,
    tokens_of_a_deleted_user_are_not_listed,
);

fn revoke(token: &ApiToken, organization_id: OrganizationId, user_id: UserId) -> Write {
    Write::RevokeApiToken { id: token.id, organization_id, user_id, at: at(5) }
}

async fn tokens_are_listed_newest_first_as_they_were_issued(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut tokens = ["old", "new", "eternal"].map(|n| an_api_token(ada.organization.id, ada.user.id, n));
    for (token, seconds) in tokens.iter_mut().zip([1, 3, 2]) {
        token.created_at = at(seconds);
    }
    tokens[2].expires_at = None;
    tokens[2].permissions = Default::default();
    for token in &tokens {
        commit(&db, Write::IssueApiToken(token.clone())).await.unwrap();
    }
    let [old, new, eternal] = tokens;
    let listed = db.api_tokens(ada.organization.id, ada.user.id).await.unwrap();
    assert_eq!(listed, [new, eternal, old]);
}

async fn tokens_of_others_and_of_other_organizations_are_not_listed(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    ada.issue(&db, "ci").await;
    assert_eq!(db.api_tokens(ada.organization.id, grace.user.id).await.unwrap(), []);
    assert_eq!(db.api_tokens(grace.organization.id, ada.user.id).await.unwrap(), []);
}

async fn a_name_in_use_is_taken(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    ada.issue(&db, "ci").await;
    let mut again = an_api_token(ada.organization.id, ada.user.id, "ci");
    again.token_hash = launchway_domain::auth::TokenHash::of("another");
    let outcome = commit(&db, Write::IssueApiToken(again)).await;
    assert!(matches!(outcome, Err(StoreError::Taken(Unique::ApiTokenName))), "{outcome:?}");
}

async fn the_same_name_is_free_elsewhere_and_after_a_revocation(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let other = an_organization("Other");
    commit(&db, organizations::Write::Insert(other.clone())).await.unwrap();
    let token = ada.issue(&db, "ci").await;
    grace.issue(&db, "ci").await;
    commit(&db, Write::IssueApiToken(an_api_token(other.id, ada.user.id, "ci"))).await.unwrap();
    commit(&db, revoke(&token, ada.organization.id, ada.user.id)).await.unwrap();
    let mut again = an_api_token(ada.organization.id, ada.user.id, "ci");
    again.token_hash = launchway_domain::auth::TokenHash::of("another");
    commit(&db, Write::IssueApiToken(again)).await.unwrap();
}

async fn a_revoked_token_is_not_listed(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (kept, revoked) = (ada.issue(&db, "kept").await, ada.issue(&db, "revoked").await);
    commit(&db, revoke(&revoked, ada.organization.id, ada.user.id)).await.unwrap();
    assert_eq!(db.api_tokens(ada.organization.id, ada.user.id).await.unwrap(), [kept]);
}

async fn only_the_owner_revokes_a_token_and_only_once(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let token = ada.issue(&db, "ci").await;
    assert!(is_stale(&commit(&db, revoke(&token, ada.organization.id, grace.user.id)).await));
    assert!(is_stale(&commit(&db, revoke(&token, grace.organization.id, ada.user.id)).await));
    let unknown = ApiToken { id: id(), ..token.clone() };
    assert!(is_stale(&commit(&db, revoke(&unknown, ada.organization.id, ada.user.id)).await));
    commit(&db, revoke(&token, ada.organization.id, ada.user.id)).await.unwrap();
    assert!(is_stale(&commit(&db, revoke(&token, ada.organization.id, ada.user.id)).await));
}

async fn tokens_of_a_deleted_user_are_not_listed(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    ada.issue(&db, "ci").await;
    execute(&db, "UPDATE users SET deleted_at = updated_at").await;
    assert_eq!(db.api_tokens(ada.organization.id, ada.user.id).await.unwrap(), []);
}
