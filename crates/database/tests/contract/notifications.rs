//! Contract of the ports and writes of notifications.

mod announcements;
mod claims;
mod completion;
mod concurrency;
mod configs;
mod deployments;
mod devices;
mod extensions;
mod mail;
mod model;
mod outcomes;
mod pages;
mod recovery;
mod retention;
mod secrets;

use std::time::Duration;

use launchway_database::Database;
use launchway_domain::{
    notifications::{
        Attempt, Channel, ClaimedDelivery, Delivery, DeliveryFilter, DeliveryQueue as _, DeliveryState,
        Event, EventKind, Fact, KeptSigningSecret, MailSecurity, Next, NotificationRepository as _, SenderId,
        SmtpConfig, WebhookConfig, WebhookKind, Write,
    },
    organizations::{self, Scope},
    secret::Sealed,
    store::{StoreError, UnitOfWork as _},
};
use launchway_testkit::builders::{a_page, parsed};
use uuid::Uuid;

use crate::builders::{Resident, at, commit, id};

/// An active webhook channel of that user's organization.
fn a_webhook(resident: &Resident, kind: WebhookKind) -> WebhookConfig {
    WebhookConfig {
        id: id(),
        user_id: resident.user.id,
        organization_id: resident.organization.id,
        kind,
        url: Sealed("sealed url".to_owned()),
        is_active: true,
        created_at: at(0),
        updated_at: at(0),
    }
}

async fn insert(db: &Database, config: &WebhookConfig) -> Result<(), StoreError> {
    commit(db, Write::InsertWebhook(config.clone())).await
}

/// A stored webhook channel.
async fn a_stored(db: &Database, resident: &Resident, kind: WebhookKind) -> WebhookConfig {
    let config = a_webhook(resident, kind);
    insert(db, &config).await.unwrap();
    config
}

/// A user whose organization has a Slack channel.
pub(crate) async fn a_reader(db: &Database, name: &str) -> Resident {
    let resident = Resident::of(db, name).await;
    a_stored(db, &resident, WebhookKind::Slack).await;
    resident
}

fn a_secret(text: &str) -> KeptSigningSecret {
    KeptSigningSecret { id: id(), secret: Sealed(text.to_owned()) }
}

fn a_mail(resident: &Resident) -> SmtpConfig {
    let to = vec![parsed("ops@example.com"), parsed("o'hara+x@example.com")];
    SmtpConfig {
        id: id(),
        user_id: resident.user.id,
        organization_id: resident.organization.id,
        host: "mail.example.com".to_owned().try_into().unwrap(),
        port: 65_535,
        security: MailSecurity::StartTls,
        username: Some("robot".to_owned().try_into().unwrap()),
        password: Some(Sealed("sealed password".to_owned())),
        from_email: parsed("robot@example.com"),
        from_name: "Launchway 🚀".to_owned().try_into().unwrap(),
        to: to.try_into().unwrap(),
        is_active: true,
        created_at: at(0),
        updated_at: at(0),
    }
}

async fn insert_mail(db: &Database, config: &SmtpConfig) -> Result<(), StoreError> {
    commit(db, Write::InsertSmtp(Box::new(config.clone()))).await
}

async fn switch(db: &Database, scope: Scope, kind: WebhookKind, is_active: bool, seconds: i64) {
    let write = Write::UpdateWebhook { scope, kind, url: None, is_active: Some(is_active), at: at(seconds) };
    commit(db, write).await.unwrap();
}

async fn delete_organization(db: &Database, scope: Scope, seconds: i64) {
    commit(db, organizations::Write::Delete { scope, at: at(seconds) }).await.unwrap();
}

/// An event so many seconds after time zero.
fn an_event(scope: Scope, seconds: i64) -> Event {
    Event::new(id(), scope.id(), EventKind::MemberAdded, at(seconds)).with(Fact::User, "ada \"the\" 1st\n🚀")
}

/// Emits an event. Without an audit entry: its cause has one.
async fn announce(db: &Database, event: &Event) -> Result<(), StoreError> {
    db.commit(vec![Write::Announce(event.clone()).into()]).await
}

pub(crate) async fn announced(db: &Database, scope: Scope, seconds: i64) -> Event {
    let event = an_event(scope, seconds);
    announce(db, &event).await.unwrap();
    event
}

fn sender(instance: u128, boot: u128) -> SenderId {
    SenderId { instance: Uuid::from_u128(instance).into(), boot: Uuid::from_u128(boot).into() }
}

/// Claims due deliveries, for thirty seconds.
async fn claim(db: &Database, most: usize, seconds: i64) -> Vec<ClaimedDelivery> {
    db.claim(sender(1, 1), most, at(seconds), at(seconds + 30)).await.unwrap()
}

/// Claims the only due delivery.
async fn claim_one(db: &Database, seconds: i64) -> ClaimedDelivery {
    let mut claimed = claim(db, 10, seconds).await;
    assert_eq!(claimed.len(), 1);
    claimed.pop().unwrap()
}

/// The only delivery of an event in an organization with a Slack channel, being sent.
async fn sending(db: &Database, scope: Scope) -> ClaimedDelivery {
    announced(db, scope, 1).await;
    claim_one(db, 2).await
}

/// An attempt that began then and took a quarter of a second.
fn an_attempt(claimed: &ClaimedDelivery, seconds: i64, status: Option<u16>, error: &str) -> Attempt {
    let took = Duration::from_millis(250);
    Attempt { number: claimed.claim.attempt, at: at(seconds), took, status, error: error.to_owned() }
}

async fn record(
    db: &Database,
    claimed: &ClaimedDelivery,
    next: Next,
    seconds: i64,
) -> Result<(), StoreError> {
    let attempt = match next {
        Next::Done => an_attempt(claimed, seconds, Some(200), ""),
        _ => an_attempt(claimed, seconds, Some(503), "no"),
    };
    db.record(claimed.claim, attempt, next).await
}

/// Returns the organization's deliveries, newest first.
pub(crate) async fn deliveries(db: &Database, scope: Scope) -> Vec<Delivery> {
    db.deliveries(scope, DeliveryFilter::default(), a_page(1, 1000)).await.unwrap().items
}

/// Returns the organization's only delivery.
async fn the_delivery(db: &Database, scope: Scope) -> Delivery {
    let mut all = deliveries(db, scope).await;
    assert_eq!(all.len(), 1);
    all.pop().unwrap()
}

async fn states(db: &Database, scope: Scope) -> Vec<DeliveryState> {
    deliveries(db, scope).await.into_iter().map(|delivery| delivery.state).collect()
}

/// Sends everything that is due, and returns the events.
async fn delivered(db: &Database, seconds: i64) -> Vec<Event> {
    let mut delivered = Vec::new();
    loop {
        let claimed = claim(db, 100, seconds).await;
        if claimed.is_empty() {
            return delivered;
        }
        for delivery in claimed {
            record(db, &delivery, Next::Done, seconds).await.unwrap();
            delivered.push(delivery.event);
        }
    }
}

/// The facts as receivers see them.
fn facts(event: &Event) -> Vec<(&'static str, &str)> {
    event.facts.iter().map(|(fact, value)| (fact.as_str(), value.as_str())).collect()
}

fn config_of(claimed: &ClaimedDelivery) -> Uuid {
    match &claimed.channel {
        Channel::Webhook { config, .. } => config.id.into(),
        Channel::Mail(config) => config.id.into(),
    }
}
