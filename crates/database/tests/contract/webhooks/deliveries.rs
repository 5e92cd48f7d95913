//! Accepted deliveries.

use launchway_database::Database;
use launchway_domain::{
    auth,
    idempotency::BodyHash,
    ids::ApplicationId,
    store::{StoreError, Unique, UnitOfWork as _},
    webhooks::{DeliveryMark, DeliveryMemory as _, WebhookRepository as _, Write},
};
use tokio::task::JoinSet;

use crate::{
    applications::{an_application_of, insert, is_taken, stored},
    builders::{Resident, at, audited, id, is_stale},
};

contract!(
    a_delivery_with_an_id_is_known_by_its_id,
    each_application_takes_it_for_itself,
    a_delivery_without_an_id_is_known_by_its_body,
    a_body_counts_until_another_push_is_taken,
    of_those_who_take_it_at_once_one_does,
    an_old_delivery_is_in_nobodys_way,
    a_delivery_whose_unit_is_undone_is_not_taken,
    old_deliveries_are_forgotten,
);

fn mark(id: &str, body: &str) -> DeliveryMark {
    match id.parse() {
        Ok(id) => DeliveryMark::Id(id),
        Err(_none) => DeliveryMark::Body(BodyHash::of(body.as_bytes())),
    }
}

/// Accepts a delivery; those older than 100 seconds do not count.
fn take(application: ApplicationId, mark: &DeliveryMark, seconds: i64) -> Write {
    Write::Take { application, mark: mark.clone(), since: at(seconds - 100), at: at(seconds) }
}

async fn try_take(db: &Database, id: ApplicationId, mark: &DeliveryMark, at: i64) -> Result<(), StoreError> {
    db.commit(vec![take(id, mark, at).into()]).await
}

async fn web(db: &Database) -> ApplicationId {
    stored(db, &Resident::of(db, "ada").await, "web").await.id
}

fn was_taken(outcome: &Result<(), StoreError>) -> bool {
    is_taken(outcome, Unique::WebhookDelivery)
}

async fn a_delivery_with_an_id_is_known_by_its_id(db: Database) {
    let web = web(&db).await;
    try_take(&db, web, &mark("one", "a"), 10).await.unwrap();
    for known in [mark("one", "a"), mark("one", "b")] {
        assert!(was_taken(&try_take(&db, web, &known, 20).await), "{known:?}");
        assert_eq!(db.taken(&[web], &known, at(9)).await.unwrap(), [web], "{known:?}");
        // After, not at.
        assert_eq!(db.taken(&[web], &known, at(10)).await.unwrap(), [], "{known:?}");
    }
    for other in [mark("two", "a"), mark("", "a")] {
        assert_eq!(db.taken(&[web], &other, at(0)).await.unwrap(), [], "{other:?}");
        try_take(&db, web, &other, 20).await.unwrap();
    }
}

async fn each_application_takes_it_for_itself(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut other = an_application_of(&ada).named("other").build();
    other.id = id();
    insert(&db, &other).await.unwrap();
    let web = stored(&db, &ada, "web").await.id;
    let mark = mark("one", "a");
    try_take(&db, web, &mark, 10).await.unwrap();
    assert_eq!(db.taken(&[web, other.id], &mark, at(0)).await.unwrap(), [web]);
    try_take(&db, other.id, &mark, 10).await.unwrap();
    assert_eq!(db.taken(&[web, other.id], &mark, at(0)).await.unwrap().len(), 2);
    assert_eq!(db.taken(&[other.id], &mark, at(0)).await.unwrap(), [other.id]);
    assert_eq!(db.taken(&[], &mark, at(0)).await.unwrap(), []);
}

async fn a_delivery_without_an_id_is_known_by_its_body(db: Database) {
    let web = web(&db).await;
    let (a, b) = (mark("", "a"), mark("", "b"));
    try_take(&db, web, &a, 10).await.unwrap();
    assert!(was_taken(&try_take(&db, web, &a, 11).await));
    assert_eq!(db.taken(&[web], &b, at(0)).await.unwrap(), []);
    try_take(&db, web, &b, 11).await.unwrap();
    assert!(was_taken(&try_take(&db, web, &b, 12).await));
}

async fn a_body_counts_until_another_push_is_taken(db: Database) {
    let web = web(&db).await;
    let (a, b, with_id) = (mark("", "a"), mark("", "b"), mark("one", "c"));
    try_take(&db, web, &a, 10).await.unwrap();
    try_take(&db, web, &b, 11).await.unwrap();
    try_take(&db, web, &a, 12).await.unwrap();
    assert!(was_taken(&try_take(&db, web, &a, 13).await));
    try_take(&db, web, &with_id, 14).await.unwrap();
    try_take(&db, web, &a, 15).await.unwrap();
    // An id counts for as long as before.
    assert!(was_taken(&try_take(&db, web, &with_id, 16).await));
}

async fn of_those_who_take_it_at_once_one_does(db: Database) {
    let web = web(&db).await;
    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let db = db.clone();
        let mark = mark("one", &number.to_string());
        tasks.spawn(async move { try_take(&db, web, &mark, 10).await });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| was_taken(outcome)).count(), 7, "{outcomes:?}");
}

async fn an_old_delivery_is_in_nobodys_way(db: Database) {
    let web = web(&db).await;
    try_take(&db, web, &mark("one", "a"), 10).await.unwrap();
    assert!(was_taken(&try_take(&db, web, &mark("one", "b"), 109).await));
    try_take(&db, web, &mark("one", "b"), 110).await.unwrap();
}

async fn a_delivery_whose_unit_is_undone_is_not_taken(db: Database) {
    let web = web(&db).await;
    let mark = mark("one", "a");
    let stale = auth::Write::EndSession { id: id(), at: at(0) };
    assert!(is_stale(&db.commit(audited(vec![take(web, &mark, 10).into(), stale.into()])).await));
    assert_eq!(db.taken(&[web], &mark, at(0)).await.unwrap(), []);
    try_take(&db, web, &mark, 11).await.unwrap();
}

async fn old_deliveries_are_forgotten(db: Database) {
    let web = web(&db).await;
    for (number, seconds) in [(1, 10), (2, 20), (3, 30)] {
        try_take(&db, web, &mark(&number.to_string(), &number.to_string()), seconds).await.unwrap();
    }
    db.forget(at(20), at(0)).await.unwrap();
    for (number, left) in [(1, 0), (2, 1), (3, 1)] {
        let mark = mark(&number.to_string(), &number.to_string());
        assert_eq!(db.taken(&[web], &mark, at(0)).await.unwrap().len(), left, "{number}");
    }
}
