//! Contract of the writes of second factors.

use launchway_database::Database;
use launchway_domain::{
    auth::{CredentialRepository as _, TokenHash, TwoFactor, Write},
    ids::UserId,
    secret::Sealed,
    users::UserRepository as _,
};

use crate::builders::{Resident, at, commit, is_stale};

contract!(
    a_second_factor_that_is_being_set_up_is_not_enabled,
    setting_up_again_replaces_the_secret,
    an_enabled_second_factor_is_not_set_up_again,
    enabling_needs_the_secret_that_is_being_set_up,
    an_enabled_second_factor_shows_on_the_user,
    a_step_is_used_once_and_no_earlier_one_after_it,
    a_step_means_nothing_without_an_enabled_second_factor,
    a_disabled_second_factor_is_gone,
    only_an_enabled_second_factor_is_disabled,
    a_recovery_code_works_once,
    recovery_codes_go_with_the_second_factor,
);

fn begin(user_id: UserId, secret: &str) -> Write {
    Write::BeginTwoFactor { user_id, secret: Sealed(secret.to_owned()), at: at(1) }
}

fn enable(user_id: UserId, secret: &str, step: i64, codes: &[&str]) -> Write {
    Write::EnableTwoFactor {
        user_id,
        secret: Sealed(secret.to_owned()),
        step,
        recovery_codes: codes.iter().map(|code| TokenHash::of(code)).collect(),
        at: at(2),
    }
}

fn disable(user_id: UserId) -> Write {
    Write::DisableTwoFactor { user_id, at: at(3) }
}

fn recover(user_id: UserId, code: &str) -> Write {
    Write::UseRecoveryCode { user_id, code: TokenHash::of(code), at: at(4) }
}

async fn stored(db: &Database, user_id: UserId) -> Option<TwoFactor> {
    db.by_user(user_id).await.unwrap().unwrap().two_factor
}

/// A user with an enabled second factor, the step 100 and the recovery codes `a` and `b`.
async fn protected(db: &Database) -> UserId {
    let ada = Resident::of(db, "ada").await.user.id;
    commit(db, begin(ada, "s1")).await.unwrap();
    commit(db, enable(ada, "s1", 100, &["a", "b"])).await.unwrap();
    ada
}

async fn a_second_factor_that_is_being_set_up_is_not_enabled(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    commit(&db, begin(ada, "s1")).await.unwrap();
    let expected = TwoFactor { secret: Sealed("s1".to_owned()), enabled_at: None };
    assert_eq!(stored(&db, ada).await, Some(expected));
    assert!(!db.profile(ada).await.unwrap().unwrap().user.two_factor_enabled);
}

async fn setting_up_again_replaces_the_secret(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    commit(&db, begin(ada, "s1")).await.unwrap();
    commit(&db, begin(ada, "s2")).await.unwrap();
    assert_eq!(stored(&db, ada).await.unwrap().secret, Sealed("s2".to_owned()));
}

async fn an_enabled_second_factor_is_not_set_up_again(db: Database) {
    let ada = protected(&db).await;
    assert!(is_stale(&commit(&db, begin(ada, "s2")).await));
    assert_eq!(stored(&db, ada).await.unwrap().secret, Sealed("s1".to_owned()));
}

async fn enabling_needs_the_secret_that_is_being_set_up(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    assert!(is_stale(&commit(&db, enable(ada, "s1", 1, &[])).await));
    commit(&db, begin(ada, "s1")).await.unwrap();
    assert!(is_stale(&commit(&db, enable(ada, "s2", 1, &[])).await));
    commit(&db, enable(ada, "s1", 1, &[])).await.unwrap();
    assert!(is_stale(&commit(&db, enable(ada, "s1", 1, &[])).await));
}

async fn an_enabled_second_factor_shows_on_the_user(db: Database) {
    let ada = protected(&db).await;
    let expected = TwoFactor { secret: Sealed("s1".to_owned()), enabled_at: Some(at(2)) };
    assert_eq!(stored(&db, ada).await, Some(expected));
    let user = db.profile(ada).await.unwrap().unwrap().user;
    assert_eq!((user.two_factor_enabled, user.updated_at), (true, at(2)));
}

async fn a_step_is_used_once_and_no_earlier_one_after_it(db: Database) {
    let ada = protected(&db).await;
    let mut outcomes = Vec::new();
    for step in [100, 99, 101, 101, 100, 102] {
        outcomes.push(is_stale(&commit(&db, Write::UseTotpStep { user_id: ada, step }).await));
    }
    assert_eq!(outcomes, [true, true, false, true, true, false]);
}

async fn a_step_means_nothing_without_an_enabled_second_factor(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    assert!(is_stale(&commit(&db, Write::UseTotpStep { user_id: ada, step: 5 }).await));
    commit(&db, begin(ada, "s1")).await.unwrap();
    assert!(is_stale(&commit(&db, Write::UseTotpStep { user_id: ada, step: 5 }).await));
}

async fn a_disabled_second_factor_is_gone(db: Database) {
    let ada = protected(&db).await;
    commit(&db, disable(ada)).await.unwrap();
    assert_eq!(stored(&db, ada).await, None);
    let user = db.profile(ada).await.unwrap().unwrap().user;
    assert_eq!((user.two_factor_enabled, user.updated_at), (false, at(3)));
}

async fn only_an_enabled_second_factor_is_disabled(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    assert!(is_stale(&commit(&db, disable(ada)).await));
    commit(&db, begin(ada, "s1")).await.unwrap();
    assert!(is_stale(&commit(&db, disable(ada)).await));
}

async fn a_recovery_code_works_once(db: Database) {
    let ada = protected(&db).await;
    let grace = Resident::of(&db, "grace").await.user.id;
    assert!(is_stale(&commit(&db, recover(ada, "c")).await));
    assert!(is_stale(&commit(&db, recover(grace, "a")).await));
    commit(&db, recover(ada, "a")).await.unwrap();
    assert!(is_stale(&commit(&db, recover(ada, "a")).await));
    commit(&db, recover(ada, "b")).await.unwrap();
}

async fn recovery_codes_go_with_the_second_factor(db: Database) {
    let ada = protected(&db).await;
    commit(&db, disable(ada)).await.unwrap();
    assert!(is_stale(&commit(&db, recover(ada, "a")).await));
    commit(&db, begin(ada, "s2")).await.unwrap();
    commit(&db, enable(ada, "s2", 200, &["b", "c"])).await.unwrap();
    assert!(is_stale(&commit(&db, recover(ada, "a")).await));
    commit(&db, recover(ada, "b")).await.unwrap();
}
