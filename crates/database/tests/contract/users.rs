//! Contract of `UserRepository` and `users::Write`.

use launchway_database::Database;
use launchway_domain::{
    organizations::{self, Role},
    store::{StoreError, Unique, UnitOfWork as _},
    users::{Profile, UserKind, UserRepository as _, Write},
};

use crate::builders::{
    Resident, a_membership, a_user, an_organization, at, audited, commit, execute, id, is_stale,
};

contract!(
    a_user_is_read_as_it_was_written,
    an_unknown_user_has_no_profile,
    a_deleted_user_has_no_profile,
    an_address_in_use_is_taken_in_any_case,
    the_address_of_a_deleted_user_is_free_again,
    a_renamed_user_has_the_new_name,
    renaming_someone_who_is_not_there_is_stale,
    memberships_are_read_oldest_first_and_ties_by_id,
    ended_memberships_and_deleted_organizations_are_not_read,
    an_invalid_stored_value_is_an_internal_error,
);

async fn a_user_is_read_as_it_was_written(db: Database) {
    let mut user = a_user("ada");
    user.kind = UserKind::Admin;
    user.avatar = "https://example.com/ada.png".to_owned();
    user.idp_user_id = "idp|1".to_owned();
    user.is_verified = true;
    user.updated_at = at(5);
    commit(&db, Write::Insert(user.clone())).await.unwrap();

    let profile = db.profile(user.id).await.unwrap();
    assert_eq!(profile, Some(Profile { user, settings: None, memberships: vec![] }));
}

async fn an_unknown_user_has_no_profile(db: Database) {
    assert_eq!(db.profile(id()).await.unwrap(), None);
}

async fn a_deleted_user_has_no_profile(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    execute(&db, "UPDATE users SET deleted_at = updated_at").await;
    assert_eq!(db.profile(ada.user.id).await.unwrap(), None);
}

async fn an_address_in_use_is_taken_in_any_case(db: Database) {
    commit(&db, Write::Insert(a_user("jürgen"))).await.unwrap();
    let mut other = a_user("other");
    other.email = "JÜRGEN@Example.com".parse().unwrap();
    let outcome = commit(&db, Write::Insert(other)).await;
    assert!(matches!(outcome, Err(StoreError::Taken(Unique::UserEmail))), "{outcome:?}");
}

async fn the_address_of_a_deleted_user_is_free_again(db: Database) {
    commit(&db, Write::Insert(a_user("ada"))).await.unwrap();
    execute(&db, "UPDATE users SET deleted_at = updated_at").await;
    commit(&db, Write::Insert(a_user("ada"))).await.unwrap();
}

async fn a_renamed_user_has_the_new_name(db: Database) {
    let mut ada = Resident::of(&db, "ada").await;
    let username: launchway_domain::users::Username = "Countess".parse().unwrap();
    commit(&db, Write::Rename { id: ada.user.id, username: username.clone(), at: at(7) }).await.unwrap();

    ada.user.username = username;
    ada.user.updated_at = at(7);
    assert_eq!(db.profile(ada.user.id).await.unwrap().unwrap().user, ada.user);
}

async fn renaming_someone_who_is_not_there_is_stale(db: Database) {
    let rename = |id| Write::Rename { id, username: "x".parse().unwrap(), at: at(1) };
    assert!(is_stale(&commit(&db, rename(id())).await));

    let ada = Resident::of(&db, "ada").await;
    execute(&db, "UPDATE users SET deleted_at = updated_at").await;
    assert!(is_stale(&commit(&db, rename(ada.user.id)).await));
}

async fn memberships_are_read_oldest_first_and_ties_by_id(db: Database) {
    let user = a_user("ada");
    let [first, second, third] = ["One", "Two", "Three"].map(an_organization);
    let mut oldest = a_membership(&third, &user, Role::Viewer);
    oldest.created_at = at(-10);
    let mut tied = [a_membership(&first, &user, Role::Member), a_membership(&second, &user, Role::Admin)];
    tied.sort_by_key(|membership| membership.id);
    let mut writes = vec![Write::Insert(user.clone()).into()];
    writes.extend([&first, &second, &third].map(|org| organizations::Write::Insert(org.clone()).into()));
    let membership = |m: &organizations::Membership| organizations::Write::InsertMembership(m.clone());
    writes.extend([&tied[1], &tied[0], &oldest].map(|m| membership(m).into()));
    db.commit(audited(writes)).await.unwrap();

    let read = db.profile(user.id).await.unwrap().unwrap().memberships;
    let memberships: Vec<_> = read.iter().map(|detail| detail.membership.clone()).collect();
    assert_eq!(memberships, [oldest, tied[0].clone(), tied[1].clone()]);
    assert_eq!(read[0].organization, third);
}

async fn ended_memberships_and_deleted_organizations_are_not_read(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    execute(&db, "UPDATE memberships SET deleted_at = updated_at").await;
    assert_eq!(db.profile(ada.user.id).await.unwrap().unwrap().memberships, []);
    execute(&db, "UPDATE memberships SET deleted_at = NULL").await;
    execute(&db, "UPDATE organizations SET deleted_at = updated_at").await;
    assert_eq!(db.profile(ada.user.id).await.unwrap().unwrap().memberships, []);
}

async fn an_invalid_stored_value_is_an_internal_error(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for statement in [
        "UPDATE memberships SET role = 'owner'",
        "UPDATE users SET kind = 'root'",
        "UPDATE users SET kind = 'admin', email = 'nobody'",
    ] {
        execute(&db, statement).await;
        let outcome = db.profile(ada.user.id).await;
        assert!(matches!(outcome, Err(StoreError::Internal(_))), "{statement}: {outcome:?}");
    }
}
