//! Contract of `IdempotencyStore` and its write.

use launchway_database::Database;
use launchway_domain::{
    auth,
    idempotency::{BodyHash, IdempotencyKey, IdempotencyStore as _, StoredResponse, Write},
    organizations::Scope,
    secret::Sealed,
    store::{StoreError, Unique, UnitOfWork as _},
};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::builders::{Resident, at, audited, id, is_stale};

contract!(
    a_request_is_remembered_with_what_it_made,
    a_request_is_known_by_scope_user_operation_and_name,
    a_request_is_carried_out_once_whatever_its_body,
    of_those_who_carry_it_out_at_once_one_does,
    an_old_request_is_replaced,
    an_answer_is_kept_with_the_request_that_it_answers,
    a_request_whose_unit_is_undone_is_not_remembered,
    requests_are_forgotten_by_age,
);

fn a_key(resident: &Resident) -> IdempotencyKey {
    IdempotencyKey {
        scope: resident.scope(),
        user_id: resident.user.id,
        operation: "POST /api/v1/applications".to_owned(),
        name: "first try".parse().unwrap(),
        body: BodyHash::of(b"{}"),
    }
}

async fn claim(db: &Database, key: &IdempotencyKey, resource: Uuid, seconds: i64) -> Result<(), StoreError> {
    let (since, at) = (at(seconds - 100), at(seconds));
    db.commit(vec![Write::Claim { key: key.clone(), resource, since, at }.into()]).await
}

fn is_taken(outcome: &Result<(), StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Taken(Unique::IdempotencyKey)))
}

async fn find(db: &Database, key: &IdempotencyKey, since: i64) -> Option<StoredResponse> {
    db.find(key, at(since)).await.unwrap()
}

async fn a_request_is_remembered_with_what_it_made(db: Database) {
    let key = a_key(&Resident::of(&db, "ada").await);
    assert_eq!(find(&db, &key, 0).await, None);
    let resource = id();
    claim(&db, &key, resource, 10).await.unwrap();
    let expected = StoredResponse { body: key.body, resource, answer: None };
    assert_eq!(find(&db, &key, 9).await, Some(expected.clone()));
    // After, not at.
    assert_eq!(find(&db, &key, 10).await, None);
    let other_body = IdempotencyKey { body: BodyHash::of(b"[]"), ..key };
    assert_eq!(find(&db, &other_body, 9).await, Some(expected));
}

async fn a_request_is_known_by_scope_user_operation_and_name(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let key = a_key(&ada);
    claim(&db, &key, id(), 10).await.unwrap();
    for other in [
        IdempotencyKey { scope: Scope::of_record(bob.organization.id), ..key.clone() },
        IdempotencyKey { user_id: bob.user.id, ..key.clone() },
        IdempotencyKey { operation: "POST /api/v1/deployments".to_owned(), ..key.clone() },
        IdempotencyKey { name: "First try".parse().unwrap(), ..key.clone() },
    ] {
        assert_eq!(find(&db, &other, 0).await, None);
        claim(&db, &other, id(), 10).await.unwrap();
    }
}

async fn a_request_is_carried_out_once_whatever_its_body(db: Database) {
    let key = a_key(&Resident::of(&db, "ada").await);
    let resource = id();
    claim(&db, &key, resource, 10).await.unwrap();
    assert!(is_taken(&claim(&db, &key, id(), 20).await));
    let other_body = IdempotencyKey { body: BodyHash::of(b"[]"), ..key.clone() };
    assert!(is_taken(&claim(&db, &other_body, id(), 109).await));
    assert_eq!(find(&db, &key, 0).await, Some(StoredResponse { body: key.body, resource, answer: None }));
}

async fn of_those_who_carry_it_out_at_once_one_does(db: Database) {
    let key = a_key(&Resident::of(&db, "ada").await);
    // The first round makes the row, the second replaces it.
    for seconds in [10, 500] {
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let (db, key, resource) = (db.clone(), key.clone(), id());
            tasks.spawn(async move { (resource, claim(&db, &key, resource, seconds).await) });
        }
        let outcomes = tasks.join_all().await;
        let done: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).collect();
        assert_eq!(done.len(), 1, "{outcomes:?}");
        assert_eq!(outcomes.iter().filter(|(_, outcome)| is_taken(outcome)).count(), 7, "{outcomes:?}");
        assert_eq!(find(&db, &key, seconds - 1).await.unwrap().resource, done[0].0);
    }
}

async fn an_old_request_is_replaced(db: Database) {
    let key = a_key(&Resident::of(&db, "ada").await);
    claim(&db, &key, id(), 10).await.unwrap();
    db.keep_answer(&key, &Sealed("old".to_owned())).await.unwrap();
    assert!(is_taken(&claim(&db, &key, id(), 109).await));
    let (resource, body) = (id(), BodyHash::of(b"[]"));
    claim(&db, &IdempotencyKey { body, ..key.clone() }, resource, 110).await.unwrap();
    assert_eq!(find(&db, &key, 0).await, Some(StoredResponse { body, resource, answer: None }));
}

async fn an_answer_is_kept_with_the_request_that_it_answers(db: Database) {
    let key = a_key(&Resident::of(&db, "ada").await);
    let answer = Sealed("an answer".to_owned());
    db.keep_answer(&key, &answer).await.unwrap();
    assert_eq!(find(&db, &key, 0).await, None);
    claim(&db, &key, id(), 10).await.unwrap();
    let other_body = IdempotencyKey { body: BodyHash::of(b"[]"), ..key.clone() };
    db.keep_answer(&other_body, &answer).await.unwrap();
    assert_eq!(find(&db, &key, 0).await.unwrap().answer, None);
    db.keep_answer(&key, &answer).await.unwrap();
    assert_eq!(find(&db, &key, 0).await.unwrap().answer, Some(answer));
}

async fn a_request_whose_unit_is_undone_is_not_remembered(db: Database) {
    let key = a_key(&Resident::of(&db, "ada").await);
    let claim = Write::Claim { key: key.clone(), resource: id(), since: at(0), at: at(10) };
    let stale = auth::Write::EndSession { id: id(), at: at(0) };
    assert!(is_stale(&db.commit(audited(vec![claim.into(), stale.into()])).await));
    assert_eq!(find(&db, &key, 0).await, None);
}

async fn requests_are_forgotten_by_age(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let key = |seconds: i64| IdempotencyKey { name: seconds.to_string().parse().unwrap(), ..a_key(&ada) };
    for seconds in [10, 20, 30] {
        claim(&db, &key(seconds), id(), seconds).await.unwrap();
    }
    db.forget(at(20)).await.unwrap();
    assert_eq!(find(&db, &key(10), 0).await, None);
    assert!(find(&db, &key(20), 0).await.is_some());
    assert!(find(&db, &key(30), 0).await.is_some());
}
