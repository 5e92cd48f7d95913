//! The sender: sends due deliveries concurrently, and records the results.

use std::time::Duration;

use chrono::TimeDelta;
use launchway_application::notifications::SenderTimings;
use launchway_domain::{
    clock::{Clock as _, Timestamp},
    notifications::{Answer, ClaimedDelivery, EventKind, Next, RetrySchedule, SendError, WebhookKind},
    store::StoreError,
};
use launchway_testkit::clock::{NEW_YEAR, moment};
use tokio::{sync::watch, time::Instant};

use super::fakes::{Archive, SenderFakes, a_delivery, a_receiver, an_event, answered, timings};
use crate::{ports::unavailable, world::FOR_EVER};

/// Returns deliveries of several events to the host `name`.
fn deliveries(name: &str, kinds: &[EventKind]) -> Vec<(Timestamp, ClaimedDelivery)> {
    kinds.iter().map(|kind| a_delivery(an_event(*kind), a_receiver(WebhookKind::Slack, name))).collect()
}

fn one(name: &str) -> Vec<(Timestamp, ClaimedDelivery)> {
    deliveries(name, &[EventKind::MemberRemoved])
}

const THREE: [EventKind; 3] = [EventKind::MemberAdded, EventKind::MemberRemoved, EventKind::LoginNewDevice];

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn after(seconds: i64) -> Timestamp {
    moment(NEW_YEAR) + TimeDelta::seconds(seconds)
}

/// Returns the time of the next attempt, in seconds after [`NEW_YEAR`].
fn again_at(next: Next) -> i64 {
    match next {
        Next::Again(at) => (at - moment(NEW_YEAR)).num_seconds(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_due_is_sent_and_what_came_of_it_is_kept() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("hooks");
        state.delays.insert("hooks.example.com", Duration::from_millis(250));
    });

    fakes.send_for(seconds(1), timings()).await;

    let state = fakes.state();
    let [(claim, attempt, next)] = &state.records[..] else { panic!("{:?}", state.records) };
    assert_eq!(*claim, one("hooks")[0].1.claim);
    assert_eq!((attempt.number, attempt.at, attempt.took), (1, after(0), Duration::from_millis(250)));
    assert_eq!((attempt.status, attempt.error.as_str(), *next), (Some(200), "", Next::Done));
}

#[tokio::test(start_paused = true)]
async fn a_claim_holds_for_longer_than_an_attempt_takes() {
    let fakes = SenderFakes::with(|_| {});
    fakes.send_for(Duration::from_millis(500), timings()).await;
    assert_eq!(fakes.state().claims, [(32, after(50))]);
}

#[tokio::test(start_paused = true)]
async fn no_more_is_claimed_than_there_are_places() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = deliveries("hooks", &THREE);
        state.delays.insert("hooks.example.com", seconds(8));
    });

    let looking = async {
        tokio::time::sleep(seconds(7)).await;
        assert_eq!((fakes.posted().len(), fakes.state().waiting.len()), (2, 1));
        // Both slots are taken, so nothing is claimed, however often the queue is polled.
        let asked: Vec<_> = fakes.state().claims.iter().map(|(most, _)| *most).collect();
        assert_eq!(asked, [2]);
    };
    tokio::join!(fakes.send_for(seconds(17), SenderTimings { at_once: 2, ..timings() }), looking);

    let hook = || "hooks.example.com".to_owned();
    assert_eq!(fakes.posted(), [(0, hook()), (0, hook()), (8, hook())]);
    assert_eq!(fakes.nexts(), [Next::Done; 3]);
}

#[tokio::test(start_paused = true)]
async fn one_slow_receiver_holds_up_nobody_else() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("slow");
        state.waiting.extend(deliveries("hooks", &THREE));
        state.delays.insert("slow.example.com", seconds(9));
    });

    let looking = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(fakes.nexts(), [Next::Done; 3]);
        tokio::time::sleep(seconds(9)).await;
        assert_eq!(fakes.nexts(), [Next::Done; 4]);
    };
    tokio::join!(fakes.send_for(seconds(10), timings()), looking);
}

