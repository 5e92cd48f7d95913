//! Test messages.

use std::{sync::Arc, time::Duration};

use launchway_application::{
    Error,
    notifications::{AttemptResult, NotificationPorts, Notifications},
};
use launchway_domain::{
    audit::{Action, Resource},
    auth::Actor,
    notifications::{
        Answer, ChannelKind, Mail, MockNotificationRepository, MockOutboundGuard, Post, SendError,
        WebhookConfig, WebhookKind,
    },
    store::{MockUnitOfWork, Write},
    users::EmailAddress,
};
use launchway_testkit::builders::{a_membership, an_actor, an_entry, an_organization};
use mockall::predicate::eq;

use super::{
    HOOK, a_mail_server, a_webhook, actors_without, expect_smtp, expect_webhook,
    fakes::{Archive, SenderFakes},
    url,
};
use crate::{
    actors::lacks,
    applications::scope,
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
    sealed_values::a_box,
};

const NO_CHANNEL: Error = Error::NotFound("the channel's configuration");

fn audited_test(channel: ChannelKind) -> Write {
    let entry = an_entry()
        .of(Action::Access, Resource::Notification, channel.as_str())
        .with_message(&format!("requested a test message by {}", channel.as_str()));
    audited(1, entry)
}

/// Expects the reads for the text of a message.
fn expect_wording(ports: &mut MockedPorts) {
    let detail = an_organization().with_members(vec![a_membership().member()]);
    let expectation = ports.organizations.expect_detail().with(eq(scope()));
    expectation.returning(move |_| Ok(Some(detail.clone())));
}

/// Returns ports with a Slack channel that only append to the audit log.
fn ports_that_find_it() -> MockedPorts {
    let mut ports = MockedPorts::with_a_box();
    expect_webhook(&mut ports, WebhookKind::Slack, Some(a_webhook(WebhookKind::Slack)));
    ports.expect_commit(vec![audited_test(ChannelKind::Slack)]);
    expect_wording(&mut ports);
    ports
}

async fn attempt(ports: MockedPorts, channel: ChannelKind) -> Result<AttemptResult, Error> {
    ports.services().notifications.try_channel(&an_actor().build(), channel).await
}

fn answer(status: u16, excerpt: &str) -> Result<Answer, SendError> {
    Ok(Answer { status, retry_after: None, excerpt: excerpt.to_owned() })
}

#[tokio::test]
async fn a_message_is_sent_now_and_nothing_is_queued() {
    let mut ports = ports_that_find_it();
    let text = "*Test message requested by ada: this channel works*\nOrganization: Analytics";
    let body = serde_json::json!({ "text": text }).to_string();
    let post = Post { url: url(HOOK), headers: vec![], body };
    ports.sender.expect_post().with(eq(post)).once().returning(|_| answer(200, "ok"));

    let tried = attempt(ports, ChannelKind::Slack).await.unwrap();

    let delivered = AttemptResult {
        channel: ChannelKind::Slack,
        delivered: true,
        status: Some(200),
        error: String::new(),
    };
    assert_eq!(tried, delivered);
}

#[tokio::test]
async fn the_result_is_reported_whatever_it_is() {
    for (answer, status, error) in [
        (answer(404, "no_service"), Some(404), "the receiver answered 404: no_service"),
        (answer(410, ""), Some(410), "the receiver answered 410"),
        (answer(302, ""), Some(302), "the receiver answered 302"),
        (answer(503, "later"), Some(503), "the receiver answered 503: later"),
        (Err(SendError::Unreachable("nobody answers".to_owned())), None, "nobody answers"),
        (Err(SendError::Forbidden("leads to 10.0.0.1".to_owned())), None, "leads to 10.0.0.1"),
    ] {
        let mut ports = ports_that_find_it();
        ports.sender.expect_post().once().return_once(|_| answer);

        let tried = attempt(ports, ChannelKind::Slack).await.unwrap();

        let error = error.to_owned();
        assert_eq!(tried, AttemptResult { channel: ChannelKind::Slack, delivered: false, status, error });
    }
}

