//! Contract of `CredentialRepository::by_password_setup` and the writes of first passwords.

use launchway_database::Database;
use launchway_domain::{
    auth::{CredentialRepository as _, PasswordSetup, TokenHash, Write},
    ids::UserId,
    organizations::{self, Role},
    store::{Rule, StoreError, UnitOfWork as _},
    users::{self, User, UserRepository as _},
};
use tokio::task::JoinSet;

use crate::builders::{Resident, a_hash, a_membership, a_user, at, audited, commit, execute, id, is_stale};

contract!(
    whoever_has_the_token_is_known_until_it_expires,
    what_was_offered_before_is_void,
    a_used_token_is_void_and_proves_no_address,
    a_token_works_for_its_user_alone_and_not_after_its_end,
    of_two_who_use_a_token_at_once_one_succeeds,
    who_has_a_password_cannot_set_a_first_one,
    a_deleted_user_cannot_set_a_password,
    an_account_that_somebody_uses_gets_no_offer,
    of_two_who_offer_the_same_account_at_once_one_succeeds,
    an_offer_does_not_outlive_a_password_that_is_set_at_once,
    an_offer_ends_when_its_user_leaves_the_last_organization,
    an_offer_ends_with_the_last_organization_of_its_user,
    an_offer_does_not_outlive_leaving_two_organizations_at_once,
);

/// A user who was added by another one.
async fn an_invited_user(db: &Database, name: &str) -> User {
    let added = a_user(name);
    let user = User::invited(added.id, added.username, added.email, at(0));
    commit(db, users::Write::Insert(user.clone())).await.unwrap();
    user
}

fn offer(user_id: UserId, token: &str) -> Write {
    Write::OfferPasswordSetup(PasswordSetup { user_id, token: TokenHash::of(token), expires_at: at(100) })
}

fn redeem(user_id: UserId, token: &str, seconds: i64) -> Write {
    Write::RedeemPasswordSetup { user_id, token: TokenHash::of(token), at: at(seconds) }
}

async fn holder(db: &Database, token: &str, seconds: i64) -> Option<UserId> {
    db.by_password_setup(&TokenHash::of(token), at(seconds)).await.unwrap()
}

async fn whoever_has_the_token_is_known_until_it_expires(db: Database) {
    let (ada, grace) = (an_invited_user(&db, "ada").await.id, an_invited_user(&db, "grace").await.id);
    commit(&db, offer(ada, "one")).await.unwrap();
    commit(&db, offer(grace, "two")).await.unwrap();
    assert_eq!(holder(&db, "one", 99).await, Some(ada));
    assert_eq!(holder(&db, "two", 99).await, Some(grace));
    assert_eq!(holder(&db, "one", 100).await, None);
    assert_eq!(holder(&db, "three", 0).await, None);
}

async fn what_was_offered_before_is_void(db: Database) {
    let ada = an_invited_user(&db, "ada").await.id;
    commit(&db, offer(ada, "one")).await.unwrap();
    commit(&db, offer(ada, "two")).await.unwrap();
    assert_eq!(holder(&db, "one", 1).await, None);
    assert!(is_stale(&commit(&db, redeem(ada, "one", 1)).await));
    assert_eq!(holder(&db, "two", 1).await, Some(ada));
}

async fn a_used_token_is_void_and_proves_no_address(db: Database) {
    let ada = an_invited_user(&db, "ada").await;
    let grace = an_invited_user(&db, "grace").await;
    commit(&db, offer(ada.id, "one")).await.unwrap();
    commit(&db, redeem(ada.id, "one", 7)).await.unwrap();
    assert_eq!(holder(&db, "one", 8).await, None);
    assert!(is_stale(&commit(&db, redeem(ada.id, "one", 8)).await));
    let used = User { is_verified: false, updated_at: at(7), ..ada };
    assert_eq!(db.profile(used.id).await.unwrap().unwrap().user, used);
    assert_eq!(db.profile(grace.id).await.unwrap().unwrap().user, grace);
}

async fn a_token_works_for_its_user_alone_and_not_after_its_end(db: Database) {
    let (ada, grace) = (an_invited_user(&db, "ada").await.id, an_invited_user(&db, "grace").await.id);
    commit(&db, offer(ada, "one")).await.unwrap();
    assert!(is_stale(&commit(&db, redeem(grace, "one", 1)).await));
    assert!(is_stale(&commit(&db, redeem(id(), "one", 1)).await));
    assert!(is_stale(&commit(&db, redeem(ada, "two", 1)).await));
    assert!(is_stale(&commit(&db, redeem(ada, "one", 100)).await));
    commit(&db, redeem(ada, "one", 99)).await.unwrap();
}