#[tokio::test(start_paused = true)]
async fn sender_wakes_on_notification_or_polls_each_second() {
    for (rings, at) in [(true, 300), (false, 1000)] {
        let fakes = SenderFakes::with(|_| {});

        let waking = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            fakes.state().waiting = one("hooks");
            if rings {
                fakes.wake.notify();
            }
        };
        tokio::join!(fakes.send_for(seconds(2), timings()), waking);

        let state = fakes.state();
        let [(sent, _)] = &state.posts[..] else { panic!("{:?}", state.posts) };
        assert_eq!(sent.as_millis(), at);
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_sends_the_stored_body_byte_for_byte() {
    let event = an_event(EventKind::MemberRemoved);
    let generic = a_receiver(WebhookKind::Generic, "hooks");
    let fakes = SenderFakes::with(|state| {
        state.waiting = vec![a_delivery(event.clone(), generic.clone())];
        state.answers.insert("hooks.example.com", [answered(500), answered(200)].into());
    });
    fakes.send_for(seconds(15), timings()).await;
    let kept = fakes.state().bodies[&event.id].clone();
    let said: Vec<_> = fakes.state().posts.iter().map(|(_, post)| post.body.clone()).collect();
    assert_eq!(said, [kept.clone(), kept]);

    // Even if another version composed it first.
    let theirs = r#"{ "type": "member.removed", "more": 1,  "data": {"b": 1, "a": 1.50} }"#;
    let (due, first) = a_delivery(event.clone(), generic);
    let second = ClaimedDelivery { body: Some(theirs.to_owned()), ..first.clone() };
    for delivery in [first, second] {
        let fakes = SenderFakes::with(|state| {
            state.bodies.insert(event.id, theirs.to_owned());
            state.waiting = vec![(due, delivery)];
        });
        fakes.send_for(seconds(1), timings()).await;
        let state = fakes.state();
        assert_eq!(state.posts.iter().map(|(_, post)| post.body.as_str()).collect::<Vec<_>>(), [theirs]);
    }
}

#[tokio::test(start_paused = true)]
async fn without_words_nothing_is_sent_and_the_claim_ends_by_itself() {
    for call in ["keep_body", "detail"] {
        let fakes = SenderFakes::with(|state| {
            state.waiting = one("hooks");
            state.faults.insert("keep_body", [unavailable()].into());
        });
        let mut archive = Archive::default();
        if call == "detail" {
            fakes.state().faults.clear();
            archive.organizations.checkpoint();
            archive.organizations.expect_detail().once().returning(|_| Err(unavailable()));
        }
        let (stop, stopped) = watch::channel(false);
        tokio::join!(fakes.send(timings(), archive, stopped), async {
            tokio::time::sleep(seconds(5)).await;
            stop.send_replace(true);
        });
        let state = fakes.state();
        assert!(state.posts.is_empty() && state.records.is_empty(), "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn failure_is_retried_by_the_schedule_and_then_given_up() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("hooks");
        state.answers.insert("hooks.example.com", [answered(500), answered(404), answered(302)].into());
    });

    fakes.send_for(seconds(60), timings()).await;

    let state = fakes.state();
    let numbers: Vec<_> =
        state.records.iter().map(|(claim, attempt, _)| (claim.attempt, attempt.number)).collect();
    assert_eq!(numbers, [(1, 1), (2, 2), (3, 3)]);
    let statuses: Vec<_> = state.records.iter().map(|(_, attempt, _)| attempt.status).collect();
    assert_eq!(statuses, [Some(500), Some(404), Some(302)]);
    let [(_, _, first), (_, _, second), (_, last, third)] = &state.records[..] else { panic!() };
    // Between 0.8 and 1.2 times the delay of the schedule.
    assert!((8..=12).contains(&again_at(*first)), "{first:?}");
    assert!((again_at(*first) + 16..=again_at(*first) + 26).contains(&again_at(*second)), "{second:?}");
    assert_eq!(*third, Next::GiveUp);
    assert_eq!(last.error, "the receiver answered 302");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_asks_for_time_gets_it() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("hooks");
        let busy = Answer { status: 429, retry_after: Some(seconds(120)), excerpt: "busy".to_owned() };
        state.answers.insert("hooks.example.com", [Ok(busy)].into());
    });

    fakes.send_for(seconds(130), timings()).await;

    let posted: Vec<_> = fakes.posted().into_iter().map(|(at, _)| at).collect();
    assert_eq!(posted, [0, 120]);
    assert_eq!(fakes.nexts(), [Next::Again(after(120)), Next::Done]);
    assert_eq!(fakes.state().records[0].1.error, "the receiver answered 429: busy");
}

