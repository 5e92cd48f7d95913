//! Deliveries that are no longer sent, and replaying them.

use launchway_database::Database;
use launchway_domain::{
    ids::DeliveryId,
    notifications::{
        Delivery, DeliveryFilter, DeliveryQueue as _, DeliveryState, Next, NotificationRepository as _,
        WebhookKind, Write,
    },
    organizations::Scope,
    store::StoreError,
};
use launchway_testkit::builders::a_page;

use super::{
    a_mail, a_reader, a_stored, announced, claim, claim_one, delete_organization, deliveries, insert_mail,
    record, sender, sending, states, switch, the_delivery,
};
use crate::builders::{Resident, at, commit, id, is_stale};

contract!(
    what_waits_for_a_channel_that_is_switched_off_is_dead,
    deleting_a_channel_ends_its_deliveries_but_keeps_them,
    what_is_being_sent_when_its_channel_goes_is_recorded,
    another_channel_of_the_same_kind_does_not_wake_what_is_dead,
    what_waits_for_an_organization_that_is_deleted_is_dead,
    a_dead_delivery_is_sent_again_from_the_beginning,
    what_is_not_dead_is_not_sent_again,
    what_has_no_active_channel_is_not_sent_again,
    of_two_who_ask_for_it_again_one_does,
    others_do_not_ask_for_it_again,
);

const KIND: WebhookKind = WebhookKind::Slack;

async fn replay(db: &Database, scope: Scope, id: DeliveryId, seconds: i64) -> Result<(), StoreError> {
    commit(db, Write::Replay { scope, id, at: at(seconds) }).await
}

/// A delivery that was given up at 3, with an active channel.
async fn a_dead_one(db: &Database, scope: Scope) -> Delivery {
    record(db, &sending(db, scope).await, Next::GiveUp, 3).await.unwrap();
    the_delivery(db, scope).await
}

fn assert_dead(delivery: &Delivery, reason: &str, seconds: i64) {
    assert_eq!((delivery.state, delivery.reason.as_str()), (DeliveryState::Dead, reason));
    assert_eq!((delivery.next_at, delivery.finished_at), (None, Some(at(seconds))));
}

async fn what_waits_for_a_channel_that_is_switched_off_is_dead(db: Database) {
    let ada = a_reader(&db, "ada").await;
    a_stored(&db, &ada, WebhookKind::Discord).await;
    announced(&db, ada.scope(), 1).await;
    switch(&db, ada.scope(), KIND, false, 5).await;
    for delivery in deliveries(&db, ada.scope()).await {
        match delivery.channel.as_str() {
            "slack" => assert_dead(&delivery, "the channel was switched off", 5),
            _ => assert_eq!(delivery.state, DeliveryState::Pending),
        }
    }
    switch(&db, ada.scope(), KIND, true, 6).await;
    assert_eq!(claim(&db, 10, 7).await.len(), 1);
}

async fn deleting_a_channel_ends_its_deliveries_but_keeps_them(db: Database) {
    let ada = a_reader(&db, "ada").await;
    record(&db, &sending(&db, ada.scope()).await, Next::Again(at(50)), 3).await.unwrap();
    commit(&db, Write::DeleteWebhook { scope: ada.scope(), kind: KIND, at: at(5) }).await.unwrap();
    let dead = the_delivery(&db, ada.scope()).await;
    assert_dead(&dead, "the channel was removed", 5);
    assert_eq!(dead.attempts.len(), 1);
    assert_eq!(db.delivery(ada.scope(), dead.id).await.unwrap(), Some(dead));
}

async fn what_is_being_sent_when_its_channel_goes_is_recorded(db: Database) {
    for (name, is_deleted) in [("ada", true), ("bob", false)] {
        let scope = a_reader(&db, name).await.scope();
        announced(&db, scope, 1).await;
        announced(&db, scope, 1).await;
        let under_way = claim(&db, 10, 2).await;
        let reason = match is_deleted {
            true => {
                commit(&db, Write::DeleteWebhook { scope, kind: KIND, at: at(3) }).await.unwrap();
                "the channel was removed"
            }
            false => {
                switch(&db, scope, KIND, false, 3).await;
                "the channel was switched off"
            }
        };
        assert_eq!(states(&db, scope).await, [DeliveryState::Sending; 2]);
        record(&db, &under_way[0], Next::Done, 4).await.unwrap();
        record(&db, &under_way[1], Next::Again(at(9)), 4).await.unwrap();
        let delivered = db.delivery(scope, under_way[0].claim.delivery).await.unwrap().unwrap();
        assert_eq!(delivered.state, DeliveryState::Delivered);
        let dead = db.delivery(scope, under_way[1].claim.delivery).await.unwrap().unwrap();
        assert_eq!((dead.state, dead.reason.as_str()), (DeliveryState::Dead, reason));
        assert_eq!(dead.attempts.len(), 1);
    }
}

