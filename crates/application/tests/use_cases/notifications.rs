//! Notifications: who is told, by which ways, in which words, and that they are.

mod deliveries;
mod messages;
mod office;
mod reaching;
mod sending;
mod signing_secrets;
mod smtp;
mod smtp_changes;
mod trying;
mod webhook_changes;
mod webhooks;

use std::time::Duration;

use launchway_application::{Error, Listener};
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
    sealing::sealed,
    world::FOR_EVER,
};

/// Where messages go: a host that anybody may know, and a path that is a secret.
const HOOK: &str = "https://hooks.example.com/services/T0/B0/hunter2";
const NO_WEBHOOK: Error = Error::NotFound("the webhook configuration");
const NO_SMTP: Error = Error::NotFound("the SMTP configuration");
const NO_ORGANIZATION: Error = Error::NotFound("the organization");

fn url(raw: &str) -> WebhookUrl {
    raw.to_owned().try_into().unwrap_or_else(|refused| panic!("{raw}: {refused}"))
}

/// An address as it is kept for the configuration `id`.
fn sealed_url(id: WebhookConfigId, raw: &str) -> launchway_domain::secret::Sealed {
    sealed(&format!("webhook_configs.webhook_url:{id}"), raw)
}

/// That messages of a kind go to [`HOOK`], since [`NEW_YEAR`].
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

/// The secret that is made as number `n`.
fn signing_secret(n: u64) -> SigningSecret {
    SigningSecret::new(CountingEntropy::nth(n))
}

/// That secret as it is kept under an id.
fn kept_secret(id: uuid::Uuid, n: u64) -> KeptSigningSecret {
    let secret = sealed(&format!("signing_secrets.secret:{id}"), &signing_secret(n).expose());
    KeptSigningSecret { id: id.into(), secret }
}

/// A server that sends mail from `launchway@example.com` to the admins, encrypted, for who knows that
/// `mailer` has the password `hunter2`.
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

/// Those who lack a permission that only admins have.
fn actors_without(named: &str) -> [Actor; 3] {
    [a_viewer(), a_member(), a_program_without(named)]
}

/// A program of an admin that may do one thing only.
fn a_program_with(named: &str) -> Actor {
    an_actor().with_api_token(an_api_token().permitting(&[named]).build()).build()
}

/// Foresees that it is asked where messages of a kind go.
fn expect_webhook(ports: &mut MockedPorts, kind: WebhookKind, found: Option<WebhookConfig>) {
    let (now, found) = (ports.now(), found.map(|config| (config, vec![])));
    let expectation = ports.notifications.expect_webhook().with(eq(scope()), eq(kind), eq(now));
    expectation.once().return_once(|_, _, _| Ok(found));
}

/// Foresees that the server for mail is asked for.
fn expect_smtp(ports: &mut MockedPorts, found: Option<SmtpConfig>) {
    ports.notifications.expect_smtp().with(eq(scope())).once().return_once(|_| Ok(found));
}

/// Foresees that it is asked whether a host may be connected to, and that it may.
fn expect_check(ports: &mut MockedPorts, host: &'static str, port: u16) {
    ports.guard.expect_check().with(eq(host), eq(port)).once().returning(|_, _| Ok(()));
}

fn forbidden() -> SendError {
    SendError::Forbidden("leads to 10.0.0.1, which the operator does not permit".to_owned())
}

/// Whether somebody was woken. Only for time that stands still.
async fn was_rung(mut listener: Listener) -> bool {
    tokio::time::timeout(Duration::from_secs(1), listener.wait(FOR_EVER)).await.is_ok()
}
