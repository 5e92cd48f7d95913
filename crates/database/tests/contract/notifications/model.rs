//! Model-based test of deliveries: random operations in random order.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use launchway_database::Database;
use launchway_domain::{
    clock::Timestamp,
    ids::DeliveryId,
    notifications::{
        Attempt, Claim, Delivery, DeliveryQueue as _, DeliveryState, Next, PER_CHANNEL, WebhookKind, Write,
    },
    organizations::Scope,
};
use proptest::{prelude::*, sample::Index, test_runner::Config};

use super::{a_stored, announced, deliveries, sender};
use crate::{
    builders::{Resident, at, commit, is_stale},
    fresh::Fresh,
};

const KINDS: [WebhookKind; 2] = [WebhookKind::Slack, WebhookKind::Generic];
/// The lifetime of a claim, in seconds.
const LEASE: i64 = 10;

#[derive(Debug, Clone)]
enum Step {
    Announce {
        organization: usize,
    },
    Claim {
        most: usize,
    },
    /// Records the outcome of an attempt, whose claim may be lost.
    Record(Index, After),
    /// As the next boot of the senders' instance, or as another instance.
    Rescue {
        after_restart: bool,
    },
    Replay(Index),
    Switch {
        organization: usize,
        kind: usize,
        is_active: bool,
    },
    Wait(i64),
}

#[derive(Debug, Clone, Copy)]
enum After {
    Done,
    Again(i64),
    GiveUp,
    Disable,
}

const NAMES: [&str; 2] = ["ada", "grace"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let after = prop_oneof![
        3 => Just(After::Done),
        4 => (0..15_i64).prop_map(After::Again),
        2 => Just(After::GiveUp),
        1 => Just(After::Disable),
    ];
    let switch = (0..NAMES.len(), 0..KINDS.len(), prop::bool::weighted(0.7))
        .prop_map(|(organization, kind, is_active)| Step::Switch { organization, kind, is_active });
    let step = prop_oneof![
        6 => (0..NAMES.len()).prop_map(|organization| Step::Announce { organization }),
        6 => (0..5_usize).prop_map(|most| Step::Claim { most }),
        6 => (any::<Index>(), after).prop_map(|(claim, after)| Step::Record(claim, after)),
        2 => any::<bool>().prop_map(|after_restart| Step::Rescue { after_restart }),
        3 => any::<Index>().prop_map(Step::Replay),
        2 => switch,
        3 => (1..15_i64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..50)
}

/// A channel of an organization: the index of each.
type Place = (usize, usize);

/// The expected state of a delivery, without its event.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    place: Place,
    state: DeliveryState,
    next_at: Timestamp,
    attempt: i32,
    failures: u32,
    /// The attempts with a recorded outcome.
    recorded: Vec<i32>,
    finished_at: Option<Timestamp>,
    /// The claim of its sender, and when it expires.
    held: Option<(Claim, i64)>,
}

/// The expected state of the database.
struct Model {
    db: Database,
    now: i64,
    boot: u128,
    scopes: Vec<Scope>,
    is_active: BTreeMap<Place, bool>,
    deliveries: BTreeMap<DeliveryId, Kept>,
    /// Every claim so far.
    claims: Vec<Claim>,
}

impl Model {
    async fn of(db: &Database) -> Self {
        let mut scopes = Vec::new();
        let mut is_active = BTreeMap::new();
        for (organization, name) in NAMES.into_iter().enumerate() {
            let resident = Resident::of(db, name).await;
            for (kind, channel) in KINDS.into_iter().enumerate() {
                a_stored(db, &resident, channel).await;
                is_active.insert((organization, kind), true);
            }
            scopes.push(resident.scope());
        }
        let (deliveries, claims) = (BTreeMap::new(), Vec::new());
        Self { db: db.clone(), now: 0, boot: 1, scopes, is_active, deliveries, claims }
    }

    fn under_way(&self, place: Place) -> i64 {
        let here = self.deliveries.values().filter(|kept| kept.place == place && kept.held.is_some());
        i64::try_from(here.count()).unwrap()
    }

    fn end(&mut self, id: DeliveryId, state: DeliveryState, at: Timestamp) {
        let kept = self.deliveries.get_mut(&id).unwrap();
        (kept.state, kept.finished_at, kept.held) = (state, Some(at), None);
    }

