//! Claiming due deliveries.

use std::collections::BTreeMap;

use launchway_database::Database;
use launchway_domain::{
    notifications::{
        Channel, Claim, ClaimedDelivery, DeliveryFilter, DeliveryState, Next, NotificationRepository as _,
        WebhookKind, Write,
    },
    secret::Sealed,
    store::UnitOfWork as _,
};
use launchway_testkit::builders::a_page;

use super::{
    a_mail, a_reader, a_stored, an_event, announced, claim, claim_one, delivered, deliveries, insert_mail,
    record, sender, states, switch, the_delivery,
};
use crate::builders::{Resident, at, commit, execute};

contract!(
    a_claim_names_who_took_it_and_for_which_attempt,
    of_a_channel_at_most_two_are_running,
    one_slow_channel_holds_nobody_else_up,
    claims_prefer_idle_channels_then_the_oldest_delivery,
    no_more_is_claimed_than_is_wanted,
    a_retry_waits_for_its_moment,
    what_waits_goes_to_the_address_that_is_there_now,
    what_waits_for_a_channel_that_is_off_or_gone_is_ended,
    thousands_of_one_channel_leave_room_for_the_others,
);

async fn a_claim_names_who_took_it_and_for_which_attempt(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let config = a_stored(&db, &ada, WebhookKind::Slack).await;
    let event = announced(&db, ada.scope(), 1).await;
    let claimed = claim_one(&db, 2).await;
    assert_eq!(claimed.event, event);
    assert_eq!((claimed.failures, &claimed.body), (0, &None));
    assert_eq!(claimed.channel, Channel::Webhook { config, secrets: vec![] });
    let delivery = the_delivery(&db, ada.scope()).await;
    assert_eq!(claimed.claim, Claim { delivery: delivery.id, attempt: 1, sender: sender(1, 1) });
    assert_eq!((delivery.state, delivery.next_at), (DeliveryState::Sending, None));
    record(&db, &claimed, Next::Again(at(10)), 3).await.unwrap();
    let again = claim_one(&db, 10).await;
    assert_eq!((again.claim.attempt, again.failures), (2, 1));
}

async fn of_a_channel_at_most_two_are_running(db: Database) {
    let ada = a_reader(&db, "ada").await;
    for seconds in 1..=5 {
        announced(&db, ada.scope(), seconds).await;
    }
    let first = claim(&db, 10, 9).await;
    assert_eq!(first.len(), 2);
    assert_eq!(claim(&db, 10, 9).await, []);
    record(&db, &first[0], Next::Done, 9).await.unwrap();
    assert_eq!(claim(&db, 10, 9).await.len(), 1);
    assert_eq!(claim(&db, 10, 9).await, []);
    record(&db, &first[1], Next::Again(at(50)), 9).await.unwrap();
    assert_eq!(claim(&db, 10, 9).await.len(), 1);
}

async fn one_slow_channel_holds_nobody_else_up(db: Database) {
    let (ada, bob) = (a_reader(&db, "ada").await, a_reader(&db, "bob").await);
    insert_mail(&db, &a_mail(&bob)).await.unwrap();
    for seconds in 1..=20 {
        announced(&db, ada.scope(), seconds).await;
    }
    let slow = claim(&db, 16, 20).await;
    assert_eq!(slow.len(), 2);
    announced(&db, bob.scope(), 30).await;
    let others = claim(&db, 16, 30).await;
    assert_eq!(others.len(), 2);
    assert!(others.iter().all(|claimed| claimed.event.organization_id == bob.organization.id));
}

async fn claims_prefer_idle_channels_then_the_oldest_delivery(db: Database) {
    let mut scopes = Vec::new();
    for name in ["ada", "bob", "eve"] {
        scopes.push(a_reader(&db, name).await.scope());
    }
    let mut ids = BTreeMap::new();
    for (seconds, who) in [(9, 0), (3, 1), (5, 2), (4, 1), (1, 2), (2, 2), (7, 0)] {
        ids.insert(seconds, announced(&db, scopes[who], seconds).await.id);
    }
    let order = |claimed: Vec<ClaimedDelivery>| -> Vec<_> {
        claimed.into_iter().map(|claimed| claimed.event.id).collect()
    };
    let due_at = |moments: &[i64]| -> Vec<_> { moments.iter().map(|moment| ids[moment]).collect() };
    // One of each channel, then one more of each; the third of a channel has to wait.
    assert_eq!(order(claim(&db, 2, 20).await), due_at(&[1, 3]));
    assert_eq!(order(claim(&db, 2, 20).await), due_at(&[7, 2]));
    assert_eq!(order(claim(&db, 4, 20).await), due_at(&[4, 9]));
    assert_eq!(claim(&db, 4, 20).await, []);
}