#[tokio::test(start_paused = true)]
async fn gone_receiver_is_disabled_by_the_first_response() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("hooks");
        state.answers.insert("hooks.example.com", [answered(410)].into());
    });
    fakes.send_for(seconds(60), timings()).await;
    assert_eq!(fakes.nexts(), [Next::Disable]);
    assert_eq!(fakes.posted().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_cannot_be_reached_or_may_not_be_is_tried_again() {
    for error in [SendError::Unreachable("timed out".to_owned()), SendError::Forbidden("private".to_owned())]
    {
        let words = error.to_string();
        let fakes = SenderFakes::with(|state| {
            state.waiting = one("hooks");
            state.answers.insert("hooks.example.com", [Err(error)].into());
        });
        fakes.send_for(seconds(20), timings()).await;
        let state = fakes.state();
        let [(_, first, _), (_, _, Next::Done)] = &state.records[..] else { panic!("{:?}", state.records) };
        assert_eq!((first.status, &first.error), (None, &words));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_endless_length_is_kept_short() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("hooks");
        state.answers.insert("hooks.example.com", [Err(SendError::Unreachable("x".repeat(900)))].into());
    });
    fakes.send_for(seconds(1), timings()).await;
    assert_eq!(fakes.state().records[0].1.error.chars().count(), 500);
}