async fn of_two_who_use_a_token_at_once_one_succeeds(db: Database) {
    for round in 0..10 {
        let ada = an_invited_user(&db, &format!("ada{round}")).await.id;
        let token = round.to_string();
        commit(&db, offer(ada, &token)).await.unwrap();
        let mut tasks = JoinSet::new();
        for who in ["one", "other"] {
            let writes =
                vec![redeem(ada, &token, 1).into(), set_password(ada, &format!("{who} {round}")).into()];
            let db = db.clone();
            tasks.spawn(async move { (who, db.commit(audited(writes)).await) });
        }
        let (won, lost): (Vec<_>, Vec<_>) =
            tasks.join_all().await.into_iter().partition(|(_, outcome)| outcome.is_ok());
        assert!(won.len() == 1 && is_stale(&lost[0].1), "{won:?} {lost:?}");
        let password = db.by_user(ada).await.unwrap().unwrap().password;
        assert_eq!(password, Some(a_hash(&format!("{} {round}", won[0].0))));
    }
}

async fn who_has_a_password_cannot_set_a_first_one(db: Database) {
    let ada = an_invited_user(&db, "ada").await.id;
    commit(&db, offer(ada, "one")).await.unwrap();
    commit(&db, set_password(ada, "mine")).await.unwrap();
    assert_eq!(holder(&db, "one", 2).await, None);
    assert!(is_stale(&commit(&db, redeem(ada, "one", 2)).await));
}

async fn a_deleted_user_cannot_set_a_password(db: Database) {
    let ada = an_invited_user(&db, "ada").await.id;
    commit(&db, offer(ada, "one")).await.unwrap();
    execute(&db, "UPDATE users SET deleted_at = updated_at").await;
    assert_eq!(holder(&db, "one", 1).await, None);
    assert!(is_stale(&commit(&db, redeem(ada, "one", 1)).await));
    assert!(is_stale(&commit(&db, offer(ada, "two")).await));
}

fn is_refused(outcome: &Result<(), StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Refused(Rule::AccountInUse)))
}

fn set_password(user_id: UserId, text: &str) -> Write {
    Write::SetPassword { user_id, hash: a_hash(text), at: at(1) }
}

async fn an_account_that_somebody_uses_gets_no_offer(db: Database) {
    let (ada, grace) = (Resident::of(&db, "ada").await, an_invited_user(&db, "grace").await.id);
    assert!(is_refused(&commit(&db, offer(ada.user.id, "one")).await));
    assert_eq!(holder(&db, "one", 1).await, None);
    commit(&db, set_password(grace, "mine")).await.unwrap();
    assert!(is_refused(&commit(&db, offer(grace, "two")).await));
    assert_eq!(holder(&db, "two", 1).await, None);

    // Who left everywhere without ever having had a password is as good as new.
    let leave = organizations::Write::Delete { scope: ada.scope(), at: at(1) };
    commit(&db, leave).await.unwrap();
    commit(&db, offer(ada.user.id, "three")).await.unwrap();
    assert_eq!(holder(&db, "three", 1).await, Some(ada.user.id));
}

/// Each adds the account to an organization of their own, and must not learn the other one's password.
async fn of_two_who_offer_the_same_account_at_once_one_succeeds(db: Database) {
    let homes = [Resident::of(&db, "grace").await, Resident::of(&db, "linus").await];
    for round in 0..10 {
        let ada = an_invited_user(&db, &format!("ada{round}")).await;
        let mut tasks = JoinSet::new();
        for home in &homes {
            let token = format!("{round} {}", home.user.username);
            let membership = a_membership(&home.organization, &ada, Role::Member);
            let writes =
                vec![offer(ada.id, &token).into(), organizations::Write::InsertMembership(membership).into()];
            let db = db.clone();
            tasks.spawn(async move { (token, db.commit(audited(writes)).await) });
        }
        let (won, lost): (Vec<_>, Vec<_>) =
            tasks.join_all().await.into_iter().partition(|(_, outcome)| outcome.is_ok());
        assert!(won.len() == 1 && is_refused(&lost[0].1), "{won:?} {lost:?}");
        assert_eq!(holder(&db, &won[0].0, 1).await, Some(ada.id));
        assert_eq!(db.profile(ada.id).await.unwrap().unwrap().memberships.len(), 1);
    }
}

