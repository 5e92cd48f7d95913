//! Deletion of old deliveries.

use launchway_database::Database;
use launchway_domain::{
    clock::Timestamp,
    notifications::{DeliveryQueue as _, DeliveryState, Next, WebhookKind, Write},
    store::UnitOfWork as _,
};

use super::{a_reader, a_stored, an_event, announced, claim, deliveries, record, states, switch};
use crate::builders::{at, execute, id, is_stale};

contract!(
    what_was_over_long_ago_is_forgotten,
    what_is_not_over_is_kept,
    an_event_is_forgotten_with_its_last_delivery,
    at_most_a_thousand_deliveries_are_forgotten_at_once,
    who_forget_at_once_leave_nothing_behind,
);

async fn what_was_over_long_ago_is_forgotten(db: Database) {
    let ada = a_reader(&db, "ada").await;
    // Over a quarter of a second after the tens.
    for (seconds, next) in [(10, Next::Done), (20, Next::Done), (30, Next::GiveUp), (40, Next::GiveUp)] {
        announced(&db, ada.scope(), seconds).await;
        for claimed in claim(&db, 10, seconds).await {
            record(&db, &claimed, next, seconds).await.unwrap();
        }
    }
    let left = async || -> Vec<Timestamp> {
        deliveries(&db, ada.scope()).await.into_iter().map(|delivery| delivery.created_at).collect()
    };
    assert_eq!(db.forget(at(10), at(30), at(0)).await.unwrap(), 0);
    assert_eq!(db.forget(at(20), at(0), at(0)).await.unwrap(), 1);
    assert_eq!(left().await, [at(40), at(30), at(20)]);
    assert_eq!(db.forget(at(0), at(40), at(0)).await.unwrap(), 1);
    assert_eq!(left().await, [at(40), at(20)]);
    assert_eq!(db.forget(at(100), at(100), at(0)).await.unwrap(), 2);
    assert!(left().await.is_empty());
}

async fn what_is_not_over_is_kept(db: Database) {
    let ada = a_reader(&db, "ada").await;
    announced(&db, ada.scope(), 1).await;
    claim(&db, 1, 1).await;
    announced(&db, ada.scope(), 2).await;
    assert_eq!(db.forget(at(1000), at(1000), at(1000)).await.unwrap(), 0);
    assert_eq!(states(&db, ada.scope()).await, [DeliveryState::Pending, DeliveryState::Sending]);
}

async fn an_event_is_forgotten_with_its_last_delivery(db: Database) {
    let ada = a_reader(&db, "ada").await;
    a_stored(&db, &ada, WebhookKind::Discord).await;
    let event = announced(&db, ada.scope(), 1).await;
    let claimed = claim(&db, 10, 1).await;
    record(&db, &claimed[0], Next::Done, 10).await.unwrap();
    record(&db, &claimed[1], Next::GiveUp, 10).await.unwrap();
    assert_eq!(db.forget(at(100), at(0), at(0)).await.unwrap(), 1);
    db.keep_body(event.id, "words".to_owned()).await.unwrap();
    assert_eq!(db.forget(at(100), at(100), at(0)).await.unwrap(), 1);
    assert!(is_stale(&db.keep_body(event.id, "words".to_owned()).await.map(|_| ())));
    assert!(is_stale(&db.keep_body(id(), "words".to_owned()).await.map(|_| ())));
}

async fn at_most_a_thousand_deliveries_are_forgotten_at_once(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let many = (0..1002).map(|_| Write::Announce(an_event(ada.scope(), 1)).into()).collect();
    db.commit(many).await.unwrap();
    for claimed in claim(&db, 10, 2).await {
        record(&db, &claimed, Next::Done, 2).await.unwrap();
    }
    switch(&db, ada.scope(), WebhookKind::Slack, false, 5).await;
    // What was delivered counts as well.
    assert_eq!(db.forget(at(100), at(100), at(0)).await.unwrap(), 1000);
    assert_eq!(db.forget(at(100), at(100), at(0)).await.unwrap(), 2);
    assert_eq!(db.forget(at(100), at(100), at(0)).await.unwrap(), 0);
}

async fn who_forget_at_once_leave_nothing_behind(db: Database) {
    let ada = a_reader(&db, "ada").await;
    a_stored(&db, &ada, WebhookKind::Discord).await;
    for _ in 0..20 {
        announced(&db, ada.scope(), 1).await;
    }
    for kind in [WebhookKind::Slack, WebhookKind::Discord] {
        switch(&db, ada.scope(), kind, false, 5).await;
    }
    let forget = || db.forget(at(100), at(100), at(0));
    let (one, two, three) = tokio::join!(forget(), forget(), forget());
    assert_eq!(one.unwrap() + two.unwrap() + three.unwrap(), 40);
    execute(&db, "CREATE TABLE no_events (id INTEGER CHECK (id = 0))").await;
    execute(&db, "INSERT INTO no_events SELECT COUNT(*) FROM events").await;
}
