//! Notifications: what people are told of, by which ways, and how it is made sure that they are.
//!
//! The end of a deployment or of a run, and a login from a new device, are announced by the store with
//! the very move that makes them true, whoever moves; everything else is announced by the use case that
//! does it, in the same unit.

mod delivery;
mod event;
mod mail;
mod outgoing;
mod signing;
mod webhook;

use async_trait::async_trait;

#[cfg(feature = "mock")]
pub use self::outgoing::{MockMailer, MockOutboundGuard, MockWebhookSender};
pub use self::{
    delivery::{
        Attempt, Channel, ChannelKind, Claim, ClaimedDelivery, Delivery, DeliveryFilter, DeliveryState, Next,
        RetrySchedule, SenderId, Verdict,
    },
    event::{DEVICE_KNOWN_FOR, Event, EventKind, Fact, Facts},
    mail::{MailHost, MailLogin, MailSecurity, MailUsername, Recipients, SenderName, SmtpConfig},
    outgoing::{Answer, Mail, Mailer, OutboundGuard, Post, SendError, Sent, WebhookSender},
    signing::{KeptSigningSecret, SigningSecret},
    webhook::{WebhookConfig, WebhookKind, WebhookUrl},
};
use crate::{
    clock::Timestamp,
    ids::{DeliveryId, EventId, SmtpConfigId},
    organizations::Scope,
    page::{Page, PageRequest},
    secret::Sealed,
    store::{self, StoreError},
};

/// Reads who is told, and what became of it. Every method sees what `commit` last made durable, and
/// nothing of deleted organizations.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait NotificationRepository: Send + Sync {
    /// Where the organization's messages of a kind go, if anywhere, and what signs them now, newest
    /// first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn webhook(
        &self,
        scope: Scope,
        kind: WebhookKind,
        now: Timestamp,
    ) -> Result<Option<(WebhookConfig, Vec<KeptSigningSecret>)>, StoreError>;

    /// The server that sends the organization's mail, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn smtp(&self, scope: Scope) -> Result<Option<SmtpConfig>, StoreError>;

    /// A page of the organization's deliveries with their attempts, newest first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn deliveries(
        &self,
        scope: Scope,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<Delivery>, StoreError>;

    /// One delivery of the organization.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn delivery(&self, scope: Scope, id: DeliveryId) -> Result<Option<Delivery>, StoreError>;
}

/// The deliveries as senders see them. It writes nothing but the tables of notifications.
///
/// Promises:
/// - a delivery is claimed by one sender at a time, and of one channel at most
///   [two](PER_CHANNEL) are, however many claim at once: one slow receiver holds nobody
///   up but itself;
/// - who has the fewest under way is served first, and of those what was due first: one slow receiver does not
///   take the places of all; nothing is claimed before it is due, of a channel that is not
///   active, or of an organization that is gone;
/// - a claim holds until it is recorded or [rescued](DeliveryQueue::rescue); whoever lost it changes
///   nothing any more. An attempt that was cut off does not count as a failure.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DeliveryQueue: Send + Sync {
    /// Takes up to `most` deliveries that are due, each as an attempt more, until `lease_until`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn claim(
        &self,
        sender: SenderId,
        most: usize,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<Vec<ClaimedDelivery>, StoreError>;

    /// Keeps the words that were found for an event, and returns those that count: the first ones.
    /// Every attempt, by whatever way, says the same.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when there is no such event, [`StoreError::Unavailable`] or
    /// [`StoreError::Internal`].
    async fn keep_body(&self, event: EventId, body: String) -> Result<String, StoreError>;

    /// Says what came of an attempt, and gives the claim back.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when the claim does not hold any more, [`StoreError::Unavailable`] or
    /// [`StoreError::Internal`].
    async fn record(&self, claim: Claim, attempt: Attempt, next: Next) -> Result<(), StoreError>;

    /// Takes deliveries from senders that are lost: those whose lease has ended by `now`, and at once
    /// those that the sender's instance held in another run. They are due at once. Returns how many.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn rescue(&self, sender: SenderId, now: Timestamp) -> Result<usize, StoreError>;

    /// Forgets what was delivered before `delivered`, what died before `dead`, events that no delivery
    /// is about any more, and secrets that signed only before `now`. At most a thousand deliveries at
    /// once; returns how many.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forget(
        &self,
        delivered: Timestamp,
        dead: Timestamp,
        now: Timestamp,
    ) -> Result<usize, StoreError>;
}

/// How many deliveries of one channel are under way at once.
pub const PER_CHANNEL: i64 = 2;

/// Changes to notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Something happened: a delivery for every active channel of the organization. Without one
    /// nothing is written.
    Announce(Event),
    /// A place more that messages go to, and what signs them. `Taken(WebhookConfig)` when there is one
    /// of that kind, `Stale` when the organization is gone.
    InsertWebhook {
        /// Where to.
        config: WebhookConfig,
        /// What signs from now on.
        secret: Option<KeptSigningSecret>,
    },
    /// Another address, on or off. What waits goes to the new address, or is dead once the channel is
    /// off. `Stale` when there is none of that kind.
    UpdateWebhook {
        /// Whose.
        scope: Scope,
        /// Which.
        kind: WebhookKind,
        /// Another address.
        url: Option<Sealed>,
        /// On or off.
        is_active: Option<bool>,
        /// When.
        at: Timestamp,
    },
    /// Messages go there no more. What waits is dead. `Stale` when there is none of that kind.
    DeleteWebhook {
        /// Whose.
        scope: Scope,
        /// Which.
        kind: WebhookKind,
        /// When.
        at: Timestamp,
    },
    /// What signs from now on. The secret before signs until `until` too, and those before that as long
    /// as they did, but for the oldest when there are more than
    /// [enough](KeptSigningSecret::MOST_REPLACED). `Stale` when there is no place of that kind.
    ReplaceSigningSecret {
        /// Whose.
        scope: Scope,
        /// Which messages.
        kind: WebhookKind,
        /// The new one.
        secret: KeptSigningSecret,
        /// How long the one before signs.
        until: Timestamp,
        /// When.
        at: Timestamp,
    },
    /// A server for mail. `Taken(SmtpConfig)` when there is one, `Stale` when the organization is gone.
    InsertSmtp(Box<SmtpConfig>),
    /// The server for mail as it is from now on, but for who made it and when. `Stale` when there is
    /// none with its id.
    UpdateSmtp(Box<SmtpConfig>),
    /// No mail any more. What waits is dead. `Stale` when there is none with that id.
    DeleteSmtp {
        /// Whose.
        scope: Scope,
        /// Which.
        id: SmtpConfigId,
        /// When.
        at: Timestamp,
    },
    /// A dead delivery is due at once, with every attempt of the schedule before it. `Stale` when it is
    /// not dead, or its channel is gone or not active.
    Replay {
        /// Whose.
        scope: Scope,
        /// Which.
        id: DeliveryId,
        /// When.
        at: Timestamp,
    },
}

impl Write {
    /// Whether the trail has to tell of it. What is announced has an entry of its own.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        !matches!(self, Self::Announce(_))
    }
}

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::Notification(write)
    }
}