#[tokio::test]
async fn mail_is_tried_like_everything_else() {
    for (outcome, delivered, status, error) in [
        (Ok(250.into()), true, Some(250), ""),
        (
            Err(SendError::Answered { code: 535, text: "bad credentials".to_owned() }),
            false,
            Some(535),
            "the server answered 535: bad credentials",
        ),
    ] {
        let mut ports = MockedPorts::with_a_box();
        expect_smtp(&mut ports, Some(a_mail_server()));
        ports.expect_commit(vec![audited_test(ChannelKind::Smtp)]);
        expect_wording(&mut ports);
        let to_admin = |mail: &Mail| {
            mail.subject == "[Launchway] Test message requested by ada: this channel works"
                && mail.to.iter().map(EmailAddress::as_str).eq(["ada@example.com"])
        };
        ports.mailer.expect_send().withf(to_admin).once().return_once(|_| outcome);

        let tried = attempt(ports, ChannelKind::Smtp).await.unwrap();

        let error = error.to_owned();
        assert_eq!(tried, AttemptResult { channel: ChannelKind::Smtp, delivered, status, error });
    }
}

#[tokio::test]
async fn a_channel_that_is_off_can_be_tried_before_it_is_switched_on() {
    let mut ports = MockedPorts::with_a_box();
    let off = WebhookConfig { is_active: false, ..a_webhook(WebhookKind::Discord) };
    expect_webhook(&mut ports, WebhookKind::Discord, Some(off));
    ports.expect_any_commit();
    expect_wording(&mut ports);
    ports.sender.expect_post().once().returning(|_| answer(204, ""));

    assert!(attempt(ports, ChannelKind::Discord).await.unwrap().delivered);
}

#[tokio::test]
async fn what_is_not_configured_cannot_be_tried() {
    for (channel, kind) in [
        (ChannelKind::Slack, WebhookKind::Slack),
        (ChannelKind::Discord, WebhookKind::Discord),
        (ChannelKind::Generic, WebhookKind::Generic),
    ] {
        let mut ports = MockedPorts::default();
        expect_webhook(&mut ports, kind, None);
        assert_refused(attempt(ports, channel).await, NO_CHANNEL);
    }
    let mut ports = MockedPorts::default();
    expect_smtp(&mut ports, None);
    assert_refused(attempt(ports, ChannelKind::Smtp).await, NO_CHANNEL);
}

#[tokio::test(start_paused = true)]
async fn one_is_tried_at_a_time_and_the_next_one_has_to_wait() {
    let fakes = SenderFakes::with(|state| {
        state.delays.insert("hooks.example.com", Duration::from_secs(9));
    });
    let mut notifications = MockNotificationRepository::new();
    let found = || (a_webhook(WebhookKind::Slack), vec![]);
    notifications.expect_webhook().returning(move |_, _, _| Ok(Some(found())));
    let mut store = MockUnitOfWork::new();
    // A rejected test is not recorded in the audit log.
    store.expect_commit().times(2).returning(|_| Ok(()));
    let ports = NotificationPorts {
        notifications: Arc::new(notifications),
        secrets: Arc::new(a_box()),
        guard: Arc::new(MockOutboundGuard::new()),
        notifier: fakes.notifier(Archive::default()),
    };
    let service = Notifications::new(ports, fakes.context(store));
    let actor = an_actor().build();
    let attempt = || service.try_channel(&actor, ChannelKind::Slack);
    let too_many = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_refused(attempt().await, Error::RateLimited { retry_after: Duration::from_secs(5) });
    };

    let (tried, ()) = tokio::join!(attempt(), too_many);

    assert!(tried.unwrap().delivered);
    assert!(attempt().await.unwrap().delivered, "there is a place again");
}

#[tokio::test]
async fn nobody_tries_a_channel_without_the_permission() {
    let outcome = async |actor: Actor| {
        MockedPorts::default().services().notifications.try_channel(&actor, ChannelKind::Slack).await
    };
    for actor in actors_without("notification:update") {
        assert_refused(outcome(actor).await, lacks("notification:update"));
    }
}

#[tokio::test]
async fn nothing_is_sent_without_an_audit_entry() {
    let mut ports = MockedPorts::with_a_box();
    expect_webhook(&mut ports, WebhookKind::Slack, Some(a_webhook(WebhookKind::Slack)));
    ports.expect_failing_commit(unavailable());

    assert_refused(attempt(ports, ChannelKind::Slack).await, unavailable());
}
