//! The secrets of repositories.

use launchway_database::Database;
use launchway_domain::{
    organizations,
    webhooks::{DeliveryMemory as _, KeptSecret, RepositoryKey, WebhookRepository as _, Write},
};
use tokio::task::JoinSet;

use super::{a_repository, a_secret, confirm, give, replace};
use crate::builders::{Resident, at, commit, id, is_stale};

contract!(
    a_secret_is_readable_by_its_organization_only,
    a_repository_gets_a_first_secret_once,
    of_those_who_make_a_first_secret_at_once_one_does,
    a_secret_is_replaced_and_the_old_one_stays_valid_for_a_while,
    of_secrets_replaced_at_once_one_is_returned,
    only_so_many_old_secrets_are_valid,
    every_organization_with_the_repository_is_found,
    an_organization_that_is_gone_has_no_secret_and_gets_none,
    that_a_push_was_verified_is_remembered_across_secrets,
    old_secrets_are_forgotten,
);

async fn valid(db: &Database, repository: &RepositoryKey, seconds: i64) -> Vec<KeptSecret> {
    db.secrets(std::slice::from_ref(repository), at(seconds)).await.unwrap()
}

async fn a_secret_is_readable_by_its_organization_only(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let engine = a_repository("engine");
    assert_eq!(db.secret(ada.scope(), &engine).await.unwrap(), None);
    let secret = a_secret(ada.organization.id, &engine, 1);
    give(&db, &secret).await.unwrap();
    assert_eq!(db.secret(ada.scope(), &engine).await.unwrap(), Some(secret));
    assert_eq!(db.secret(bob.scope(), &engine).await.unwrap(), None);
    assert_eq!(db.secret(ada.scope(), &a_repository("engines")).await.unwrap(), None);
}

async fn a_repository_gets_a_first_secret_once(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let engine = a_repository("engine");
    let first = a_secret(ada.organization.id, &engine, 1);
    give(&db, &first).await.unwrap();
    assert!(is_stale(&give(&db, &a_secret(ada.organization.id, &engine, 2)).await));
    assert_eq!(db.secret(ada.scope(), &engine).await.unwrap(), Some(first));
    give(&db, &a_secret(ada.organization.id, &a_repository("other"), 3)).await.unwrap();
}

async fn of_those_who_make_a_first_secret_at_once_one_does(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let engine = a_repository("engine");
    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let (db, secret) = (db.clone(), a_secret(ada.organization.id, &engine, number));
        tasks.spawn(async move { (secret.clone(), give(&db, &secret).await) });
    }
    let outcomes = tasks.join_all().await;
    let made: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).collect();
    assert_eq!(made.len(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|(_, outcome)| is_stale(outcome)).count(), 7);
    assert_eq!(db.secret(ada.scope(), &engine).await.unwrap().as_ref(), Some(&made[0].0));
}

async fn a_secret_is_replaced_and_the_old_one_stays_valid_for_a_while(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let engine = a_repository("engine");
    let [first, second, third] = [10, 20, 30].map(|at| a_secret(ada.organization.id, &engine, at));
    // Whether or not there was one.
    replace(&db, &first, 110).await.unwrap();
    replace(&db, &second, 120).await.unwrap();
    replace(&db, &third, 130).await.unwrap();
    assert_eq!(db.secret(ada.scope(), &engine).await.unwrap(), Some(third.clone()));
    assert_eq!(valid(&db, &engine, 119).await, [third.clone(), second.clone(), first]);
    // The end of the validity is exclusive.
    assert_eq!(valid(&db, &engine, 120).await, [third.clone(), second]);
    assert_eq!(valid(&db, &engine, 10_000).await, [third]);
}

