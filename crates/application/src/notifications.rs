//! Notifications: who is told of what happens, in which words, and that they are.

mod courier;
mod deliveries;
mod document;
mod sending;
mod smtp;
mod trying;
mod webhooks;
mod wording;

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    auth::{Action, Permission, Resource},
    notifications::{NotificationRepository, OutboundGuard, SendError},
    secret::SecretBox,
};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use self::trying::Tries;
pub use self::{
    courier::{Courier, CourierPorts},
    sending::{Sender, SenderTimings},
    smtp::{NewSmtp, SmtpChange},
    trying::Tried,
    webhooks::{NewWebhook, ShownWebhook, WebhookChange},
};
use crate::{Error, Tools};

const CREATE: Permission = Permission::new(Resource::Notification, Action::Create);
const READ: Permission = Permission::new(Resource::Notification, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Notification, Action::Update);
const DELETE: Permission = Permission::new(Resource::Notification, Action::Delete);

const ORGANIZATION: Error = Error::NotFound("the organization");

/// What the use cases of notifications work with.
pub struct NotificationPorts {
    /// Reads where messages go.
    pub notifications: Arc<dyn NotificationRepository>,
    /// Seals addresses, passwords and signing secrets.
    pub secrets: Arc<dyn SecretBox>,
    /// Tells which addresses may be connected to.
    pub guard: Arc<dyn OutboundGuard>,
    /// Brings a message to try a way out.
    pub courier: Arc<Courier>,
}

/// How many are asked at once whether they may be connected to.
const CHECKS_AT_ONCE: usize = 2;
/// How long to wait for a place for that.
const CHECK_PATIENCE: Duration = Duration::from_secs(5);

/// Says who is told, and shows what became of it.
pub struct Notifications {
    ports: NotificationPorts,
    tries: Tries,
    /// Places for those who ask whether somebody may be connected to: a name may take long to look up.
    checks: Semaphore,
    tools: Tools,
}

impl Notifications {
    /// Works with `ports`.
    pub fn new(ports: NotificationPorts, tools: Tools) -> Self {
        Self { ports, tries: Tries::default(), checks: Semaphore::new(CHECKS_AT_ONCE), tools }
    }

    /// A place for asking whether somebody may be connected to.
    async fn place_for_check(&self) -> Result<SemaphorePermit<'_>, Error> {
        let busy = || Error::RateLimited { retry_after: CHECK_PATIENCE };
        let place = timeout(CHECK_PATIENCE, self.checks.acquire()).await;
        place.map_err(|_elapsed| busy())?.map_err(|_closed| busy())
    }
}

/// Why somebody cannot be told, when a configuration says who.
fn refused(field: &str) -> impl Fn(SendError) -> Error + '_ {
    move |error| Error::Invalid(format!("{field}: {error}"))
}
