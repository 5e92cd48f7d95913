//! Deliveries and their replay.

use std::time::Duration;

use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Resource},
    ids::DeliveryId,
    notifications::{Attempt, ChannelKind, Delivery, DeliveryFilter, DeliveryState, EventKind, Write},
    page::Page,
    store::StoreError,
};
use launchway_testkit::{
    builders::{a_page, an_actor, an_entry},
    clock::{NEW_YEAR, moment},
    ids::id_of,
};
use mockall::predicate::eq;

use super::{actors_without, was_rung};
use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    applications::scope,
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

const NO_DELIVERY: Error = Error::NotFound("the delivery");
const SAID: &str = "the receiver answered 500: Internal error at /srv/hooks.py";

fn id() -> DeliveryId {
    id_of("delivery").into()
}

fn attempt(number: i32, error: &str) -> Attempt {
    Attempt {
        number,
        at: moment(NEW_YEAR),
        took: Duration::from_millis(20),
        status: Some(if error.is_empty() { 200 } else { 500 }),
        error: error.to_owned(),
    }
}

/// Returns a delivery to the generic webhook channel that failed once.
fn a_delivery(state: DeliveryState) -> Delivery {
    Delivery {
        id: id(),
        event_id: id_of("event").into(),
        event: EventKind::DeploymentFailed,
        channel: ChannelKind::Generic,
        state,
        next_at: None,
        reason: String::new(),
        attempts: vec![attempt(1, SAID), attempt(2, "")],
        created_at: moment(NEW_YEAR),
        finished_at: None,
    }
}

fn expect_delivery(ports: &mut MockedPorts, found: Option<Delivery>) {
    let expectation = ports.notifications.expect_delivery().with(eq(scope()), eq(id()));
    expectation.once().return_once(|_, _| Ok(found));
}

async fn replay(ports: MockedPorts) -> Result<Delivery, Error> {
    ports.services().notifications.replay(&an_actor().build(), id()).await
}

/// Returns ports with a dead delivery.
fn ports_that_find_it() -> MockedPorts {
    let mut ports = MockedPorts::default();
    expect_delivery(&mut ports, Some(a_delivery(DeliveryState::Dead)));
    ports
}

#[tokio::test]
async fn shows_receiver_errors_only_with_the_update_permission() {
    let filter = DeliveryFilter { state: Some(DeliveryState::Dead), channel: Some(ChannelKind::Generic) };
    let hidden = "failed: only admins can see the reason";
    for (actor, said) in [
        (an_actor().build(), SAID),
        (a_program_without("notification:delete"), SAID),
        (a_member(), hidden),
        (a_viewer(), hidden),
        (a_program_without("notification:update"), hidden),
    ] {
        let mut ports = MockedPorts::default();
        let given_up = "given up after 2 attempts";
        let dead = Delivery { reason: given_up.to_owned(), ..a_delivery(DeliveryState::Dead) };
        let page = Page { items: vec![dead], request: a_page(2, 10), total: 11 };
        let mut expected = page.clone();
        expected.items[0].attempts = vec![attempt(1, said), attempt(2, "")];
        expected.items[0].reason = given_up.to_owned();
        let expectation = ports.notifications.expect_deliveries();
        expectation.with(eq(scope()), eq(filter), eq(a_page(2, 10))).once().return_once(|_, _, _| Ok(page));

        let shown = ports.services().notifications.deliveries(&actor, filter, a_page(2, 10)).await;

        assert_eq!(shown.unwrap(), expected);
    }
}

#[tokio::test]
async fn list_and_replay_need_the_permission() {
    let reader = a_program_without("notification:read");
    let notifications = MockedPorts::default().services().notifications;
    let outcome = notifications.deliveries(&reader, DeliveryFilter::default(), a_page(1, 10)).await;
    assert_refused(outcome, lacks("notification:read"));

    for actor in actors_without("notification:update") {
        let outcome = MockedPorts::default().services().notifications.replay(&actor, id()).await;
        assert_refused(outcome, lacks("notification:update"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_delivery_is_tried_again_at_once() {
    let mut ports = ports_that_find_it();
    let at = ports.now();
    let entry = an_entry()
        .of(Action::Update, Resource::Notification, id())
        .with_message("replayed a delivery by generic")
        .at(at);
    let write = Write::Replay { scope: scope(), id: id(), at };
    ports.expect_commit(vec![write.into(), audited(1, entry)]);
    expect_delivery(&mut ports, Some(a_delivery(DeliveryState::Pending)));
    let listener = ports.wake.listen();

    assert_eq!(replay(ports).await.unwrap(), a_delivery(DeliveryState::Pending));
    assert!(was_rung(listener).await, "nobody is woken");
}

#[tokio::test]
async fn what_is_not_dead_is_not_tried_again() {
    for state in [DeliveryState::Pending, DeliveryState::Sending, DeliveryState::Delivered] {
        let mut ports = MockedPorts::default();
        expect_delivery(&mut ports, Some(a_delivery(state)));

        let reason = format!("this delivery is {}: only a dead delivery can be replayed", state.as_str());
        assert_refused(replay(ports).await, Error::Conflict(reason));
    }
}

#[tokio::test]
async fn nothing_is_sent_to_who_wants_nothing_any_more() {
    let mut ports = ports_that_find_it();
    ports.expect_failing_commit(StoreError::Stale);

    let reason = "no active generic channel is configured: configure it or enable it";
    assert_refused(replay(ports).await, Error::Conflict(reason.to_owned()));
}

#[tokio::test]
async fn a_delivery_of_another_organization_is_as_unknown_as_none() {
    let mut ports = MockedPorts::default();
    expect_delivery(&mut ports, None);
    assert_refused(replay(ports).await, NO_DELIVERY);

    let mut forgotten = ports_that_find_it();
    forgotten.expect_any_commit();
    expect_delivery(&mut forgotten, None);
    assert_refused(replay(forgotten).await, NO_DELIVERY);
}

#[tokio::test]
async fn nothing_is_seen_or_tried_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.notifications.expect_deliveries().once().returning(|_, _, _| Err(unavailable()));
    let notifications = ports.services().notifications;
    let outcome = notifications.deliveries(&a_viewer(), DeliveryFilter::default(), a_page(1, 10)).await;
    assert_refused(outcome, unavailable());

    let mut ports = ports_that_find_it();
    ports.expect_failing_commit(unavailable());
    assert_refused(replay(ports).await, unavailable());
}
