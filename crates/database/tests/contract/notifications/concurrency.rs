//! Concurrent operations of all kinds, by several processes.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use launchway_database::Database;
use launchway_domain::{
    ids::DeliveryId,
    notifications::{
        ClaimedDelivery, DeliveryQueue as _, DeliveryState, Next, PER_CHANNEL, SenderId, WebhookKind, Write,
    },
    organizations::Scope,
    store::{StoreError, UnitOfWork as _},
};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{a_reader, an_event, announce, config_of, delivered, deliveries, record, sender, states};
use crate::{
    builders::{at, commit, id},
    fresh::Fresh,
};

contract!(
    concurrent_claims_take_nothing_twice_and_two_per_channel,
    concurrent_operations_lose_no_delivery_and_strand_none,
);

const CLAIMERS: u128 = 8;

/// The deliveries in progress, as seen by the senders that hold them.
#[derive(Default)]
struct InProgress {
    of_channel: HashMap<Uuid, i64>,
    seen: HashSet<(DeliveryId, i32)>,
}

impl InProgress {
    fn begin(&mut self, claimed: &ClaimedDelivery) {
        let of_channel = self.of_channel.entry(config_of(claimed)).or_default();
        *of_channel += 1;
        assert!(*of_channel <= PER_CHANNEL, "{of_channel} of one channel are under way");
        assert!(self.seen.insert((claimed.claim.delivery, claimed.claim.attempt)), "taken twice");
    }

    fn end(&mut self, claimed: &ClaimedDelivery) {
        *self.of_channel.entry(config_of(claimed)).or_default() -= 1;
    }
}

/// Sends what it claims until there is nothing left, and checks against the other senders.
async fn send_all(db: Database, number: u128, in_progress: Arc<Mutex<InProgress>>) -> usize {
    let mut sent = 0;
    let mut idle = 0;
    while idle < 20 {
        let most = usize::try_from(1 + number % 3).unwrap();
        let claimed = db.claim(sender(number, 1), most, at(5), at(50)).await.unwrap();
        idle = if claimed.is_empty() { idle + 1 } else { 0 };
        for claimed in &claimed {
            in_progress.lock().unwrap().begin(claimed);
        }
        tokio::task::yield_now().await;
        for claimed in claimed {
            // First: until it is recorded, no other delivery gets its slot.
            in_progress.lock().unwrap().end(&claimed);
            record(&db, &claimed, Next::Done, 5).await.unwrap();
            sent += 1;
        }
    }
    sent
}

async fn concurrent_claims_take_nothing_twice_and_two_per_channel(fresh: &Fresh) {
    let db = &fresh.database;
    let mut scopes = Vec::new();
    for number in 0..5 {
        scopes.push(a_reader(db, &format!("reader{number}")).await.scope());
    }
    let events = (0..40).flat_map(|_| scopes.iter().map(|scope| Write::Announce(an_event(*scope, 1)).into()));
    db.commit(events.collect()).await.unwrap();
    let replica = fresh.open_again();
    let in_progress = Arc::new(Mutex::new(InProgress::default()));
    let mut senders = JoinSet::new();
    for number in 0..CLAIMERS {
        let db = if number % 2 == 0 { db.clone() } else { replica.clone() };
        senders.spawn(send_all(db, number, Arc::clone(&in_progress)));
    }
    let sent: usize = senders.join_all().await.into_iter().sum();
    // Those who found nothing while the others were at it may have gone before all was sent.
    assert_eq!(sent + delivered(db, 5).await.len(), 200);
    for scope in scopes {
        assert_eq!(states(db, scope).await, [DeliveryState::Delivered; 40]);
    }
}

/// A stale write is allowed; no other error is.
fn expect_done_or_stale(outcome: Result<(), StoreError>) {
    assert!(matches!(outcome, Ok(()) | Err(StoreError::Stale)), "{:?}", outcome.err());
}

async fn announce_again_and_again(db: Database, scopes: Vec<Scope>) {
    for _ in 0..10 {
        for scope in &scopes {
            announce(&db, &an_event(*scope, 1)).await.unwrap();
        }
    }
}

/// Disables and enables channels, and replays everything that is dead.
async fn switch_again_and_again(db: Database, scopes: Vec<Scope>) {
    for round in 0..10 {
        for scope in &scopes {
            let (kind, is_active) = (WebhookKind::Slack, Some(round % 2 == 1));
            let write = Write::UpdateWebhook { scope: *scope, kind, url: None, is_active, at: at(2) };
            expect_done_or_stale(commit(&db, write).await);
            for delivery in deliveries(&db, *scope).await.into_iter().take(3) {
                let replay = Write::Replay { scope: *scope, id: delivery.id, at: at(2) };
                expect_done_or_stale(commit(&db, replay).await);
            }
        }
    }
}

async fn send_somehow(db: Database, number: u128) {
    for round in 0..30 {
        for claimed in db.claim(sender(number, 1), 4, at(3), at(30)).await.unwrap() {
            let next = match (round + number) % 5 {
                0 => Next::Done,
                1 => Next::Again(at(3)),
                2 => Next::GiveUp,
                3 => Next::Disable,
                // Left to the rescuers.
                _ => continue,
            };
            expect_done_or_stale(record(&db, &claimed, next, 3).await);
        }
        db.rescue(another_sender(), at(1000)).await.unwrap();
        db.forget(at(0), at(0), at(0)).await.unwrap();
    }
}

/// A sender that holds nothing.
fn another_sender() -> SenderId {
    SenderId { instance: id(), boot: id() }
}

async fn concurrent_operations_lose_no_delivery_and_strand_none(fresh: &Fresh) {
    let db = &fresh.database;
    let mut scopes = Vec::new();
    for name in ["ada", "bob", "eve"] {
        scopes.push(a_reader(db, name).await.scope());
    }
    let replica = fresh.open_again();
    let mut all = JoinSet::new();
    for number in 0..4 {
        let db = if number % 2 == 0 { db.clone() } else { replica.clone() };
        all.spawn(announce_again_and_again(db.clone(), scopes.clone()));
        all.spawn(switch_again_and_again(db.clone(), scopes.clone()));
        all.spawn(send_somehow(db, number));
    }
    all.join_all().await;
    for scope in &scopes {
        let write = Write::UpdateWebhook {
            scope: *scope,
            kind: WebhookKind::Slack,
            url: None,
            is_active: Some(false),
            at: at(4),
        };
        commit(db, write).await.unwrap();
    }
    db.rescue(another_sender(), at(1000)).await.unwrap();
    for scope in scopes {
        let states = states(db, scope).await;
        assert!(states.iter().all(|state| matches!(state, DeliveryState::Delivered | DeliveryState::Dead)));
    }
}
