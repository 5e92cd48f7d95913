//! The outcome of attempts.

use std::time::Duration;

use chrono::TimeDelta;
use launchway_database::Database;
use launchway_domain::{
    notifications::{
        Attempt, DeliveryQueue as _, DeliveryState, Next, NotificationRepository as _, WebhookKind,
    },
    store::StoreError,
};
use uuid::Uuid;

use super::{
    a_mail, a_reader, a_stored, an_attempt, announced, claim, claim_one, config_of, deliveries, insert_mail,
    record, sender, sending, the_delivery,
};
use crate::builders::{Resident, at, id, is_stale};

contract!(
    what_was_taken_is_delivered,
    what_failed_waits_for_another_attempt_and_counts,
    what_is_given_up_is_dead_and_says_why,
    a_receiver_that_wants_nothing_switches_its_channel_off,
    a_mail_server_that_wants_nothing_switches_mail_off,
    what_went_wrong_is_kept_up_to_a_length,
    attempts_are_listed_as_they_were_made,
    a_claim_that_does_not_hold_changes_nothing,
    of_two_who_record_the_same_attempt_one_does,
);

const QUARTER: TimeDelta = TimeDelta::milliseconds(250);

async fn what_was_taken_is_delivered(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let claimed = sending(&db, ada.scope()).await;
    record(&db, &claimed, Next::Done, 3).await.unwrap();
    let delivered = the_delivery(&db, ada.scope()).await;
    assert_eq!((delivered.state, delivered.finished_at), (DeliveryState::Delivered, Some(at(3) + QUARTER)));
    assert_eq!((delivered.reason.as_str(), delivered.next_at), ("", None));
    assert_eq!(delivered.attempts, [an_attempt(&claimed, 3, Some(200), "")]);
    assert_eq!(claim(&db, 10, 1000).await, []);
}

