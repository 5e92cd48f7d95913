//! Contract of `DeployKeyRepository` and its writes.

use launchway_database::Database;
use launchway_domain::{
    ids::OrganizationId,
    organizations::{DeployKey, DeployKeyRepository as _, Write},
    secret::Sealed,
};
use tokio::task::JoinSet;

use crate::builders::{Resident, at, commit, id, is_stale};

contract!(
    a_key_is_read_as_it_was_stored_and_only_by_its_organization,
    an_organization_gets_a_first_key_once,
    of_those_who_make_a_first_key_at_once_one_does,
    a_key_is_replaced_whether_or_not_there_was_one,
    an_organization_that_is_gone_has_no_key_and_gets_none,
);

fn a_key(organization_id: OrganizationId, number: i64) -> DeployKey {
    DeployKey {
        organization_id,
        public_key: format!("ssh-ed25519 AAAA{number} launchway"),
        private_key: Sealed(format!("sealed {number}")),
        created_at: at(number),
    }
}

async fn a_key_is_read_as_it_was_stored_and_only_by_its_organization(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    assert_eq!(db.deploy_key(ada.scope()).await.unwrap(), None);
    let key = a_key(ada.organization.id, 1);
    commit(&db, Write::FirstDeployKey(key.clone())).await.unwrap();
    assert_eq!(db.deploy_key(ada.scope()).await.unwrap(), Some(key));
    assert_eq!(db.deploy_key(bob.scope()).await.unwrap(), None);
}

async fn an_organization_gets_a_first_key_once(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let first = a_key(ada.organization.id, 1);
    commit(&db, Write::FirstDeployKey(first.clone())).await.unwrap();
    assert!(is_stale(&commit(&db, Write::FirstDeployKey(a_key(ada.organization.id, 2))).await));
    assert_eq!(db.deploy_key(ada.scope()).await.unwrap(), Some(first));
}

async fn of_those_who_make_a_first_key_at_once_one_does(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let (db, key) = (db.clone(), a_key(ada.organization.id, number));
        tasks.spawn(async move { (key.clone(), commit(&db, Write::FirstDeployKey(key)).await) });
    }
    let outcomes = tasks.join_all().await;
    let mut made = outcomes.iter().filter(|(_, outcome)| outcome.is_ok());
    let (key, _) = made.next().unwrap();
    assert!(made.next().is_none());
    assert_eq!(outcomes.iter().filter(|(_, outcome)| is_stale(outcome)).count(), 7);
    assert_eq!(db.deploy_key(ada.scope()).await.unwrap().as_ref(), Some(key));
}

async fn a_key_is_replaced_whether_or_not_there_was_one(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for number in 1..=2 {
        let key = a_key(ada.organization.id, number);
        commit(&db, Write::ReplaceDeployKey(key.clone())).await.unwrap();
        assert_eq!(db.deploy_key(ada.scope()).await.unwrap(), Some(key));
    }
}

async fn an_organization_that_is_gone_has_no_key_and_gets_none(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    commit(&db, Write::FirstDeployKey(a_key(ada.organization.id, 1))).await.unwrap();
    commit(&db, Write::Delete { scope: ada.scope(), at: at(2) }).await.unwrap();
    assert_eq!(db.deploy_key(ada.scope()).await.unwrap(), None);
    for organization in [ada.organization.id, id()] {
        let key = a_key(organization, 3);
        assert!(is_stale(&commit(&db, Write::FirstDeployKey(key.clone())).await));
        assert!(is_stale(&commit(&db, Write::ReplaceDeployKey(key)).await));
    }
}
