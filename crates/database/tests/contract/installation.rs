//! Contract of `auth::Write::ClaimInstallation`, which creates the first administrator.

use launchway_database::Database;
use launchway_domain::{
    auth::{CredentialRepository as _, Write},
    store::{self, StoreError, Unique, UnitOfWork as _},
    users::UserRepository as _,
};
use tokio::task::JoinSet;

use crate::builders::{Resident, at, audited, commit};

contract!(
    an_installation_begins_without_an_administrator,
    an_installation_is_claimed_once,
    exactly_one_of_two_hundred_concurrent_claims_succeeds,
);

fn claim(resident: &Resident) -> Vec<store::Write> {
    let mut writes = resident.writes();
    writes.push(Write::ClaimInstallation { admin: resident.user.id, at: at(0) }.into());
    audited(writes)
}

async fn an_installation_begins_without_an_administrator(db: Database) {
    Resident::of(&db, "ada").await;
    assert!(!db.admin_registered().await.unwrap());
}

async fn an_installation_is_claimed_once(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let write = Write::ClaimInstallation { admin: ada.user.id, at: at(0) };
    commit(&db, write.clone()).await.unwrap();
    assert!(db.admin_registered().await.unwrap());
    let outcome = commit(&db, write).await;
    assert!(matches!(outcome, Err(StoreError::Taken(Unique::Installation))), "{outcome:?}");
}

async fn exactly_one_of_two_hundred_concurrent_claims_succeeds(db: Database) {
    let residents: Vec<_> = (0..200).map(|n| Resident::called(&format!("user{n}"))).collect();
    let mut tasks = JoinSet::new();
    for resident in &residents {
        let (db, writes) = (db.clone(), claim(resident));
        tasks.spawn(async move { db.commit(writes).await });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    let taken =
        |outcome: &&Result<(), StoreError>| matches!(outcome, Err(StoreError::Taken(Unique::Installation)));
    assert_eq!(outcomes.iter().filter(taken).count(), 199);

    let mut profiles = Vec::new();
    for resident in &residents {
        profiles.extend(db.profile(resident.user.id).await.unwrap());
    }
    assert_eq!(profiles.len(), 1);
    assert_eq!(profiles[0].memberships.len(), 1);
    // The names of the losers' organizations are free, so those were undone as well.
    for resident in residents.iter().filter(|resident| resident.user.id != profiles[0].user.id) {
        db.commit(audited(resident.writes())).await.unwrap();
    }
}