    /// Ends the pending deliveries of a channel.
    fn switch_off(&mut self, place: Place, at: Timestamp) {
        self.is_active.insert(place, false);
        let waits = |kept: &Kept| kept.place == place && kept.state == DeliveryState::Pending;
        let waiting: Vec<_> =
            self.deliveries.iter().filter(|(_, kept)| waits(kept)).map(|(id, _)| *id).collect();
        waiting.into_iter().for_each(|id| self.end(id, DeliveryState::Dead, at));
    }

    async fn announce(&mut self, organization: usize) {
        let scope = self.scopes[organization];
        let event = announced(&self.db, scope, self.now).await;
        // The store names deliveries, so that it is asked for their ids, and for nothing else.
        let found: Vec<Delivery> = deliveries(&self.db, scope).await;
        let found: Vec<_> = found.into_iter().filter(|delivery| delivery.event_id == event.id).collect();
        let expected = (0..KINDS.len()).filter(|kind| self.is_active[&(organization, *kind)]);
        assert_eq!(found.len(), expected.count());
        for delivery in found {
            let kind = KINDS.iter().position(|kind| kind.as_str() == delivery.channel.as_str()).unwrap();
            let place = (organization, kind);
            assert!(self.is_active[&place]);
            let kept = Kept {
                place,
                state: DeliveryState::Pending,
                next_at: at(self.now),
                attempt: 0,
                failures: 0,
                recorded: Vec::new(),
                finished_at: None,
                held: None,
            };
            assert!(self.deliveries.insert(delivery.id, kept).is_none());
        }
    }

    /// Returns the deliveries that may be claimed, in order: the first of each channel that has a free
    /// slot, and first those of channels with the fewest in progress.
    fn due(&self) -> Vec<(i64, Timestamp, DeliveryId)> {
        let mut due = Vec::new();
        for place in self.is_active.iter().filter(|(_, is_active)| **is_active).map(|(place, _)| *place) {
            let waits = |kept: &Kept| {
                kept.place == place && kept.state == DeliveryState::Pending && kept.next_at <= at(self.now)
            };
            let mut here: Vec<_> = self.deliveries.iter().filter(|(_, kept)| waits(kept)).collect();
            here.sort_by_key(|(id, kept)| (kept.next_at, **id));
            let places = self.under_way(place)..PER_CHANNEL;
            due.extend(places.zip(here).map(|(under_way, (id, kept))| (under_way, kept.next_at, *id)));
        }
        due.sort_unstable();
        due
    }

    async fn claim(&mut self, most: usize) {
        let due = self.due();
        let until = self.now + LEASE;
        let claimed = self.db.claim(sender(1, self.boot), most, at(self.now), at(until)).await.unwrap();
        // Of two that are due at the same time either may be first.
        let moments: Vec<_> =
            claimed.iter().map(|claimed| self.deliveries[&claimed.claim.delivery].next_at).collect();
        let expected: Vec<_> = due.iter().take(most).map(|(_, next_at, _)| *next_at).collect();
        assert_eq!(moments, expected);
        for claimed in claimed {
            let claim = claimed.claim;
            assert!(due.iter().any(|(_, _, id)| *id == claim.delivery));
            let kept = self.deliveries.get_mut(&claim.delivery).unwrap();
            assert!(kept.held.is_none(), "one sender at a time");
            kept.attempt += 1;
            assert_eq!((claim.attempt, claim.sender), (kept.attempt, sender(1, self.boot)));
            assert_eq!(claimed.failures, kept.failures);
            (kept.state, kept.held) = (DeliveryState::Sending, Some((claim, until)));
            self.claims.push(claim);
        }
        for place in self.is_active.keys() {
            assert!(self.under_way(*place) <= PER_CHANNEL);
        }
    }

    async fn record(&mut self, claim: Claim, after: After) {
        let next = match after {
            After::Done => Next::Done,
            After::Again(delay) => Next::Again(at(self.now + delay)),
            After::GiveUp => Next::GiveUp,
            After::Disable => Next::Disable,
        };
        let attempt = Attempt {
            number: claim.attempt,
            at: at(self.now),
            took: TimeDelta::milliseconds(250).to_std().unwrap(),
            status: None,
            error: String::new(),
        };
        let recorded = self.db.record(claim, attempt, next).await;
        let ended_at = at(self.now) + TimeDelta::milliseconds(250);
        let kept = self.deliveries.get_mut(&claim.delivery).unwrap();
        if kept.held.is_none_or(|(held, _)| held != claim) {
            assert!(is_stale(&recorded));
            return;
        }
        recorded.unwrap();
        kept.recorded.push(claim.attempt);
        kept.failures += u32::from(next != Next::Done);
        let place = kept.place;
        match next {
            Next::Done => self.end(claim.delivery, DeliveryState::Delivered, ended_at),
            Next::Again(next_at) if self.is_active[&place] => {
                (kept.state, kept.next_at, kept.held) = (DeliveryState::Pending, next_at, None);
            }
            Next::Again(_) | Next::GiveUp => self.end(claim.delivery, DeliveryState::Dead, ended_at),
            Next::Disable => {
                self.end(claim.delivery, DeliveryState::Dead, ended_at);
                self.switch_off(place, ended_at);
            }
        }
    }

