//! Organizations: what `organizations::Write` promises.

use launchway_domain::{
    organizations::{Role, Write},
    store::{StoreError, Unique},
    users::UserRepository as _,
};
use launchway_infrastructure::database::Database;

use crate::builders::{Resident, a_membership, an_organization, commit, execute};

contract!(
    an_organization_is_read_as_it_was_written,
    a_name_in_use_is_taken_in_any_case,
    the_name_of_a_deleted_organization_is_free_again,
    a_member_cannot_join_twice,
    a_member_who_left_can_join_again,
);

async fn an_organization_is_read_as_it_was_written(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let read = db.profile(ada.user.id).await.unwrap().unwrap().memberships.remove(0);
    assert_eq!((read.organization, read.membership), (ada.organization, ada.membership));
}

async fn a_name_in_use_is_taken_in_any_case(db: Database) {
    commit(&db, Write::Insert(an_organization("Müller & Co"))).await.unwrap();
    let outcome = commit(&db, Write::Insert(an_organization("MÜLLER & CO"))).await;
    assert!(matches!(outcome, Err(StoreError::Taken(Unique::OrganizationName))), "{outcome:?}");
}

async fn the_name_of_a_deleted_organization_is_free_again(db: Database) {
    commit(&db, Write::Insert(an_organization("Acme"))).await.unwrap();
    execute(&db, "UPDATE organizations SET deleted_at = updated_at").await;
    commit(&db, Write::Insert(an_organization("Acme"))).await.unwrap();
}

async fn a_member_cannot_join_twice(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let again = a_membership(&ada.organization, &ada.user, Role::Viewer);
    let outcome = commit(&db, Write::InsertMembership(again)).await;
    assert!(matches!(outcome, Err(StoreError::Taken(Unique::Membership))), "{outcome:?}");
}

async fn a_member_who_left_can_join_again(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    execute(&db, "UPDATE memberships SET deleted_at = updated_at").await;
    let again = a_membership(&ada.organization, &ada.user, Role::Viewer);
    commit(&db, Write::InsertMembership(again)).await.unwrap();
}