async fn an_offer_does_not_outlive_a_password_that_is_set_at_once(db: Database) {
    for round in 0..10 {
        let ada = an_invited_user(&db, &format!("ada{round}")).await.id;
        let (set, offered) =
            tokio::join!(commit(&db, set_password(ada, "mine")), commit(&db, offer(ada, &round.to_string())));
        set.unwrap();
        assert!(offered.is_ok() || is_refused(&offered), "{offered:?}");
        assert_eq!(holder(&db, &round.to_string(), 1).await, None);
    }
}

/// A user with a pending password setup who is a member of all these organizations.
async fn an_invited_member(db: &Database, name: &str, homes: &[&Resident]) -> User {
    let user = an_invited_user(db, name).await;
    commit(db, offer(user.id, name)).await.unwrap();
    for home in homes {
        let membership = a_membership(&home.organization, &user, Role::Member);
        commit(db, organizations::Write::InsertMembership(membership)).await.unwrap();
    }
    user
}

fn remove(home: &Resident, user: &User) -> organizations::Write {
    organizations::Write::RemoveMember { scope: home.scope(), user_id: user.id, at: at(1) }
}

fn delete(home: &Resident) -> organizations::Write {
    organizations::Write::Delete { scope: home.scope(), at: at(1) }
}

async fn an_offer_ends_when_its_user_leaves_the_last_organization(db: Database) {
    let (grace, linus) = (Resident::of(&db, "grace").await, Resident::of(&db, "linus").await);
    let ada = an_invited_member(&db, "ada", &[&grace, &linus]).await;
    let alan = an_invited_member(&db, "alan", &[&grace]).await;
    commit(&db, remove(&grace, &ada)).await.unwrap();
    assert_eq!(holder(&db, "ada", 1).await, Some(ada.id));
    commit(&db, remove(&linus, &ada)).await.unwrap();
    assert_eq!(holder(&db, "ada", 1).await, None);
    assert!(is_stale(&commit(&db, redeem(ada.id, "ada", 1)).await));
    assert_eq!(holder(&db, "alan", 1).await, Some(alan.id));

    // Who comes back gets another offer, and the former one stays void.
    commit(&db, offer(ada.id, "another")).await.unwrap();
    assert_eq!(holder(&db, "ada", 1).await, None);
    assert_eq!(holder(&db, "another", 1).await, Some(ada.id));
}

async fn an_offer_ends_with_the_last_organization_of_its_user(db: Database) {
    let (grace, linus) = (Resident::of(&db, "grace").await, Resident::of(&db, "linus").await);
    an_invited_member(&db, "ada", &[&grace]).await;
    an_invited_member(&db, "alan", &[&grace]).await;
    let both = an_invited_member(&db, "both", &[&grace, &linus]).await;
    let other = an_invited_member(&db, "other", &[&linus]).await;
    let left = an_invited_member(&db, "left", &[&grace]).await;
    commit(&db, remove(&grace, &left)).await.unwrap();
    commit(&db, offer(left.id, "again")).await.unwrap();

    commit(&db, delete(&grace)).await.unwrap();
    assert_eq!(holder(&db, "ada", 1).await, None);
    assert_eq!(holder(&db, "alan", 1).await, None);
    assert_eq!(holder(&db, "both", 1).await, Some(both.id));
    assert_eq!(holder(&db, "other", 1).await, Some(other.id));
    assert_eq!(holder(&db, "again", 1).await, Some(left.id));
    commit(&db, delete(&linus)).await.unwrap();
    assert_eq!(holder(&db, "both", 1).await, None);
    assert_eq!(holder(&db, "other", 1).await, None);
}

async fn an_offer_does_not_outlive_leaving_two_organizations_at_once(db: Database) {
    let grace = Resident::of(&db, "grace").await;
    for round in 0..20 {
        let linus = Resident::of(&db, &format!("linus{round}")).await;
        let names = ["ada", "alan"].map(|name| format!("{name}{round}"));
        let mut leave = vec![delete(&linus)];
        for name in &names {
            leave.push(remove(&grace, &an_invited_member(&db, name, &[&grace, &linus]).await));
        }
        let mut tasks = JoinSet::new();
        for write in leave {
            let db = db.clone();
            tasks.spawn(async move { commit(&db, write).await });
        }
        tasks.join_all().await.into_iter().for_each(Result::unwrap);
        for name in &names {
            assert_eq!(holder(&db, name, 1).await, None);
        }
    }
}