    async fn rescue(&mut self, after_restart: bool) {
        self.boot += u128::from(after_restart);
        let rescuer = sender(if after_restart { 1 } else { 2 }, self.boot);
        let is_lost = |kept: &Kept| {
            kept.held
                .is_some_and(|(claim, until)| until <= self.now || claim.sender.instance == rescuer.instance)
        };
        let lost: Vec<_> =
            self.deliveries.iter().filter(|(_, kept)| is_lost(kept)).map(|(id, _)| *id).collect();
        assert_eq!(self.db.rescue(rescuer, at(self.now)).await.unwrap(), lost.len());
        let now = at(self.now);
        for id in lost {
            let kept = self.deliveries.get_mut(&id).unwrap();
            if self.is_active[&kept.place] {
                (kept.state, kept.next_at, kept.held) = (DeliveryState::Pending, now, None);
            } else {
                self.end(id, DeliveryState::Dead, now);
            }
        }
    }

    async fn replay(&mut self, id: DeliveryId) {
        let now = at(self.now);
        let kept = self.deliveries.get_mut(&id).unwrap();
        let scope = self.scopes[kept.place.0];
        let replayed = commit(&self.db, Write::Replay { scope, id, at: now }).await;
        if kept.state == DeliveryState::Dead && self.is_active[&kept.place] {
            replayed.unwrap();
            (kept.state, kept.next_at) = (DeliveryState::Pending, now);
            (kept.failures, kept.finished_at) = (0, None);
        } else {
            assert!(is_stale(&replayed));
        }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Announce { organization } => self.announce(organization).await,
            Step::Claim { most } => self.claim(most).await,
            Step::Record(index, after) if !self.claims.is_empty() => {
                self.record(*index.get(&self.claims), after).await;
            }
            Step::Rescue { after_restart } => self.rescue(after_restart).await,
            Step::Replay(index) if !self.deliveries.is_empty() => {
                let ids: Vec<DeliveryId> = self.deliveries.keys().copied().collect();
                self.replay(*index.get(&ids)).await;
            }
            Step::Switch { organization, kind, is_active } => {
                super::switch(&self.db, self.scopes[organization], KINDS[kind], is_active, self.now).await;
                match is_active {
                    true => _ = self.is_active.insert((organization, kind), true),
                    false => self.switch_off((organization, kind), at(self.now)),
                }
            }
            Step::Wait(seconds) => self.now += seconds,
            Step::Record(..) | Step::Replay(_) => {}
        }
    }

    /// Compares everything but the text of reasons.
    async fn assert_is_stored(&self) {
        let mut stored = Vec::new();
        for scope in &self.scopes {
            stored.extend(deliveries(&self.db, *scope).await);
        }
        assert_eq!(stored.len(), self.deliveries.len());
        for delivery in stored {
            let kept = &self.deliveries[&delivery.id];
            assert_eq!((delivery.state, delivery.finished_at), (kept.state, kept.finished_at), "{kept:?}");
            let next_at = (kept.state == DeliveryState::Pending).then_some(kept.next_at);
            assert_eq!(delivery.next_at, next_at, "{kept:?}");
            assert_eq!(delivery.reason.is_empty(), kept.state != DeliveryState::Dead, "{kept:?}");
            let recorded: Vec<_> = delivery.attempts.iter().map(|attempt| attempt.number).collect();
            assert_eq!(recorded, kept.recorded);
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 24, failure_persistence: None, ..Config::default() })]

    #[test]
    fn deliveries_do_what_their_model_does(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fresh = Fresh::on_sqlite().await;
            let mut model = Model::of(&fresh.database).await;
            for step in steps {
                model.take(step).await;
                model.assert_is_stored().await;
            }
        });
    }
}
