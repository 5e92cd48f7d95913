//! Notifications: who is told of what happens, in which words, and that they are.

mod courier;
mod deliveries;
mod document;
mod sending;
mod smtp;
mod trying;
mod webhooks;
mod wording;

use std::sync::Arc;

use launchway_domain::{
    auth::{Action, Permission, Resource},
    notifications::{NotificationRepository, OutboundGuard, SendError},
    secret::SecretBox,
};
use tokio::sync::Semaphore;

pub use self::{
    courier::{Courier, CourierPorts},
    sending::{Sender, SenderTimings},
    smtp::{NewSmtp, SmtpChange},
    trying::Tried,
    webhooks::{ShownWebhook, WebhookChange},
};
use crate::{Error, Tools};

const CREATE: Permission = Permission::new(Resource::Notification, Action::Create);
const READ: Permission = Permission::new(Resource::Notification, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Notification, Action::Update);
const DELETE: Permission = Permission::new(Resource::Notification, Action::Delete);

const ORGANIZATION: Error = Error::NotFound("the organization");

/// What the use cases of notifications work with.
#[expect(missing_docs, reason = "the types say it")]
pub struct NotificationPorts {
    pub notifications: Arc<dyn NotificationRepository>,
    pub secrets: Arc<dyn SecretBox>,
    pub guard: Arc<dyn OutboundGuard>,
    pub courier: Arc<Courier>,
}

/// How many test messages are under way at once: each may keep its caller waiting for long.
const TESTS_AT_ONCE: usize = 4;

/// Says who is told, and shows what became of it.
pub struct Notifications {
    ports: NotificationPorts,
    tests: Semaphore,
    tools: Tools,
}

impl Notifications {
    /// Works with `ports`.
    pub fn new(ports: NotificationPorts, tools: Tools) -> Self {
        Self { ports, tests: Semaphore::new(TESTS_AT_ONCE), tools }
    }
}

/// Why somebody cannot be told, when a configuration says who.
fn refused(field: &str) -> impl Fn(SendError) -> Error + '_ {
    move |error| Error::Invalid(format!("{field}: {error}"))
}
