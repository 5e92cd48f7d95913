//! Requeuing the deliveries of lost senders.

use launchway_database::Database;
use launchway_domain::{
    notifications::{DeliveryQueue as _, DeliveryState, Next, SenderId, WebhookKind, Write},
    store::StoreError,
};

use super::{
    a_reader, announced, claim, claim_one, delete_organization, deliveries, record, sender, sending, states,
    switch, the_delivery,
};
use crate::builders::{at, commit, is_stale};

contract!(
    a_lease_that_ended_is_taken,
    what_another_run_of_the_instance_held_is_taken_at_once,
    whoever_lost_a_claim_changes_nothing,
    what_is_rescued_is_due_at_once_and_nothing_failed,
    an_attempt_that_was_cut_off_leaves_a_gap,
    what_is_rescued_for_a_channel_that_is_off_or_gone_is_dead,
    who_rescue_at_once_take_each_once,
);

async fn rescue(db: &Database, sender: SenderId, seconds: i64) -> usize {
    db.rescue(sender, at(seconds)).await.unwrap()
}

async fn a_lease_that_ended_is_taken(db: Database) {
    let ada = a_reader(&db, "ada").await;
    // Until 32.
    sending(&db, ada.scope()).await;
    assert_eq!(rescue(&db, sender(2, 2), 31).await, 0);
    assert_eq!(states(&db, ada.scope()).await, [DeliveryState::Sending]);
    assert_eq!(rescue(&db, sender(2, 2), 32).await, 1);
    assert_eq!(states(&db, ada.scope()).await, [DeliveryState::Pending]);
    assert_eq!(rescue(&db, sender(2, 2), 99).await, 0);
}

async fn what_another_run_of_the_instance_held_is_taken_at_once(db: Database) {
    let ada = a_reader(&db, "ada").await;
    sending(&db, ada.scope()).await;
    assert_eq!(rescue(&db, sender(1, 1), 3).await, 0);
    assert_eq!(rescue(&db, sender(2, 2), 3).await, 0);
    assert_eq!(rescue(&db, sender(1, 2), 3).await, 1);
}

async fn whoever_lost_a_claim_changes_nothing(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let lost = sending(&db, ada.scope()).await;
    rescue(&db, sender(1, 2), 5).await;
    for next in [Next::Done, Next::Again(at(9)), Next::GiveUp, Next::Disable] {
        assert!(is_stale(&record(&db, &lost, next, 6).await));
    }
    // The same sender gets it again: the claim of before is still lost.
    let again = claim_one(&db, 6).await;
    assert_eq!((again.claim.delivery, again.claim.sender), (lost.claim.delivery, lost.claim.sender));
    assert!(again.claim.attempt > lost.claim.attempt);
    let outcome: Result<(), StoreError> = record(&db, &lost, Next::Done, 7).await;
    assert!(is_stale(&outcome));
    assert_eq!(the_delivery(&db, ada.scope()).await.attempts, []);
    record(&db, &again, Next::Done, 8).await.unwrap();
}

async fn what_is_rescued_is_due_at_once_and_nothing_failed(db: Database) {
    let ada = a_reader(&db, "ada").await;
    record(&db, &sending(&db, ada.scope()).await, Next::Again(at(10)), 3).await.unwrap();
    claim_one(&db, 10).await;
    rescue(&db, sender(1, 2), 15).await;
    assert_eq!(the_delivery(&db, ada.scope()).await.next_at, Some(at(15)));
    assert_eq!(claim(&db, 10, 14).await, []);
    assert_eq!(claim_one(&db, 15).await.failures, 1);
}

async fn an_attempt_that_was_cut_off_leaves_a_gap(db: Database) {
    let ada = a_reader(&db, "ada").await;
    record(&db, &sending(&db, ada.scope()).await, Next::Again(at(5)), 3).await.unwrap();
    claim_one(&db, 5).await;
    rescue(&db, sender(1, 2), 6).await;
    record(&db, &claim_one(&db, 6).await, Next::Done, 6).await.unwrap();
    let attempts = the_delivery(&db, ada.scope()).await.attempts;
    assert_eq!(attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 3]);
}

async fn what_is_rescued_for_a_channel_that_is_off_or_gone_is_dead(db: Database) {
    let kind = WebhookKind::Slack;
    let residents = [a_reader(&db, "ada").await, a_reader(&db, "bob").await];
    for resident in &residents {
        announced(&db, resident.scope(), 1).await;
    }
    assert_eq!(claim(&db, 10, 2).await.len(), 2);
    switch(&db, residents[0].scope(), kind, false, 3).await;
    commit(&db, Write::DeleteWebhook { scope: residents[1].scope(), kind, at: at(3) }).await.unwrap();
    assert_eq!(rescue(&db, sender(1, 2), 4).await, 2);
    for (resident, reason) in
        residents.iter().zip(["the channel was switched off", "the channel was removed"])
    {
        let dead = the_delivery(&db, resident.scope()).await;
        assert_eq!((dead.state, dead.reason.as_str()), (DeliveryState::Dead, reason));
        assert_eq!(dead.finished_at, Some(at(4)));
    }
    let eve = a_reader(&db, "eve").await;
    sending(&db, eve.scope()).await;
    delete_organization(&db, eve.scope(), 3).await;
    assert_eq!(rescue(&db, sender(1, 2), 4).await, 1);
    assert_eq!(claim(&db, 10, 100).await, []);
}

async fn who_rescue_at_once_take_each_once(db: Database) {
    let mut scopes = Vec::new();
    for name in ["ada", "bob", "eve"] {
        scopes.push(a_reader(&db, name).await.scope());
    }
    for scope in scopes.iter().cycle().take(6) {
        announced(&db, *scope, 1).await;
    }
    assert_eq!(claim(&db, 10, 2).await.len(), 6);
    let rescue = |instance| rescue(&db, sender(instance, 1), 40);
    let rescued = tokio::join!(rescue(2), rescue(3), rescue(4), rescue(5));
    assert_eq!(rescued.0 + rescued.1 + rescued.2 + rescued.3, 6);
    for scope in scopes {
        assert_eq!(deliveries(&db, scope).await.len(), 2);
        assert_eq!(states(&db, scope).await, [DeliveryState::Pending; 2]);
    }
}
