//! Notifications: channels, message texts and deliveries.

mod deliveries;
mod fakes;
mod messages;
mod recipients;
mod sender;
mod signing_secrets;
mod smtp;
mod smtp_changes;
mod test_message;
mod webhook_changes;
mod webhooks;

use std::time::Duration;

use launchway_application::{Error, WakeListener};
use launchway_domain::{
    auth::Actor,
    ids::WebhookConfigId,
    notifications::{
        KeptSigningSecret, MailHost, MailSecurity, Recipients, SendError, SigningSecret, SmtpConfig,
        WebhookConfig, WebhookKind, WebhookUrl,
    },
};
use launchway_testkit::{
    CountingEntropy,
    builders::{a_user, an_actor, an_api_token, parsed},
    clock::{NEW_YEAR, moment},
    ids::id_of,
};
use mockall::predicate::eq;

use crate::{
    actors::{a_member, a_program_without, a_viewer},
    applications::scope,
    ports::MockedPorts,
    sealed_values::sealed,
    world::FOR_EVER,
};

/// The URL of a channel, with a public host and a secret path.
const HOOK: &str = "https://hooks.example.com/services/T0/B0/hunter2";
const NO_WEBHOOK: Error = Error::NotFound("the webhook configuration");
const NO_SMTP: Error = Error::NotFound("the SMTP configuration");
const NO_ORGANIZATION: Error = Error::NotFound("the organization");

fn url(raw: &str) -> WebhookUrl {
    raw.to_owned().try_into().unwrap_or_else(|refused| panic!("{raw}: {refused}"))
}

/// Returns a URL as it is stored for the configuration `id`.
fn sealed_url(id: WebhookConfigId, raw: &str) -> launchway_domain::secret::Sealed {
    sealed(&format!("webhook_configs.webhook_url:{id}"), raw)
}

/// Returns a webhook channel of a kind to [`HOOK`], created at [`NEW_YEAR`].
fn a_webhook(kind: WebhookKind) -> WebhookConfig {
    let id = id_of(kind.as_str()).into();
    WebhookConfig {
        id,
        user_id: a_user().build().id,
        organization_id: scope().id(),
        kind,
        url: sealed_url(id, HOOK),
        is_active: true,
        created_at: moment(NEW_YEAR),
        updated_at: moment(NEW_YEAR),
    }
}

/// Returns signing secret number `n`.
fn signing_secret(n: u64) -> SigningSecret {
    SigningSecret::new(CountingEntropy::nth(n))
}

/// Returns that secret as it is stored under an id.
fn kept_secret(id: uuid::Uuid, n: u64) -> KeptSigningSecret {
    let secret = sealed(&format!("signing_secrets.secret:{id}"), &signing_secret(n).expose());
    KeptSigningSecret { id: id.into(), secret }
}

/// Returns a mail server that sends encrypted mail from `launchway@example.com` to the admins, with the
/// user `mailer` and the password `hunter2`.
fn a_mail_server() -> SmtpConfig {
    let id = id_of("smtp").into();
    SmtpConfig {
        id,
        user_id: a_user().build().id,
        organization_id: scope().id(),
        host: host("smtp.example.com"),
        port: 587,
        security: MailSecurity::StartTls,
        username: Some(parsed("mailer")),
        password: Some(sealed(&format!("smtp_configs.password:{id}"), "hunter2")),
        from_email: parsed("launchway@example.com"),
        from_name: parsed("Launchway"),
        to: Recipients::default(),
        is_active: true,
        created_at: moment(NEW_YEAR),
        updated_at: moment(NEW_YEAR),
    }
}

fn host(raw: &str) -> MailHost {
    parsed(raw)
}

/// Returns actors without a permission that only admins have.
fn actors_without(named: &str) -> [Actor; 3] {
    [a_viewer(), a_member(), a_program_without(named)]
}

/// Returns an API token of an admin with one permission only.
fn a_program_with(named: &str) -> Actor {
    an_actor().with_api_token(an_api_token().permitting(&[named]).build()).build()
}

/// Expects a read of the webhook channel of a kind.
fn expect_webhook(ports: &mut MockedPorts, kind: WebhookKind, found: Option<WebhookConfig>) {
    let (now, found) = (ports.now(), found.map(|config| (config, vec![])));
    let expectation = ports.notifications.expect_webhook().with(eq(scope()), eq(kind), eq(now));
    expectation.once().return_once(|_, _, _| Ok(found));
}

/// Expects a read of the mail server.
fn expect_smtp(ports: &mut MockedPorts, found: Option<SmtpConfig>) {
    ports.notifications.expect_smtp().with(eq(scope())).once().return_once(|_| Ok(found));
}

/// Expects a check that a host may be connected to, which succeeds.
fn expect_check(ports: &mut MockedPorts, host: &'static str, port: u16) {
    ports.guard.expect_check().with(eq(host), eq(port)).once().returning(|_, _| Ok(()));
}

fn forbidden() -> SendError {
    SendError::Forbidden("leads to 10.0.0.1, which the operator does not permit".to_owned())
}

/// Returns whether a notification was sent. Works only with paused time.
async fn was_rung(mut listener: WakeListener) -> bool {
    tokio::time::timeout(Duration::from_secs(1), listener.wait_timeout(FOR_EVER)).await.is_ok()
}