async fn another_channel_of_the_same_kind_does_not_wake_what_is_dead(db: Database) {
    let ada = a_reader(&db, "ada").await;
    announced(&db, ada.scope(), 1).await;
    commit(&db, Write::DeleteWebhook { scope: ada.scope(), kind: KIND, at: at(5) }).await.unwrap();
    a_stored(&db, &ada, KIND).await;
    assert_eq!(claim(&db, 10, 9).await, []);
    let dead = the_delivery(&db, ada.scope()).await;
    assert!(is_stale(&replay(&db, ada.scope(), dead.id, 9).await));
}

async fn what_waits_for_an_organization_that_is_deleted_is_dead(db: Database) {
    let ada = a_reader(&db, "ada").await;
    insert_mail(&db, &a_mail(&ada)).await.unwrap();
    announced(&db, ada.scope(), 1).await;
    let mut under_way = claim(&db, 1, 2).await;
    let claimed = under_way.pop().unwrap();
    let ids: Vec<_> = deliveries(&db, ada.scope()).await.iter().map(|delivery| delivery.id).collect();
    delete_organization(&db, ada.scope(), 3).await;
    assert_eq!(claim(&db, 10, 100).await, []);
    assert_eq!(deliveries(&db, ada.scope()).await, []);
    for id in ids {
        assert_eq!(db.delivery(ada.scope(), id).await.unwrap(), None);
        assert!(is_stale(&replay(&db, ada.scope(), id, 5).await));
    }
    record(&db, &claimed, Next::Again(at(9)), 5).await.unwrap();
    assert_eq!(claim(&db, 10, 100).await, []);
    // Both are over, and forgotten like others.
    assert_eq!(db.forget(at(0), at(100), at(100)).await.unwrap(), 2);
}

async fn a_dead_delivery_is_sent_again_from_the_beginning(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let dead = a_dead_one(&db, ada.scope()).await;
    replay(&db, ada.scope(), dead.id, 60).await.unwrap();
    let waiting = the_delivery(&db, ada.scope()).await;
    let expected = Delivery {
        state: DeliveryState::Pending,
        next_at: Some(at(60)),
        reason: String::new(),
        finished_at: None,
        ..dead.clone()
    };
    assert_eq!(waiting, expected);
    let claimed = claim_one(&db, 60).await;
    assert_eq!((claimed.failures, claimed.claim.attempt), (0, 2));
    record(&db, &claimed, Next::Done, 60).await.unwrap();
    let delivered = the_delivery(&db, ada.scope()).await;
    assert_eq!(delivered.attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(delivered.attempts[0], dead.attempts[0]);
}

async fn what_is_not_dead_is_not_sent_again(db: Database) {
    let ada = a_reader(&db, "ada").await;
    announced(&db, ada.scope(), 1).await;
    let id_of_it = the_delivery(&db, ada.scope()).await.id;
    assert!(is_stale(&replay(&db, ada.scope(), id_of_it, 2).await));
    let claimed = claim_one(&db, 2).await;
    assert!(is_stale(&replay(&db, ada.scope(), id_of_it, 3).await));
    record(&db, &claimed, Next::Done, 3).await.unwrap();
    assert!(is_stale(&replay(&db, ada.scope(), id_of_it, 4).await));
    assert!(is_stale(&replay(&db, ada.scope(), id(), 4).await));
    assert_eq!(states(&db, ada.scope()).await, [DeliveryState::Delivered]);
}

async fn what_has_no_active_channel_is_not_sent_again(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let dead = a_dead_one(&db, ada.scope()).await;
    switch(&db, ada.scope(), KIND, false, 5).await;
    assert!(is_stale(&replay(&db, ada.scope(), dead.id, 6).await));
    switch(&db, ada.scope(), KIND, true, 7).await;
    replay(&db, ada.scope(), dead.id, 8).await.unwrap();
    record(&db, &claim_one(&db, 8).await, Next::GiveUp, 8).await.unwrap();
    commit(&db, Write::DeleteWebhook { scope: ada.scope(), kind: KIND, at: at(9) }).await.unwrap();
    assert!(is_stale(&replay(&db, ada.scope(), dead.id, 10).await));
    assert_eq!(states(&db, ada.scope()).await, [DeliveryState::Dead]);
}

async fn of_two_who_ask_for_it_again_one_does(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let dead = a_dead_one(&db, ada.scope()).await;
    let (one, two) = tokio::join!(replay(&db, ada.scope(), dead.id, 5), replay(&db, ada.scope(), dead.id, 6));
    let outcomes = [one, two];
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| is_stale(outcome)).count(), 1);
}

async fn others_do_not_ask_for_it_again(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let bob = Resident::of(&db, "bob").await;
    let dead = a_dead_one(&db, ada.scope()).await;
    assert!(is_stale(&replay(&db, bob.scope(), dead.id, 5).await));
    assert_eq!(the_delivery(&db, ada.scope()).await, dead);
    let page = db.deliveries(bob.scope(), DeliveryFilter::default(), a_page(1, 10)).await.unwrap();
    assert_eq!((page.items, page.total), (vec![], 0));
    assert_eq!(db.delivery(bob.scope(), dead.id).await.unwrap(), None);
    assert_eq!(db.rescue(sender(9, 9), at(5)).await.unwrap(), 0);
}
