//! The receivers of messages, and messages that cannot be delivered.

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    notifications::{
        Channel, EventKind, KeptSigningSecret, MailLogin, Next, Recipients, SendError, SmtpConfig,
        WebhookConfig, WebhookKind,
    },
    organizations::{Member, Role},
    secret::Sealed,
};
use launchway_testkit::builders::{a_membership, a_user, an_organization, parsed};
use tokio::sync::watch;

use super::{
    a_mail_server, a_webhook,
    fakes::{Archive, SenderFakes, a_delivery, a_receiver, an_event, timings},
    kept_secret,
};
use crate::{ports::unavailable, sealed_values::sealed};

const UNUSABLE: &str = "the stored configuration of the channel cannot be decrypted with this installation's key: configure it again";

/// Sends an event to `channel`, with retries within 15 seconds.
async fn notified(channel: Channel, archive: Archive) -> Arc<SenderFakes> {
    notified_by(
        SenderFakes::with(|state| {
            state.waiting = vec![a_delivery(an_event(EventKind::MemberAdded), channel)]
        }),
        archive,
    )
    .await
}

async fn notified_by(fakes: Arc<SenderFakes>, archive: Archive) -> Arc<SenderFakes> {
    let (stop, stopped) = watch::channel(false);
    tokio::join!(fakes.send(timings(), archive, stopped), async {
        tokio::time::sleep(Duration::from_secs(15)).await;
        stop.send_replace(true);
    });
    fakes
}

fn mail(config: SmtpConfig) -> Channel {
    Channel::Mail(Box::new(config))
}

fn member(name: &str, role: Role) -> Member {
    a_membership().of(&a_user().named(name).build()).with_role(role).member()
}

/// Returns the recipients of the only mail.
fn recipients(fakes: &SenderFakes) -> Vec<String> {
    let state = fakes.state();
    let [mail] = &state.mails[..] else { panic!("{:?}", state.mails) };
    mail.to.iter().map(|to| to.as_str().to_owned()).collect()
}

/// Asserts that the only attempt was given up for `reason` without a message being sent.
#[track_caller]
fn assert_given_up(fakes: &SenderFakes, reason: &str) {
    let state = fakes.state();
    let [(_, attempt, next)] = &state.records[..] else { panic!("{:?}", state.records) };
    assert_eq!((attempt.status, attempt.error.as_str(), *next), (None, reason, Next::GiveUp));
    assert!(state.posts.is_empty() && state.mails.is_empty());
}

#[tokio::test(start_paused = true)]
async fn mail_goes_to_whom_the_configuration_names() {
    let to = Recipients::try_from(vec![parsed("ops@example.com"), parsed("cto@example.com")]).unwrap();
    let fakes = notified(mail(SmtpConfig { to, ..a_mail_server() }), Archive::default()).await;
    assert_eq!(recipients(&fakes), ["ops@example.com", "cto@example.com"]);
    assert_eq!(fakes.nexts(), [Next::Done]);
}

#[tokio::test(start_paused = true)]
async fn mail_goes_to_every_admin_where_nobody_is_named() {
    let members = vec![
        member("ada", Role::Admin),
        member("grace", Role::Member),
        member("joan", Role::Viewer),
        member("mary", Role::Admin),
    ];
    let fakes = notified(mail(a_mail_server()), Archive::with_members(members)).await;
    assert_eq!(recipients(&fakes), ["ada@example.com", "mary@example.com"]);
}

