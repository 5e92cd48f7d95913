//! Notifications: events, channels and deliveries.
//!
//! The end of a deployment or of a run, and a login from a new device, are decided here by `announcements`
//! and stored with the state change; every other event is announced by the use case that causes it, in the
//! same unit.

mod announcements;
mod delivery;
mod event;
mod mail;
mod outbound;
mod signature;
mod webhook;

use async_trait::async_trait;

#[cfg(feature = "mock")]
pub use self::outbound::{MockMailer, MockOutboundGuard, MockWebhookSender};
pub use self::{
    announcements::{EndedDeployment, EndedExecution, Login},
    delivery::{
        Attempt, Channel, ChannelKind, Claim, ClaimedDelivery, Delivery, DeliveryFilter, DeliveryState, Next,
        RetrySchedule, SenderId, Verdict,
    },
    event::{DEVICE_KNOWN_FOR, Event, EventKind, Fact, Facts},
    mail::{MailHost, MailLogin, MailSecurity, MailUsername, Recipients, SenderName, SmtpConfig},
    outbound::{Answer, Mail, Mailer, OutboundGuard, Post, SendError, Sent, WebhookSender},
    signature::{KeptSigningSecret, SigningSecret},
    webhook::{WebhookConfig, WebhookKind, WebhookUrl},
};
use crate::{
    clock::Timestamp,
    ids::{DeliveryId, EventId, SmtpConfigId},
    organizations::Scope,
    page::{Page, PageRequest},
    secret::Sealed,
    store_error::StoreError,
};

/// Reads channels and deliveries. Every method sees what `commit` last made durable, and nothing of deleted
/// organizations.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait NotificationRepository: Send + Sync {
    /// Returns the organization's channel of a kind, if there is one, and its valid signing secrets, newest
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

    /// Returns the organization's SMTP configuration, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn smtp(&self, scope: Scope) -> Result<Option<SmtpConfig>, StoreError>;

    /// Returns a page of the organization's deliveries with their attempts, newest first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn deliveries(
        &self,
        scope: Scope,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<Delivery>, StoreError>;

    /// Returns one delivery of the organization.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn delivery(&self, scope: Scope, id: DeliveryId) -> Result<Option<Delivery>, StoreError>;
}

/// The deliveries as senders see them. It writes nothing but the tables of notifications.
///
/// Promises:
/// - a delivery is claimed by one sender at a time, and of one channel at most [two](PER_CHANNEL) are,
///   however many claim at once: a slow receiver delays no other;
/// - the channel with the fewest deliveries in progress is served first, and of those the delivery that was
///   due first, so that a slow receiver does not occupy all slots; nothing is claimed before it is due, of
///   a channel that is not active, or of an organization that is gone;
/// - a claim holds until it is recorded or [rescued](DeliveryQueue::rescue); a sender that lost it cannot
///   change anything any more. An interrupted attempt does not count as a failure.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DeliveryQueue: Send + Sync {
    /// Claims up to `most` due deliveries, each as another attempt, until `lease_until`.
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

    /// Stores the message text of an event, unless there is one already, and returns the stored one: every
    /// attempt, by any channel, sends the same.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if there is no such event, [`StoreError::Unavailable`] or
    /// [`StoreError::Internal`].
    async fn keep_body(&self, event: EventId, body: String) -> Result<String, StoreError>;

    /// Records the result of an attempt, and releases the claim.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if the claim was lost, [`StoreError::Unavailable`] or
    /// [`StoreError::Internal`].
    async fn record(&self, claim: Claim, attempt: Attempt, next: Next) -> Result<(), StoreError>;

    /// Takes deliveries from lost senders: those whose lease has expired by `now`, and at once those that
    /// the sender's instance held in another run. They are due at once. Returns their number.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn rescue(&self, sender: SenderId, now: Timestamp) -> Result<usize, StoreError>;

    /// Deletes deliveries that were delivered before `delivered` or dead before `dead`, events without a
    /// delivery, and secrets that were valid only before `now`. At most a thousand deliveries at once;
    /// returns their number.
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

/// The maximum number of concurrent deliveries of one channel.
pub const PER_CHANNEL: i64 = 2;

/// Changes to notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Announces an event: inserts a delivery for every active channel of the organization. Without one
    /// nothing is written.
    Announce(Event),
    /// Inserts an HTTP channel without a signing secret. `Taken(WebhookConfig)` if there is one of that kind,
    /// `Stale` if the organization is gone.
    InsertWebhook(WebhookConfig),
    /// Changes the address of a channel, or enables or disables it. Pending deliveries go to the new
    /// address, or are dead once the channel is disabled. `Stale` if there is none of that kind.
    UpdateWebhook {
        /// The organization that it belongs to.
        scope: Scope,
        /// The kind of the channel.
        kind: WebhookKind,
        /// The new address.
        url: Option<Sealed>,
        /// True to enable it, false to disable it.
        is_active: Option<bool>,
        /// The time of the change.
        at: Timestamp,
    },
    /// Deletes a channel. Its pending deliveries are dead. `Stale` if there is none of that kind.
    DeleteWebhook {
        /// The organization that it belongs to.
        scope: Scope,
        /// The kind of the channel.
        kind: WebhookKind,
        /// The time of the change.
        at: Timestamp,
    },
    /// Replaces the signing secret. The previous secret signs until `until` too, and those before that as
    /// long as they did, except for the oldest if there are more than
    /// [allowed](KeptSigningSecret::MOST_REPLACED). `Stale` if there is no channel of that kind.
    ReplaceSigningSecret {
        /// The organization that it belongs to.
        scope: Scope,
        /// The kind of the channel.
        kind: WebhookKind,
        /// The new secret.
        secret: KeptSigningSecret,
        /// When the previous secret expires.
        until: Timestamp,
        /// The time of the change.
        at: Timestamp,
    },
    /// Inserts an SMTP configuration. `Taken(SmtpConfig)` if there is one, `Stale` if the organization is
    /// gone.
    InsertSmtp(Box<SmtpConfig>),
    /// Replaces the SMTP configuration, except for its creator and time of creation. `Stale` if there is
    /// none with its id.
    UpdateSmtp(Box<SmtpConfig>),
    /// Deletes the SMTP configuration. Pending mail is dead. `Stale` if there is none with that id.
    DeleteSmtp {
        /// The organization that it belongs to.
        scope: Scope,
        /// The id of the SMTP configuration.
        id: SmtpConfigId,
        /// The time of the change.
        at: Timestamp,
    },
    /// Makes a dead delivery due at once, with the full retry schedule. `Stale` if it is not dead, or its
    /// channel is gone or not active.
    Replay {
        /// The organization that it belongs to.
        scope: Scope,
        /// The id of the delivery.
        id: DeliveryId,
        /// The time of the change.
        at: Timestamp,
    },
}

impl Write {
    /// Returns whether the change requires an entry in the audit log. An announced event has an entry of
    /// its own.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        !matches!(self, Self::Announce(_))
    }
}
