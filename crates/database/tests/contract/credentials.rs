//! Contract of `CredentialRepository` and the writes of passwords.

use launchway_database::Database;
use launchway_domain::{
    auth::{CredentialRepository as _, Credentials, Write},
    users::{self, EmailAddress},
};

use crate::builders::{Resident, a_hash, a_user, at, commit, execute, id, is_stale};

contract!(
    credentials_are_found_by_address_in_any_case_and_by_user,
    someone_without_a_password_has_credentials_all_the_same,
    a_password_is_replaced,
    nobody_is_found_by_an_unknown_address_or_id,
    a_deleted_user_has_no_credentials,
    a_password_is_confirmed_while_it_is_the_same,
);

async fn credentials_are_found_by_address_in_any_case_and_by_user(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    Resident::of(&db, "grace").await;
    commit(&db, Write::SetPassword { user_id: ada, hash: a_hash("one"), at: at(0) }).await.unwrap();

    let expected = Credentials { user_id: ada, password: Some(a_hash("one")), two_factor: None };
    let email: EmailAddress = "ADA@example.COM".parse().unwrap();
    assert_eq!(db.by_email(&email).await.unwrap().as_ref(), Some(&expected));
    assert_eq!(db.by_user(ada).await.unwrap(), Some(expected));
}

async fn someone_without_a_password_has_credentials_all_the_same(db: Database) {
    let ada = a_user("ada");
    commit(&db, users::Write::Insert(ada.clone())).await.unwrap();
    let expected = Credentials { user_id: ada.id, password: None, two_factor: None };
    assert_eq!(db.by_email(&ada.email).await.unwrap(), Some(expected));
}

async fn a_password_is_replaced(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    for (hash, seconds) in [("one", 1), ("two", 2)] {
        commit(&db, Write::SetPassword { user_id: ada, hash: a_hash(hash), at: at(seconds) }).await.unwrap();
    }
    assert_eq!(db.by_user(ada).await.unwrap().unwrap().password, Some(a_hash("two")));
}

async fn nobody_is_found_by_an_unknown_address_or_id(db: Database) {
    Resident::of(&db, "ada").await;
    assert_eq!(db.by_email(&"grace@example.com".parse().unwrap()).await.unwrap(), None);
    assert_eq!(db.by_user(id()).await.unwrap(), None);
}

async fn a_deleted_user_has_no_credentials(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    execute(&db, "UPDATE users SET deleted_at = updated_at").await;
    assert_eq!(db.by_email(&ada.user.email).await.unwrap(), None);
    assert_eq!(db.by_user(ada.user.id).await.unwrap(), None);
}

async fn a_password_is_confirmed_while_it_is_the_same(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    let confirm = |hash| Write::ConfirmPassword { user_id: ada, hash: a_hash(hash) };
    assert!(is_stale(&commit(&db, confirm("one")).await));
    commit(&db, Write::SetPassword { user_id: ada, hash: a_hash("one"), at: at(0) }).await.unwrap();
    commit(&db, confirm("one")).await.unwrap();
    commit(&db, Write::SetPassword { user_id: ada, hash: a_hash("two"), at: at(1) }).await.unwrap();
    assert!(is_stale(&commit(&db, confirm("one")).await));
    assert_eq!(db.by_user(ada).await.unwrap().unwrap().password, Some(a_hash("two")));
}