#[tokio::test(start_paused = true)]
async fn mail_to_nobody_is_given_up() {
    let archive = Archive::with_members(vec![member("grace", Role::Member)]);
    let fakes = notified(mail(a_mail_server()), archive).await;
    assert_given_up(&fakes, "no recipients: the organization has no admin, and `to` is empty");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_wants_nobody_to_log_in_gets_no_password() {
    let open = SmtpConfig { username: None, password: None, ..a_mail_server() };
    let logins: Vec<Option<MailLogin>> = notified(mail(open), Archive::default())
        .await
        .state()
        .mails
        .iter()
        .map(|mail| mail.login.clone())
        .collect();
    assert_eq!(logins, [None]);
}

#[tokio::test(start_paused = true)]
async fn retries_mail_only_after_transient_errors() {
    let answered = |code, text: &str| SendError::Answered { code, text: text.to_owned() };
    for (error, words, status, attempts) in [
        (answered(550, "no such user"), "the server answered 550: no such user", Some(550), 1),
        (answered(451, "try later"), "the server answered 451: try later", Some(451), 2),
        (SendError::Unreachable("nobody answers".to_owned()), "nobody answers", None, 2),
        (SendError::Forbidden("leads to 10.0.0.1".to_owned()), "leads to 10.0.0.1", None, 2),
    ] {
        let fakes = SenderFakes::with(|state| {
            state.waiting = vec![a_delivery(an_event(EventKind::MemberAdded), mail(a_mail_server()))];
            state.mail_answers = [Err(error)].into();
        });
        notified_by(Arc::clone(&fakes), Archive::default()).await;
        let state = fakes.state();
        assert_eq!(state.records.len(), attempts, "{words}");
        let (_, first, next) = &state.records[0];
        assert_eq!((first.status, first.error.as_str()), (status, words));
        assert_eq!(*next == Next::GiveUp, attempts == 1, "{next:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn undecryptable_configuration_is_given_up_with_a_hint() {
    let elsewhere = || Sealed("<elsewhere>hunter2".to_owned());
    let Channel::Webhook { config, .. } = a_receiver(WebhookKind::Generic, "hooks") else { panic!() };
    let good = kept_secret(uuid::Uuid::nil(), 1);
    let foreign = KeptSigningSecret { secret: elsewhere(), ..good.clone() };
    for channel in [
        Channel::Webhook {
            config: WebhookConfig { url: elsewhere(), ..config.clone() },
            secrets: vec![good.clone()],
        },
        Channel::Webhook {
            config: WebhookConfig { url: elsewhere(), ..a_webhook(WebhookKind::Slack) },
            secrets: vec![],
        },
        Channel::Webhook { config, secrets: vec![good, foreign] },
        mail(SmtpConfig { password: Some(elsewhere()), ..a_mail_server() }),
    ] {
        let fakes = notified(channel, Archive::default()).await;
        assert_given_up(&fakes, UNUSABLE);
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_configuration_is_given_up_without_its_value() {
    let id = a_webhook(WebhookKind::Slack).id;
    let url = sealed(&format!("webhook_configs.webhook_url:{id}"), "ftp://hunter2");
    let config = WebhookConfig { url, ..a_webhook(WebhookKind::Slack) };

    let fakes = notified(Channel::Webhook { config, secrets: vec![] }, Archive::default()).await;

    let reason = "the stored configuration of the channel must be an `http://` or `https://` URL of at most 2048 \
                  characters, without a user and a password: configure it again";
    assert_given_up(&fakes, reason);
}

#[tokio::test(start_paused = true)]
async fn while_the_admins_cannot_be_read_mail_waits() {
    let mut archive = Archive::default();
    archive.organizations.checkpoint();
    // The message is composed, but its recipients cannot be read.
    let mut asked = 0;
    archive.organizations.expect_detail().returning(move |_| {
        asked += 1;
        match asked {
            1 => Ok(None),
            2 => Err(unavailable()),
            _ => Ok(Some(an_organization().with_members(vec![member("ada", Role::Admin)]))),
        }
    });
    let fakes = notified(mail(a_mail_server()), archive).await;
    assert_eq!(recipients(&fakes), ["ada@example.com"]);
    let state = fakes.state();
    assert_eq!(state.records[0].1.error, "the database is not available");
    assert!(matches!(state.records[0].2, Next::Again(_)));
}