#[tokio::test(start_paused = true)]
async fn result_is_recorded_once_the_store_is_available_again() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("hooks");
        state.faults.insert("record", (0..3).map(|_| unavailable()).collect());
    });
    let looking = async {
        tokio::time::sleep(Duration::from_millis(2500)).await;
        assert!(fakes.nexts().is_empty());
        tokio::time::sleep(Duration::from_millis(501)).await;
        assert_eq!(fakes.nexts(), [Next::Done]);
    };
    tokio::join!(fakes.send_for(seconds(4), timings()), looking);
    assert_eq!(fakes.posted().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_lost_or_may_be_by_now_is_not_insisted_on() {
    for (faults, left) in [
        (vec![StoreError::Stale, StoreError::Stale], 1),
        (vec![StoreError::Internal("no such table".into()), StoreError::Stale], 1),
        // Half of the lease of 50 seconds is 25 attempts, one per second, and the last one.
        ((0..40).map(|_| unavailable()).collect(), 14),
    ] {
        let fakes = SenderFakes::with(|state| {
            state.waiting = one("hooks");
            state.faults.insert("record", faults.into());
        });
        fakes.send_for(seconds(60), timings()).await;
        assert!(fakes.nexts().is_empty());
        assert_eq!(fakes.state().faults["record"].len(), left);
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_cannot_be_asked_does_not_end_the_sender() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("hooks");
        for call in ["claim", "rescue", "forget"] {
            state.faults.insert(call, [unavailable(), unavailable()].into());
        }
    });
    fakes.send_for(seconds(25), timings()).await;
    assert_eq!(fakes.posted(), [(2, "hooks.example.com".to_owned())]);
    assert_eq!(fakes.state().rescues.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn takes_over_own_deliveries_at_once_and_lost_ones_every_10_s() {
    let fakes = SenderFakes::with(|state| state.lost = vec![one("hooks").remove(0).1]);

    let losing = async {
        tokio::time::sleep(seconds(15)).await;
        fakes.state().lost = vec![one("other").remove(0).1];
    };
    tokio::join!(fakes.send_for(seconds(25), timings()), losing);

    assert_eq!(fakes.state().rescues, [0, 10, 20].map(seconds));
    let (hooks, other) = ("hooks.example.com".to_owned(), "other.example.com".to_owned());
    assert_eq!(fakes.posted(), [(0, hooks), (20, other)]);
    let at: Vec<_> = fakes.state().posts.iter().map(|(at, _)| *at).collect();
    assert_eq!(at, [0, 20].map(seconds), "nobody waited for the next look");
}

#[tokio::test(start_paused = true)]
async fn deletes_all_old_deliveries_every_hour() {
    let fakes = SenderFakes::with(|state| state.forgettable = [1000, 7].into());

    fakes.send_for(seconds(3700), timings()).await;

    let at: Vec<_> = fakes.state().forgets.iter().map(|(at, _)| at.as_secs()).collect();
    assert_eq!(at, [0, 0, 0, 3600]);
    let month = [after(0) - TimeDelta::days(30), after(0) - TimeDelta::days(90), after(0)];
    assert_eq!(fakes.state().forgets[0].1, month);
}

#[tokio::test(start_paused = true)]
async fn running_attempt_finishes_within_the_grace_period() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("hooks");
        state.delays.insert("hooks.example.com", seconds(4));
    });
    let took = fakes.send_for(seconds(1), timings()).await;
    assert_eq!((took, fakes.nexts()), (seconds(3), vec![Next::Done]));
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_is_cut_off_after_the_grace_period() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("hooks");
        state.delays.insert("hooks.example.com", FOR_EVER);
    });
    let took = fakes.send_for(seconds(1), timings()).await;
    assert_eq!((took, fakes.nexts()), (seconds(5), vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_stops_claims_nothing_more() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("hooks");
        state.delays.insert("hooks.example.com", seconds(4));
    });
    let later = async {
        tokio::time::sleep(seconds(2)).await;
        fakes.state().waiting = one("other");
        fakes.wake.notify();
    };
    tokio::join!(fakes.send_for(seconds(1), timings()), later);
    assert_eq!(fakes.posted().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_nobody_can_stop_any_more_stops() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("hooks");
        state.delays.insert("hooks.example.com", seconds(3));
    });
    let (stop, stopped) = watch::channel(false);
    let start = Instant::now();
    let leaving = async {
        tokio::time::sleep(seconds(1)).await;
        drop(stop);
        fakes.state().waiting = one("other");
    };
    tokio::join!(fakes.send(timings(), Archive::default(), stopped), leaving);
    assert_eq!((start.elapsed(), fakes.posted().len()), (seconds(3), 1));
}

#[tokio::test(start_paused = true)]
async fn default_schedule_gives_up_after_seven_attempts() {
    let fakes = SenderFakes::with(|state| {
        state.waiting = one("hooks");
        state.answers.insert("hooks.example.com", (0..9).map(|_| answered(503)).collect());
    });
    let usual = SenderTimings::of(RetrySchedule::default(), seconds(10));
    // Polled less often than in production, so that a day passes quickly.
    fakes.send_for(seconds(24 * 3600), SenderTimings { look: seconds(5), ..usual }).await;
    assert_eq!(fakes.nexts().len(), 7);
    assert_eq!(fakes.nexts().last(), Some(&Next::GiveUp));
    assert!(fakes.now() > after(17 * 3600));
}
