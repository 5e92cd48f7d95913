//! Contract of `CredentialRepository::api_tokens` and the writes of API tokens.

use launchway_database::Database;
use launchway_domain::{
    auth::{ApiToken, CredentialRepository as _, IdentityRepository as _, Write},
    ids::{OrganizationId, UserId},
    organizations::{self, Role, Scope},
    store::{StoreError, Unique},
};
use tokio::task::JoinSet;

use crate::builders::{Resident, a_membership, an_api_token, at, commit, execute, id, is_stale};

contract!(
    tokens_are_listed_newest_first_as_they_were_issued,
    tokens_of_others_and_of_other_organizations_are_not_listed,
    a_name_in_use_is_taken,
    the_same_name_is_free_elsewhere_and_after_a_revocation,
    a_revoked_token_is_not_listed,
    only_the_owner_revokes_a_token_and_only_once,
    tokens_of_a_deleted_user_are_not_listed,
    only_a_member_gets_a_token,
    a_token_issued_while_its_owner_is_removed_stays_void,
    a_token_issued_while_its_organization_is_deleted_is_void,
);

fn revoke(token: &ApiToken, organization_id: OrganizationId, user_id: UserId) -> Write {
    Write::RevokeApiToken { id: token.id, organization_id, user_id, at: at(5) }
}

/// A token of `owner` for the organization of `home`.
fn issue(owner: &Resident, home: &Resident, name: &str) -> Write {
    Write::IssueApiToken(an_api_token(home.organization.id, owner.user.id, name))
}

/// Makes `user` a member of the organization of `home`.
async fn join(db: &Database, home: &Resident, user: &Resident) {
    let membership = a_membership(&home.organization, &user.user, Role::Member);
    commit(db, organizations::Write::InsertMembership(membership)).await.unwrap();
}

fn remove(home: &Resident, user: &Resident) -> organizations::Write {
    organizations::Write::RemoveMember { scope: home.scope(), user_id: user.user.id, at: at(5) }
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
    let listed = db.api_tokens(ada.scope(), ada.user.id).await.unwrap();
    assert_eq!(listed, [new, eternal, old]);
}

async fn tokens_of_others_and_of_other_organizations_are_not_listed(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    ada.issue(&db, "ci").await;
    assert_eq!(db.api_tokens(ada.scope(), grace.user.id).await.unwrap(), []);
    assert_eq!(db.api_tokens(grace.scope(), ada.user.id).await.unwrap(), []);
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
    join(&db, &ada, &grace).await;
    let token = ada.issue(&db, "ci").await;
    grace.issue(&db, "ci").await;
    commit(&db, issue(&grace, &ada, "ci")).await.unwrap();
    commit(&db, revoke(&token, ada.organization.id, ada.user.id)).await.unwrap();
    let mut again = an_api_token(ada.organization.id, ada.user.id, "ci");
    again.token_hash = launchway_domain::auth::TokenHash::of("another");
    commit(&db, Write::IssueApiToken(again)).await.unwrap();
}

async fn a_revoked_token_is_not_listed(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (kept, revoked) = (ada.issue(&db, "kept").await, ada.issue(&db, "revoked").await);
    commit(&db, revoke(&revoked, ada.organization.id, ada.user.id)).await.unwrap();
    assert_eq!(db.api_tokens(ada.scope(), ada.user.id).await.unwrap(), [kept]);
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
    assert_eq!(db.api_tokens(ada.scope(), ada.user.id).await.unwrap(), []);
}

async fn only_a_member_gets_a_token(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    let nobody = Resident::called("nobody");
    assert!(is_stale(&commit(&db, issue(&grace, &ada, "stranger")).await));
    assert!(is_stale(&commit(&db, issue(&nobody, &ada, "unknown")).await));
    assert!(is_stale(&commit(&db, issue(&ada, &nobody, "nowhere")).await));

    join(&db, &ada, &grace).await;
    commit(&db, issue(&grace, &ada, "member")).await.unwrap();
    commit(&db, remove(&ada, &grace)).await.unwrap();
    assert!(is_stale(&commit(&db, issue(&grace, &ada, "left")).await));
    assert_eq!(db.api_tokens(ada.scope(), grace.user.id).await.unwrap(), []);
    grace.issue(&db, "at home").await;

    execute(&db, "UPDATE users SET deleted_at = updated_at WHERE username = 'ada'").await;
    assert!(is_stale(&commit(&db, issue(&ada, &ada, "deleted")).await));
    execute(&db, "UPDATE organizations SET deleted_at = updated_at").await;
    assert!(is_stale(&commit(&db, issue(&grace, &grace, "gone")).await));
}

/// Issues some tokens of `owner` for the organization of `home`, all concurrently with the other write.
/// Whichever were issued, none may work.
async fn race(db: &Database, home: &Resident, owner: &Resident, against: organizations::Write) {
    let tokens = ["one", "two", "three"].map(|name| an_api_token(home.organization.id, owner.user.id, name));
    let mut tasks = JoinSet::new();
    for (place, mut token) in tokens.into_iter().enumerate() {
        // In their midst, so that it is likely to meet tokens before and after it.
        if place == 1 {
            let (db, write) = (db.clone(), against.clone());
            tasks.spawn(async move { (None, commit(&db, write).await) });
        }
        token.token_hash = launchway_domain::auth::TokenHash::of(&token.id.to_string());
        let db = db.clone();
        tasks.spawn(async move {
            let outcome = commit(&db, Write::IssueApiToken(token.clone())).await;
            (Some(token), outcome)
        });
    }
    let outcomes = tasks.join_all().await;
    if matches!(against, organizations::Write::RemoveMember { .. }) {
        join(db, home, owner).await;
    }
    for (token, outcome) in outcomes {
        let Some(token) = token else {
            outcome.unwrap();
            continue;
        };
        assert!(outcome.is_ok() || is_stale(&outcome), "{outcome:?}");
        assert_eq!(db.by_token(&token.token_hash).await.unwrap(), None);
    }
    let scope = Scope::of_record(home.organization.id);
    assert_eq!(db.api_tokens(scope, owner.user.id).await.unwrap(), []);
}

async fn a_token_issued_while_its_owner_is_removed_stays_void(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, Resident::of(&db, "grace").await);
    join(&db, &ada, &grace).await;
    for _ in 0..50 {
        race(&db, &ada, &grace, remove(&ada, &grace)).await;
    }
}

async fn a_token_issued_while_its_organization_is_deleted_is_void(db: Database) {
    for round in 0..20 {
        let ada = Resident::of(&db, &format!("ada{round}")).await;
        let delete = organizations::Write::Delete { scope: ada.scope(), at: at(5) };
        race(&db, &ada, &ada, delete).await;
    }
}
