//! Creating and reading webhook channels.

use launchway_application::{Error, notifications::NewWebhook};
use launchway_domain::{
    audit::{Action, Resource},
    clock::Timestamp,
    ids::WebhookConfigId,
    notifications::{WebhookConfig, WebhookKind, Write},
    organizations::Role,
    store::{self, StoreError, Unique},
};
use launchway_testkit::{
    CountingIds,
    builders::{an_actor, an_entry},
};

use super::{
    HOOK, NO_ORGANIZATION, NO_WEBHOOK, a_webhook, actors_without, expect_check, expect_webhook, forbidden,
    sealed_url, url,
};
use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
    sealed_values::sealed,
};

/// Returns the writes of a request for [`HOOK`].
fn writes(kind: WebhookKind, is_active: bool, at: Timestamp) -> Vec<store::Write> {
    let id: WebhookConfigId = CountingIds::nth(1).into();
    let config = WebhookConfig { id, url: sealed_url(id, HOOK), is_active, ..a_webhook(kind) };
    let entry = an_entry()
        .of(Action::Create, Resource::Notification, id)
        .with_message(&format!(
            "configured the webhook https://hooks.example.com/*** of type {}",
            kind.as_str()
        ))
        .with("type", kind.as_str())
        .with("webhook_url", "[changed]")
        .at(at);
    vec![Write::InsertWebhook(config).into(), audited(2, entry)]
}

/// Returns a request for a channel to `raw`.
fn to(kind: WebhookKind, raw: &str, is_active: bool) -> NewWebhook {
    NewWebhook { kind, url: url(raw), is_active }
}

async fn create(ports: MockedPorts, kind: WebhookKind) -> Result<(), Error> {
    let notifications = ports.services().notifications;
    notifications.create_webhook(&an_actor().build(), to(kind, HOOK, true), None).await
}

/// Returns ports that allow connections to [`HOOK`].
fn permitting() -> MockedPorts {
    let mut ports = MockedPorts::with_a_box();
    expect_check(&mut ports, "hooks.example.com", 443);
    ports
}

#[tokio::test]
async fn url_is_sealed_and_absent_from_the_audit_log() {
    for kind in [WebhookKind::Slack, WebhookKind::Discord, WebhookKind::Generic] {
        let mut ports = permitting();
        ports.expect_commit(writes(kind, true, ports.now()));

        create(ports, kind).await.unwrap();
    }
}

#[tokio::test]
async fn a_webhook_may_be_created_inactive() {
    let mut ports = permitting();
    ports.expect_commit(writes(WebhookKind::Slack, false, ports.now()));

    let notifications = ports.services().notifications;
    let outcome =
        notifications.create_webhook(&an_actor().build(), to(WebhookKind::Slack, HOOK, false), None).await;

    outcome.unwrap();
}

#[tokio::test]
async fn it_is_asked_about_the_host_and_port_that_would_be_called() {
    for (raw, host, port) in [
        ("http://127.1:8080/x", "127.0.0.1", 8080),
        ("http://[::1]/x", "::1", 80),
        ("https://Example.com/x", "example.com", 443),
    ] {
        let mut ports = MockedPorts::with_a_box();
        expect_check(&mut ports, host, port);
        ports.expect_any_commit();

        let notifications = ports.services().notifications;
        let outcome =
            notifications.create_webhook(&an_actor().build(), to(WebhookKind::Slack, raw, true), None).await;

        outcome.unwrap_or_else(|error| panic!("{raw}: {error}"));
    }
}

#[tokio::test]
async fn whom_the_operator_does_not_permit_is_not_written_down() {
    let mut ports = MockedPorts::with_a_box();
    ports.guard.expect_check().once().returning(|_, _| Err(forbidden()));

    let reason = "webhook_url: leads to 10.0.0.1, which the operator does not permit";
    assert_refused(create(ports, WebhookKind::Slack).await, Error::Invalid(reason.to_owned()));
}

#[tokio::test]
async fn there_is_one_place_of_each_kind() {
    let mut ports = permitting();
    ports.expect_failing_commit(StoreError::Taken(Unique::WebhookConfig));

    let conflict = Error::WebhookConfigured(WebhookKind::Discord);
    assert_refused(create(ports, WebhookKind::Discord).await, conflict);
}

#[tokio::test]
async fn create_fails_in_a_deleted_organization() {
    let mut ports = permitting();
    ports.expect_failing_commit(StoreError::Stale);

    assert_refused(create(ports, WebhookKind::Slack).await, NO_ORGANIZATION);
}

#[tokio::test]
async fn nothing_goes_anywhere_without_a_database() {
    let mut ports = permitting();
    ports.expect_failing_commit(unavailable());
    assert_refused(create(ports, WebhookKind::Slack).await, unavailable());

    let mut ports = MockedPorts::default();
    ports.notifications.expect_webhook().once().returning(|_, _, _| Err(unavailable()));
    let notifications = ports.services().notifications;
    assert_refused(notifications.webhook(&a_viewer(), WebhookKind::Slack).await, unavailable());
}

#[tokio::test]
async fn create_needs_the_permission_before_any_address_check() {
    for actor in actors_without("notification:create") {
        let notifications = MockedPorts::default().services().notifications;
        let outcome = notifications.create_webhook(&actor, to(WebhookKind::Slack, HOOK, true), None).await;
        assert_refused(outcome, lacks("notification:create"));
    }
}

#[tokio::test]
async fn an_address_is_shown_in_full_only_to_who_may_change_it() {
    let masked = "https://hooks.example.com/***";
    let admin = an_actor().with_role(Role::Admin).build();
    let programs = [a_program_without("notification:update"), a_program_without("notification:delete")];
    let [reading, changing] = programs;
    for (actor, shown) in
        [(admin, HOOK), (changing, HOOK), (a_member(), masked), (a_viewer(), masked), (reading, masked)]
    {
        let mut ports = MockedPorts::with_a_box();
        let config = a_webhook(WebhookKind::Slack);
        expect_webhook(&mut ports, WebhookKind::Slack, Some(config.clone()));

        let webhook = ports.services().notifications.webhook(&actor, WebhookKind::Slack).await.unwrap();

        assert_eq!((webhook.config, webhook.url.as_str()), (config, shown));
    }
}

#[tokio::test]
async fn where_nothing_goes_there_is_nothing_to_see() {
    let mut ports = MockedPorts::default();
    expect_webhook(&mut ports, WebhookKind::Discord, None);

    let outcome = ports.services().notifications.webhook(&a_viewer(), WebhookKind::Discord).await;

    assert_refused(outcome, NO_WEBHOOK);
}

#[tokio::test]
async fn nobody_sees_where_messages_go_without_the_permission() {
    let actor = a_program_without("notification:read");
    let outcome = MockedPorts::default().services().notifications.webhook(&actor, WebhookKind::Slack).await;
    assert_refused(outcome, lacks("notification:read"));
}

#[tokio::test]
async fn an_address_that_was_sealed_for_another_place_is_a_fault() {
    let config = WebhookConfig {
        url: sealed("webhook_configs.webhook_url:another", HOOK),
        ..a_webhook(WebhookKind::Slack)
    };
    let mut ports = MockedPorts::with_a_box();
    expect_webhook(&mut ports, WebhookKind::Slack, Some(config));

    let outcome = ports.services().notifications.webhook(&a_viewer(), WebhookKind::Slack).await;

    assert!(matches!(outcome, Err(Error::Internal(_))), "{outcome:?}");
}
