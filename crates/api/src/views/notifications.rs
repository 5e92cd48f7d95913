//! The JSON of notifications.

use launchway_application::notifications::{AttemptResult, ShownWebhook};
use launchway_domain::{
    notifications::{Attempt, Delivery, MailUsername, SmtpConfig},
    page::Page,
    users::EmailAddress,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{pages::Pagination, timestamp::Moment};

/// A webhook channel.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookConfigView {
    id: Uuid,
    user_id: Uuid,
    organization_id: Uuid,
    /// In full only for callers who may change it.
    webhook_url: String,
    #[schema(example = "slack")]
    r#type: &'static str,
    is_active: bool,
    created_at: Moment,
    updated_at: Moment,
}

impl From<ShownWebhook> for WebhookConfigView {
    fn from(ShownWebhook { config, url }: ShownWebhook) -> Self {
        Self {
            id: config.id.into(),
            user_id: config.user_id.into(),
            organization_id: config.organization_id.into(),
            webhook_url: url,
            r#type: config.kind.as_str(),
            is_active: config.is_active,
            created_at: config.created_at.into(),
            updated_at: config.updated_at.into(),
        }
    }
}

/// The secret with which the receiver of the generic webhook channel verifies signatures.
#[derive(Serialize, ToSchema)]
pub(crate) struct SigningSecretView {
    #[schema(example = "whsec_…")]
    pub(crate) secret: String,
}

/// The mail server. Its password is not shown.
#[derive(Serialize, ToSchema)]
pub(crate) struct SmtpConfigView {
    id: Uuid,
    user_id: Uuid,
    organization_id: Uuid,
    host: String,
    port: u16,
    username: String,
    from_email: String,
    from_name: String,
    /// If empty, the organization's admins.
    to: Vec<String>,
    #[schema(example = "starttls")]
    security: &'static str,
    is_active: bool,
    created_at: Moment,
    updated_at: Moment,
}

impl From<SmtpConfig> for SmtpConfigView {
    fn from(config: SmtpConfig) -> Self {
        Self {
            id: config.id.into(),
            user_id: config.user_id.into(),
            organization_id: config.organization_id.into(),
            host: config.host.into(),
            port: config.port,
            username: config.username.map(MailUsername::into).unwrap_or_default(),
            from_email: config.from_email.into(),
            from_name: config.from_name.into(),
            to: config.to.addresses().iter().cloned().map(EmailAddress::into).collect(),
            security: config.security.as_str(),
            is_active: config.is_active,
            created_at: config.created_at.into(),
            updated_at: config.updated_at.into(),
        }
    }
}

/// The result of a test message.
#[derive(Serialize, ToSchema)]
pub(crate) struct TriedView {
    #[schema(example = "slack")]
    r#type: &'static str,
    /// The former name of `type`.
    #[schema(deprecated, example = "slack")]
    channel: &'static str,
    delivered: bool,
    /// The status of the response: an HTTP status or an SMTP code.
    status: Option<u16>,
    /// The error; empty on success.
    error: String,
}

impl From<AttemptResult> for TriedView {
    fn from(AttemptResult { channel, delivered, status, error }: AttemptResult) -> Self {
        Self { r#type: channel.as_str(), channel: channel.as_str(), delivered, status, error }
    }
}

/// A page of deliveries.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveriesView {
    deliveries: Vec<DeliveryView>,
    pagination: Pagination,
}

impl From<Page<Delivery>> for DeliveriesView {
    fn from(page: Page<Delivery>) -> Self {
        let pagination = Pagination::from(&page);
        Self { deliveries: page.items.into_iter().map(DeliveryView::from).collect(), pagination }
    }
}

/// A delivery of one event to one channel.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryView {
    id: Uuid,
    event_id: Uuid,
    #[schema(example = "deployment.failed")]
    event: &'static str,
    #[schema(example = "generic")]
    r#type: &'static str,
    /// The former name of `type`.
    #[schema(deprecated, example = "generic")]
    channel: &'static str,
    #[schema(example = "delivered")]
    status: &'static str,
    /// The time of the next attempt, while it is pending.
    next_attempt_at: Option<Moment>,
    /// The reason why it is dead.
    reason: String,
    attempts: Vec<AttemptView>,
    created_at: Moment,
    completed_at: Option<Moment>,
}

impl From<Delivery> for DeliveryView {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.id.into(),
            event_id: delivery.event_id.into(),
            event: delivery.event.as_str(),
            r#type: delivery.channel.as_str(),
            channel: delivery.channel.as_str(),
            status: delivery.state.as_str(),
            next_attempt_at: delivery.next_at.map(Moment::from),
            reason: delivery.reason,
            attempts: delivery.attempts.into_iter().map(AttemptView::from).collect(),
            created_at: delivery.created_at.into(),
            completed_at: delivery.finished_at.map(Moment::from),
        }
    }
}

/// One attempt at a delivery.
#[derive(Serialize, ToSchema)]
pub(crate) struct AttemptView {
    number: i32,
    timestamp: Moment,
    duration_ms: u64,
    /// The status of the response: an HTTP status or an SMTP code.
    status: Option<u16>,
    /// The error; empty on success.
    error: String,
}

impl From<Attempt> for AttemptView {
    fn from(attempt: Attempt) -> Self {
        Self {
            number: attempt.number,
            timestamp: attempt.at.into(),
            duration_ms: u64::try_from(attempt.took.as_millis()).unwrap_or(u64::MAX),
            status: attempt.status,
            error: attempt.error,
        }
    }
}
