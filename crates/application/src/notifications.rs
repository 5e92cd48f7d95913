//! Notifications: channels, message texts and deliveries.

mod deliveries;
mod document;
mod notifier;
mod sender;
mod smtp;
mod test_message;
mod text;
mod webhooks;

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

use self::test_message::TestMessageLimiter;
pub use self::{
    notifier::{Notifier, NotifierPorts},
    sender::{Sender, SenderTimings},
    smtp::{NewSmtp, SmtpChange},
    test_message::AttemptResult,
    webhooks::{NewWebhook, ShownWebhook, WebhookChange},
};
use crate::{Error, ServiceContext};

const CREATE: Permission = Permission::new(Resource::Notification, Action::Create);
const READ: Permission = Permission::new(Resource::Notification, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Notification, Action::Update);
const DELETE: Permission = Permission::new(Resource::Notification, Action::Delete);

const ORGANIZATION: Error = Error::NotFound("the organization");

/// The ports of the use cases of notifications.
pub struct NotificationPorts {
    /// Reads channels and deliveries.
    pub notifications: Arc<dyn NotificationRepository>,
    /// Encrypts URLs, passwords and signing secrets.
    pub secrets: Arc<dyn SecretBox>,
    /// Checks that an address may be connected to.
    pub guard: Arc<dyn OutboundGuard>,
    /// Sends test messages.
    pub notifier: Arc<Notifier>,
}

/// The number of concurrent checks of outbound addresses.
const CHECKS_AT_ONCE: usize = 2;
/// The time to wait for a permit of such a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Configures channels and reads deliveries.
pub struct Notifications {
    ports: NotificationPorts,
    tries: TestMessageLimiter,
    /// Permits for checks of outbound addresses: a DNS lookup may take long.
    checks: Semaphore,
    context: ServiceContext,
}

impl Notifications {
    /// Returns the use cases over `ports`.
    pub fn new(ports: NotificationPorts, context: ServiceContext) -> Self {
        Self { ports, tries: TestMessageLimiter::default(), checks: Semaphore::new(CHECKS_AT_ONCE), context }
    }

    /// Acquires a permit for a check of an outbound address.
    async fn place_for_check(&self) -> Result<SemaphorePermit<'_>, Error> {
        let busy = || Error::RateLimited { retry_after: CHECK_TIMEOUT };
        let place = timeout(CHECK_TIMEOUT, self.checks.acquire()).await;
        place.map_err(|_elapsed| busy())?.map_err(|_closed| busy())
    }
}

/// Maps the error of such a check to an error of the request field `field`.
fn refused(field: &str) -> impl Fn(SendError) -> Error + '_ {
    move |error| Error::Invalid(format!("{field}: {error}"))
}