async fn what_failed_waits_for_another_attempt_and_counts(db: Database) {
    let ada = a_reader(&db, "ada").await;
    announced(&db, ada.scope(), 1).await;
    for failures in 0..3_u32 {
        let seconds = 10 * i64::from(failures + 1);
        let claimed = claim_one(&db, seconds).await;
        assert_eq!(claimed.failures, failures);
        record(&db, &claimed, Next::Again(at(seconds + 10)), seconds).await.unwrap();
        let waiting = the_delivery(&db, ada.scope()).await;
        assert_eq!((waiting.state, waiting.next_at), (DeliveryState::Pending, Some(at(seconds + 10))));
        assert_eq!((waiting.reason.as_str(), waiting.finished_at), ("", None));
    }
    let claimed = claim_one(&db, 100).await;
    record(&db, &claimed, Next::Done, 100).await.unwrap();
    let numbers: Vec<_> =
        the_delivery(&db, ada.scope()).await.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

async fn what_is_given_up_is_dead_and_says_why(db: Database) {
    let ada = a_reader(&db, "ada").await;
    record(&db, &sending(&db, ada.scope()).await, Next::Again(at(5)), 3).await.unwrap();
    record(&db, &claim_one(&db, 5).await, Next::GiveUp, 6).await.unwrap();
    let dead = the_delivery(&db, ada.scope()).await;
    assert_eq!((dead.state, dead.finished_at), (DeliveryState::Dead, Some(at(6) + QUARTER)));
    assert_eq!((dead.reason.as_str(), dead.next_at), ("given up after 2 attempts", None));
    assert_eq!(dead.attempts.len(), 2);
    assert_eq!(claim(&db, 10, 1000).await, []);

    let bob = a_reader(&db, "bob").await;
    announced(&db, bob.scope(), 7).await;
    let claimed = claim_one(&db, 7).await;
    db.record(claimed.claim, an_attempt(&claimed, 7, None, ""), Next::GiveUp).await.unwrap();
    assert_eq!(the_delivery(&db, bob.scope()).await.reason, "given up after 1 attempt");
}

const UNWANTED: &str = "the receiver no longer accepts messages, and the channel was switched off";

async fn a_receiver_that_wants_nothing_switches_its_channel_off(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let config = a_stored(&db, &ada, WebhookKind::Slack).await;
    let other = a_stored(&db, &ada, WebhookKind::Discord).await;
    announced(&db, ada.scope(), 1).await;
    announced(&db, ada.scope(), 2).await;
    let mut claimed = claim(&db, 4, 3).await;
    let of_slack = claimed.iter().position(|claimed| config_of(claimed) == Uuid::from(config.id)).unwrap();
    let first = claimed.remove(of_slack);
    announced(&db, ada.scope(), 4).await;
    record(&db, &first, Next::Disable, 5).await.unwrap();

    let (off, _) = db.webhook(ada.scope(), WebhookKind::Slack, at(6)).await.unwrap().unwrap();
    assert_eq!((off.is_active, off.updated_at), (false, at(5) + QUARTER));
    let (still_on, _) = db.webhook(ada.scope(), WebhookKind::Discord, at(6)).await.unwrap().unwrap();
    assert_eq!(still_on, other);
    let all = deliveries(&db, ada.scope()).await;
    let count = |channel: &str, state| {
        let of = all.iter().filter(|one| one.channel.as_str() == channel && one.state == state);
        of.inspect(|one| assert_eq!(one.reason, if state == DeliveryState::Dead { UNWANTED } else { "" }))
            .count()
    };
    // The failed one and the pending one; another is still being sent.
    assert_eq!((count("slack", DeliveryState::Dead), count("slack", DeliveryState::Sending)), (2, 1));
    assert_eq!((count("discord", DeliveryState::Dead), count("discord", DeliveryState::Pending)), (0, 1));
    announced(&db, ada.scope(), 7).await;
    assert_eq!(deliveries(&db, ada.scope()).await.len(), all.len() + 1);
}

async fn a_mail_server_that_wants_nothing_switches_mail_off(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    insert_mail(&db, &a_mail(&ada)).await.unwrap();
    record(&db, &sending(&db, ada.scope()).await, Next::Disable, 5).await.unwrap();
    let off = db.smtp(ada.scope()).await.unwrap().unwrap();
    assert_eq!((off.is_active, off.updated_at), (false, at(5) + QUARTER));
    assert_eq!(the_delivery(&db, ada.scope()).await.reason, UNWANTED);
}

async fn what_went_wrong_is_kept_up_to_a_length(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let claimed = sending(&db, ada.scope()).await;
    let attempt = an_attempt(&claimed, 3, None, &format!("a\0{}", "ü".repeat(1000)));
    db.record(claimed.claim, attempt, Next::Again(at(9))).await.unwrap();
    let kept = the_delivery(&db, ada.scope()).await.attempts.remove(0).error;
    assert_eq!(kept, format!("a{}", "ü".repeat(Attempt::LONGEST_ERROR - 1)));
}

async fn attempts_are_listed_as_they_were_made(db: Database) {
    let ada = a_reader(&db, "ada").await;
    announced(&db, ada.scope(), 1).await;
    let mut expected = Vec::new();
    for (number, status, error) in
        [(1_i32, None, "nobody answered"), (2, Some(65_535), "odd"), (3, Some(200), "")]
    {
        let claimed = claim_one(&db, i64::from(number)).await;
        let took = Duration::from_millis(u64::from(number.unsigned_abs()) * 15_000);
        let attempt = Attempt { number, at: at(i64::from(number)), took, status, error: error.to_owned() };
        let next = if number == 3 { Next::Done } else { Next::Again(at(1)) };
        db.record(claimed.claim, attempt.clone(), next).await.unwrap();
        expected.push(attempt);
    }
    assert_eq!(the_delivery(&db, ada.scope()).await.attempts, expected);
}

async fn a_claim_that_does_not_hold_changes_nothing(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let claimed = sending(&db, ada.scope()).await;
    let before = the_delivery(&db, ada.scope()).await;
    let mut others = vec![claimed.clone(); 4];
    others[0].claim.attempt = 2;
    others[1].claim.sender = sender(1, 2);
    others[2].claim.sender = sender(2, 1);
    others[3].claim.delivery = id();
    for other in &others {
        for next in [Next::Done, Next::Again(at(9)), Next::GiveUp, Next::Disable] {
            assert!(is_stale(&record(&db, other, next, 3).await));
        }
    }
    assert_eq!(the_delivery(&db, ada.scope()).await, before);
    assert!(db.webhook(ada.scope(), WebhookKind::Slack, at(3)).await.unwrap().unwrap().0.is_active);
    record(&db, &claimed, Next::Done, 3).await.unwrap();
    assert!(is_stale(&record(&db, &claimed, Next::Done, 4).await));
}

async fn of_two_who_record_the_same_attempt_one_does(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let claimed = sending(&db, ada.scope()).await;
    let (one, two) =
        tokio::join!(record(&db, &claimed, Next::Done, 3), record(&db, &claimed, Next::GiveUp, 3));
    let outcomes: [Result<(), StoreError>; 2] = [one, two];
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| is_stale(outcome)).count(), 1);
    assert_eq!(the_delivery(&db, ada.scope()).await.attempts.len(), 1);
}
