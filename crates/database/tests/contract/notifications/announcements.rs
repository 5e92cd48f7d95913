//! Emitting events.

use std::collections::BTreeSet;

use launchway_database::Database;
use launchway_domain::{
    notifications::{
        ChannelKind, Delivery, DeliveryQueue as _, DeliveryState, EventKind, WebhookConfig, WebhookKind,
        Write,
    },
    organizations,
    store::UnitOfWork as _,
};

use super::{
    a_mail, a_reader, a_stored, a_webhook, an_event, announce, announced, claim, claim_one,
    delete_organization, deliveries, insert, insert_mail, switch, the_delivery,
};
use crate::builders::{Resident, at, execute, id, is_stale};

contract!(
    every_active_channel_is_notified_once,
    who_has_no_active_channel_is_not_notified,
    nobody_is_notified_of_what_happens_to_others,
    a_deleted_organization_is_not_notified,
    what_is_announced_waits_and_is_due_at_once,
    an_event_is_delivered_as_it_was_announced,
    what_a_failed_unit_announces_did_not_happen,
    the_first_words_for_an_event_count,
);

async fn every_active_channel_is_notified_once(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for kind in WebhookKind::ALL {
        a_stored(&db, &ada, *kind).await;
    }
    insert_mail(&db, &a_mail(&ada)).await.unwrap();
    let event = announced(&db, ada.scope(), 1).await;
    let found = deliveries(&db, ada.scope()).await;
    assert!(found.iter().all(|delivery| delivery.event_id == event.id));
    let channels: Vec<_> = found.iter().map(|delivery| delivery.channel).collect();
    assert_eq!(channels.len(), 4);
    assert_eq!(channels.into_iter().collect::<BTreeSet<_>>(), ChannelKind::ALL.iter().copied().collect());
}

async fn who_has_no_active_channel_is_not_notified(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    announced(&db, ada.scope(), 1).await;
    insert(&db, &WebhookConfig { is_active: false, ..a_webhook(&ada, WebhookKind::Slack) }).await.unwrap();
    announced(&db, ada.scope(), 2).await;
    switch(&db, ada.scope(), WebhookKind::Slack, true, 3).await;
    assert_eq!(deliveries(&db, ada.scope()).await, []);
    // Not even the events were kept: nothing stands in the way of removing every trace of them.
    execute(&db, "CREATE TABLE no_events (id INTEGER CHECK (id = 0))").await;
    execute(&db, "INSERT INTO no_events SELECT COUNT(*) FROM events").await;
}

async fn nobody_is_notified_of_what_happens_to_others(db: Database) {
    let (ada, bob) = (a_reader(&db, "ada").await, a_reader(&db, "bob").await);
    announced(&db, ada.scope(), 1).await;
    assert_eq!(deliveries(&db, ada.scope()).await.len(), 1);
    assert_eq!(deliveries(&db, bob.scope()).await, []);
}

async fn a_deleted_organization_is_not_notified(db: Database) {
    let ada = a_reader(&db, "ada").await;
    delete_organization(&db, ada.scope(), 1).await;
    announced(&db, ada.scope(), 2).await;
    announce(&db, &an_event(organizations::Scope::of_record(id()), 2)).await.unwrap();
    assert_eq!(claim(&db, 10, 100).await, []);
}

async fn what_is_announced_waits_and_is_due_at_once(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let event = announced(&db, ada.scope(), 7).await;
    let delivery = the_delivery(&db, ada.scope()).await;
    let expected = Delivery {
        id: delivery.id,
        event_id: event.id,
        event: EventKind::MemberAdded,
        channel: ChannelKind::Slack,
        state: DeliveryState::Pending,
        next_at: Some(at(7)),
        reason: String::new(),
        attempts: vec![],
        created_at: at(7),
        finished_at: None,
    };
    assert_eq!(delivery, expected);
    assert_eq!(claim(&db, 10, 6).await, []);
    assert_eq!(claim(&db, 10, 7).await.len(), 1);
}

async fn an_event_is_delivered_as_it_was_announced(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let event = announced(&db, ada.scope(), 7).await;
    let claimed = claim_one(&db, 7).await;
    assert_eq!((claimed.event, claimed.body), (event, None));
}

async fn what_a_failed_unit_announces_did_not_happen(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let announce = Write::Announce(an_event(ada.scope(), 1)).into();
    let replay = Write::Replay { scope: ada.scope(), id: id(), at: at(1) }.into();
    let unit = crate::builders::audited(vec![announce, replay]);
    assert!(is_stale(&db.commit(unit).await));
    assert_eq!(deliveries(&db, ada.scope()).await, []);
}

async fn the_first_words_for_an_event_count(db: Database) {
    let ada = a_reader(&db, "ada").await;
    a_stored(&db, &ada, WebhookKind::Discord).await;
    let event = announced(&db, ada.scope(), 1).await;
    let keep = |words: &str| db.keep_body(event.id, words.to_owned());
    let (one, two) = tokio::join!(keep("one ü\n\"1\""), keep("two"));
    let kept = one.unwrap();
    assert!(["one ü\n\"1\"", "two"].contains(&kept.as_str()));
    assert_eq!(two.unwrap(), kept);
    assert_eq!(keep("three").await.unwrap(), kept);
    let bodies: Vec<_> = claim(&db, 10, 1).await.into_iter().map(|claimed| claimed.body).collect();
    assert_eq!(bodies, [Some(kept.clone()), Some(kept)]);
    let unknown = db.keep_body(id(), "words".to_owned()).await.map(|_| ());
    assert!(is_stale(&unknown));
}