async fn of_secrets_replaced_at_once_one_is_returned(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let engine = a_repository("engine");
    let mut tasks = JoinSet::new();
    for number in 0..4 {
        let (db, secret) = (db.clone(), a_secret(ada.organization.id, &engine, number));
        tasks.spawn(async move { replace(&db, &secret, 1000).await });
    }
    for outcome in tasks.join_all().await {
        outcome.unwrap();
    }
    assert!(db.secret(ada.scope(), &engine).await.unwrap().is_some());
    assert_eq!(valid(&db, &engine, 999).await.len(), 4);
    assert_eq!(valid(&db, &engine, 1000).await.len(), 1);
}

async fn only_so_many_old_secrets_are_valid(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let engine = a_repository("engine");
    for number in 0..10 {
        replace(&db, &a_secret(ada.organization.id, &engine, number), 1000).await.unwrap();
    }
    let valid = valid(&db, &engine, 500).await;
    let made: Vec<_> = valid.iter().map(|secret| secret.created_at).collect();
    assert_eq!(made, [9, 8, 7, 6, 5, 4].map(at));
    assert_eq!(valid.len(), 1 + usize::try_from(KeptSecret::MOST_REPLACED).unwrap());
}

async fn every_organization_with_the_repository_is_found(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let [engine, mill, other] = ["engine", "mill", "other"].map(a_repository);
    let secrets = [
        a_secret(bob.organization.id, &mill, 3),
        a_secret(bob.organization.id, &engine, 2),
        a_secret(ada.organization.id, &engine, 1),
    ];
    for secret in &secrets {
        give(&db, secret).await.unwrap();
    }
    give(&db, &a_secret(ada.organization.id, &other, 4)).await.unwrap();
    assert_eq!(db.secrets(&[engine, mill, a_repository("none")], at(5)).await.unwrap(), secrets);
    assert_eq!(db.secrets(&[], at(5)).await.unwrap(), []);
}

async fn an_organization_that_is_gone_has_no_secret_and_gets_none(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let engine = a_repository("engine");
    give(&db, &a_secret(ada.organization.id, &engine, 1)).await.unwrap();
    commit(&db, organizations::Write::Delete { scope: ada.scope(), at: at(2) }).await.unwrap();
    assert_eq!(db.secret(ada.scope(), &engine).await.unwrap(), None);
    assert_eq!(valid(&db, &engine, 3).await, []);
    for organization in [ada.organization.id, id()] {
        let secret = a_secret(organization, &a_repository("other"), 3);
        assert!(is_stale(&give(&db, &secret).await));
        assert!(is_stale(&replace(&db, &secret, 100).await));
    }
}

async fn that_a_push_was_verified_is_remembered_across_secrets(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let [engine, other] = ["engine", "other"].map(a_repository);
    let organization = ada.organization.id;
    give(&db, &a_secret(organization, &engine, 1)).await.unwrap();
    give(&db, &a_secret(organization, &other, 1)).await.unwrap();
    give(&db, &a_secret(bob.organization.id, &engine, 1)).await.unwrap();
    confirm(&db, organization, &engine, 5).await;
    confirm(&db, organization, &engine, 6).await;
    replace(&db, &a_secret(organization, &engine, 7), 100).await.unwrap();
    let confirmed = async |resident: &Resident, repository| {
        db.secret(resident.scope(), repository).await.unwrap().unwrap().confirmed_at
    };
    assert_eq!(confirmed(&ada, &engine).await, Some(at(5)));
    assert_eq!(confirmed(&ada, &other).await, None);
    assert_eq!(confirmed(&bob, &engine).await, None);
    assert!(!Write::Confirm { scope: ada.scope(), repository: engine, at: at(1) }.needs_audit());
}

async fn old_secrets_are_forgotten(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let engine = a_repository("engine");
    for number in 1..=3 {
        replace(&db, &a_secret(ada.organization.id, &engine, number), 100 + number).await.unwrap();
    }
    db.forget(at(0), at(103)).await.unwrap();
    let left: Vec<_> = valid(&db, &engine, 0).await.into_iter().map(|secret| secret.created_at).collect();
    assert_eq!(left, [at(3), at(2)]);
    db.forget(at(0), at(10_000)).await.unwrap();
    assert_eq!(valid(&db, &engine, 0).await.len(), 1);
}