async fn no_more_is_claimed_than_is_wanted(db: Database) {
    for name in ["ada", "bob", "eve"] {
        let scope = a_reader(&db, name).await.scope();
        announced(&db, scope, 1).await;
        announced(&db, scope, 1).await;
    }
    for (most, got) in [(0, 0), (1, 1), (3, 3), (100, 2), (100, 0)] {
        assert_eq!(claim(&db, most, 1).await.len(), got, "{most}");
    }
}

async fn a_retry_waits_for_its_moment(db: Database) {
    let ada = a_reader(&db, "ada").await;
    announced(&db, ada.scope(), 1).await;
    record(&db, &claim_one(&db, 1).await, Next::Again(at(60)), 1).await.unwrap();
    assert_eq!(claim(&db, 10, 59).await, []);
    assert_eq!(claim(&db, 10, 60).await.len(), 1);
}

async fn what_waits_goes_to_the_address_that_is_there_now(db: Database) {
    let ada = a_reader(&db, "ada").await;
    announced(&db, ada.scope(), 1).await;
    let url = Some(Sealed("another".to_owned()));
    let (scope, kind) = (ada.scope(), WebhookKind::Slack);
    commit(&db, Write::UpdateWebhook { scope, kind, url: url.clone(), is_active: None, at: at(2) })
        .await
        .unwrap();
    let Channel::Webhook { config, .. } = claim_one(&db, 2).await.channel else { panic!("by mail") };
    assert_eq!(Some(config.url), url);
}

/// Such deliveries arise only on PostgreSQL, from two concurrent transactions.
async fn what_waits_for_a_channel_that_is_off_or_gone_is_ended(db: Database) {
    let (ada, bob) = (a_reader(&db, "ada").await, a_reader(&db, "bob").await);
    for scope in [ada.scope(), bob.scope()] {
        announced(&db, scope, 1).await;
    }
    let switched_off = "UPDATE webhook_configs SET is_active = (1 = 0)";
    execute(&db, switched_off).await;
    assert_eq!(claim(&db, 10, 5).await, []);
    for scope in [ada.scope(), bob.scope()] {
        let dead = the_delivery(&db, scope).await;
        assert_eq!((dead.state, dead.reason.as_str()), (DeliveryState::Dead, "the channel was switched off"));
        switch(&db, scope, WebhookKind::Slack, true, 6).await;
        announced(&db, scope, 7).await;
    }
    execute(&db, "DELETE FROM webhook_configs").await;
    assert_eq!(claim(&db, 10, 8).await, []);
    assert_eq!(states(&db, ada.scope()).await, [DeliveryState::Dead; 2]);
    assert_eq!(deliveries(&db, bob.scope()).await[0].reason, "the channel was removed");
    assert_eq!(delivered(&db, 9).await, []);
}

/// However many deliveries of a channel are pending, the others get their share of a claim.
async fn thousands_of_one_channel_leave_room_for_the_others(db: Database) {
    let (ada, bob) = (a_reader(&db, "ada").await, a_reader(&db, "bob").await);
    let flood = (0..2_000).map(|_| Write::Announce(an_event(ada.scope(), 1)).into()).collect();
    db.commit(flood).await.unwrap();
    announced(&db, bob.scope(), 2).await;
    let claimed = claim(&db, 16, 3).await;
    let whose: Vec<_> = claimed.iter().map(|claimed| claimed.event.organization_id).collect();
    assert_eq!(whose, [ada.organization.id, bob.organization.id, ada.organization.id]);
    assert_eq!(claim(&db, 16, 3).await, []);
    switch(&db, ada.scope(), WebhookKind::Slack, false, 4).await;
    let filter = DeliveryFilter { state: Some(DeliveryState::Dead), channel: None };
    assert_eq!(db.deliveries(ada.scope(), filter, a_page(1, 1)).await.unwrap().total, 1_998);
}
