//! Updating and deleting webhook channels.

use chrono::TimeDelta;
use launchway_application::{
    Error,
    notifications::{ShownWebhook, WebhookChange},
};
use launchway_domain::{
    audit::{Action, Resource},
    clock::Timestamp,
    notifications::{WebhookConfig, WebhookKind, Write},
    store::{self, StoreError},
};
use launchway_testkit::builders::{an_actor, an_entry};

use super::{
    HOOK, NO_WEBHOOK, a_program_with, a_webhook, actors_without, expect_check, expect_webhook, forbidden,
    sealed_url, url, was_rung,
};
use crate::{
    actors::lacks,
    applications::scope,
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

const SLACK: WebhookKind = WebhookKind::Slack;
const OTHER: &str = "https://other.example.com/hunter3";

fn elsewhere() -> WebhookChange {
    WebhookChange { url: Some(url(OTHER)), is_active: None }
}

fn switched(is_active: bool) -> WebhookChange {
    WebhookChange { url: None, is_active: Some(is_active) }
}

/// Returns the writes of an update.
fn writes(change: &WebhookChange, at: Timestamp) -> Vec<store::Write> {
    let id = a_webhook(SLACK).id;
    let mut entry = an_entry()
        .of(Action::Update, Resource::Notification, id)
        .with_message("changed the webhook of type slack")
        .at(at);
    if change.url.is_some() {
        entry = entry.with("webhook_url", "[changed]");
    }
    if let Some(is_active) = change.is_active {
        entry = entry.with("is_active", is_active);
    }
    let url = change.url.as_ref().map(|url| sealed_url(id, url.expose()));
    let update = Write::UpdateWebhook { scope: scope(), kind: SLACK, url, is_active: change.is_active, at };
    vec![update.into(), audited(1, entry)]
}

/// Returns ports with [`a_webhook`], for an update an hour after its creation.
fn ports_that_find_it() -> MockedPorts {
    let mut ports = MockedPorts::with_a_box();
    ports.clock.advance(TimeDelta::hours(1));
    expect_webhook(&mut ports, SLACK, Some(a_webhook(SLACK)));
    ports
}

async fn update(ports: MockedPorts, change: WebhookChange) -> Result<ShownWebhook, Error> {
    ports.services().notifications.update_webhook(&an_actor().build(), SLACK, change).await
}

async fn delete(ports: MockedPorts) -> Result<(), Error> {
    ports.services().notifications.delete_webhook(&an_actor().build(), SLACK).await
}

#[tokio::test(start_paused = true)]
async fn new_url_is_sealed_and_gets_pending_deliveries_at_once() {
    let mut ports = ports_that_find_it();
    expect_check(&mut ports, "other.example.com", 443);
    ports.expect_commit(writes(&elsewhere(), ports.now()));
    let config = a_webhook(SLACK);
    let changed =
        WebhookConfig { url: sealed_url(config.id, OTHER), updated_at: ports.now(), ..a_webhook(SLACK) };
    expect_webhook(&mut ports, SLACK, Some(changed.clone()));
    let listener = ports.wake.listen();

    let shown = update(ports, elsewhere()).await.unwrap();

    assert_eq!(shown, ShownWebhook { config: changed, url: OTHER.to_owned() });
    assert!(was_rung(listener).await, "nobody is woken");
}

#[tokio::test]
async fn a_place_is_switched_on_and_off_without_its_address() {
    for is_active in [true, false] {
        let mut ports = ports_that_find_it();
        ports.expect_commit(writes(&switched(is_active), ports.now()));
        let changed = WebhookConfig { is_active, ..a_webhook(SLACK) };
        expect_webhook(&mut ports, SLACK, Some(changed.clone()));

        let shown = update(ports, switched(is_active)).await.unwrap();

        assert_eq!(shown, ShownWebhook { config: changed, url: HOOK.to_owned() });
    }
}

#[tokio::test]
async fn a_program_that_may_only_change_it_learns_that_it_did() {
    let mut ports = ports_that_find_it();
    ports.expect_any_commit();
    expect_webhook(&mut ports, SLACK, Some(a_webhook(SLACK)));

    let program = a_program_with("notification:update");
    let outcome = ports.services().notifications.update_webhook(&program, SLACK, switched(true)).await;

    assert_eq!(outcome.unwrap().url, HOOK);
}

#[tokio::test]
async fn whom_the_operator_does_not_permit_is_not_written_down() {
    let mut ports = ports_that_find_it();
    ports.guard.expect_check().once().returning(|_, _| Err(forbidden()));

    let reason = "webhook_url: leads to 10.0.0.1, which the operator does not permit";
    assert_refused(update(ports, elsewhere()).await, Error::Invalid(reason.to_owned()));
}

#[tokio::test]
async fn what_is_not_there_is_neither_changed_nor_deleted() {
    let mut ports = MockedPorts::default();
    expect_webhook(&mut ports, SLACK, None);
    assert_refused(update(ports, switched(true)).await, NO_WEBHOOK);

    let mut ports = MockedPorts::default();
    expect_webhook(&mut ports, SLACK, None);
    assert_refused(delete(ports).await, NO_WEBHOOK);
}

#[tokio::test]
async fn what_was_deleted_meanwhile_is_not_found() {
    let mut stale = ports_that_find_it();
    stale.expect_failing_commit(StoreError::Stale);
    assert_refused(update(stale, switched(true)).await, NO_WEBHOOK);

    let mut gone = ports_that_find_it();
    gone.expect_any_commit();
    expect_webhook(&mut gone, SLACK, None);
    assert_refused(update(gone, switched(true)).await, NO_WEBHOOK);

    let mut deleted = ports_that_find_it();
    deleted.expect_failing_commit(StoreError::Stale);
    assert_refused(delete(deleted).await, NO_WEBHOOK);
}

#[tokio::test]
async fn an_admin_has_messages_go_nowhere_any_more() {
    let mut ports = ports_that_find_it();
    let at = ports.now();
    let entry = an_entry()
        .of(Action::Delete, Resource::Notification, a_webhook(SLACK).id)
        .with_message("deleted the webhook of type slack")
        .at(at);
    let write = Write::DeleteWebhook { scope: scope(), kind: SLACK, at };
    ports.expect_commit(vec![write.into(), audited(1, entry)]);

    delete(ports).await.unwrap();
}

#[tokio::test]
async fn nobody_changes_or_deletes_it_without_the_permission() {
    for actor in actors_without("notification:update") {
        let notifications = MockedPorts::default().services().notifications;
        let outcome = notifications.update_webhook(&actor, SLACK, switched(false)).await;
        assert_refused(outcome, lacks("notification:update"));
    }
    for actor in actors_without("notification:delete") {
        let notifications = MockedPorts::default().services().notifications;
        assert_refused(notifications.delete_webhook(&actor, SLACK).await, lacks("notification:delete"));
    }
}

#[tokio::test]
async fn nothing_changes_without_a_database() {
    let mut ports = ports_that_find_it();
    ports.expect_failing_commit(unavailable());
    assert_refused(update(ports, switched(true)).await, unavailable());

    let mut ports = ports_that_find_it();
    ports.expect_failing_commit(unavailable());
    assert_refused(delete(ports).await, unavailable());
}
