//! The rows of notifications.

use std::{collections::BTreeMap, time::Duration};

use diesel::{dsl::auto_type, prelude::*, sql_types::Bool};
use launchway_domain::{
    clock::Timestamp,
    ids::{DeliveryId, EventId, OrganizationId, SmtpConfigId, UserId, WebhookConfigId},
    notifications::{
        Attempt, ChannelKind, Claim, Delivery, DeliveryState, Event, EventKind, Fact, Facts, MailHost,
        MailSecurity, Recipients, SenderName, SmtpConfig, WebhookConfig, WebhookKind,
    },
    secret::Sealed,
    users::EmailAddress,
};

use crate::{
    applications::read,
    columns::{DbId, DbTs},
    error::QueryError,
    schema::{deliveries, delivery_attempts, events, smtp_configs, webhook_configs},
    statement::{Literal, literal},
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = webhook_configs)]
pub(super) struct WebhookRow {
    #[diesel(deserialize_as = DbId)]
    id: WebhookConfigId,
    #[diesel(deserialize_as = DbId)]
    user_id: UserId,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = String)]
    kind: WebhookKind,
    webhook_url: String,
    is_active: bool,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    updated_at: Timestamp,
}

impl From<WebhookRow> for WebhookConfig {
    fn from(row: WebhookRow) -> Self {
        Self {
            id: row.id,
            user_id: row.user_id,
            organization_id: row.organization_id,
            kind: row.kind,
            url: Sealed(row.webhook_url),
            is_active: row.is_active,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = smtp_configs)]
pub(super) struct SmtpRow {
    #[diesel(deserialize_as = DbId)]
    id: SmtpConfigId,
    #[diesel(deserialize_as = DbId)]
    user_id: UserId,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = String)]
    host: MailHost,
    #[diesel(deserialize_as = i64)]
    port: u16,
    #[diesel(deserialize_as = String)]
    security: MailSecurity,
    username: Option<String>,
    password: Option<String>,
    #[diesel(deserialize_as = String)]
    from_email: EmailAddress,
    #[diesel(deserialize_as = String)]
    from_name: SenderName,
    recipients: String,
    is_active: bool,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    updated_at: Timestamp,
}

impl TryFrom<SmtpRow> for SmtpConfig {
    type Error = QueryError;

    fn try_from(row: SmtpRow) -> Result<Self, QueryError> {
        Ok(Self {
            id: row.id,
            user_id: row.user_id,
            organization_id: row.organization_id,
            host: row.host,
            port: row.port,
            security: row.security,
            username: read(row.username)?,
            password: row.password.map(Sealed),
            from_email: row.from_email,
            from_name: row.from_name,
            to: read_recipients(&row.recipients)?,
            is_active: row.is_active,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

fn read_recipients(stored: &str) -> Result<Recipients, QueryError> {
    let texts: Vec<String> = serde_json::from_str(stored).map_err(QueryError::unreadable)?;
    let addresses = texts.into_iter().map(EmailAddress::try_from).collect::<Result<Vec<_>, _>>();
    Recipients::try_from(addresses.map_err(QueryError::unreadable)?).map_err(QueryError::unreadable)
}

/// Serializes recipients for storage.
pub(super) fn recipients_text(recipients: &Recipients) -> Result<String, QueryError> {
    let texts: Vec<&str> = recipients.addresses().iter().map(EmailAddress::as_str).collect();
    serde_json::to_string(&texts).map_err(QueryError::unreadable)
}

/// A delivery with the kind of its event.
#[derive(Queryable, Selectable)]
#[diesel(table_name = deliveries)]
pub(super) struct DeliveryRow {
    #[diesel(deserialize_as = DbId)]
    id: DeliveryId,
    #[diesel(deserialize_as = DbId)]
    event_id: EventId,
    #[diesel(select_expression = events::kind, deserialize_as = String)]
    event: EventKind,
    #[diesel(deserialize_as = String)]
    channel: ChannelKind,
    #[diesel(deserialize_as = String)]
    state: DeliveryState,
    #[diesel(deserialize_as = DbTs)]
    next_at: Timestamp,
    reason: String,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    finished_at: Option<DbTs>,
}

impl DeliveryRow {
    pub(super) fn id(&self) -> DbId {
        self.id.into()
    }

    /// Returns the delivery with its attempts.
    pub(super) fn with(self, attempts: Vec<Attempt>) -> Delivery {
        Delivery {
            id: self.id,
            event_id: self.event_id,
            event: self.event,
            channel: self.channel,
            state: self.state,
            next_at: (self.state == DeliveryState::Pending).then_some(self.next_at),
            reason: self.reason,
            attempts,
            created_at: self.created_at,
            finished_at: self.finished_at.map(Timestamp::from),
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = delivery_attempts)]
pub(super) struct AttemptRow {
    pub(super) delivery_id: DbId,
    number: i32,
    #[diesel(deserialize_as = DbTs)]
    at: Timestamp,
    took_ms: i64,
    status: Option<i32>,
    error: String,
}

impl TryFrom<AttemptRow> for Attempt {
    type Error = QueryError;

    fn try_from(row: AttemptRow) -> Result<Self, QueryError> {
        let took = u64::try_from(row.took_ms).map_err(QueryError::unreadable)?;
        Ok(Self {
            number: row.number,
            at: row.at,
            took: Duration::from_millis(took),
            status: row.status.map(u16::try_from).transpose().map_err(QueryError::unreadable)?,
            error: row.error,
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = events)]
pub(super) struct EventRow {
    #[diesel(deserialize_as = DbId)]
    id: EventId,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = String)]
    kind: EventKind,
    facts: String,
    pub(super) body: Option<String>,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
}

impl TryFrom<EventRow> for Event {
    type Error = QueryError;

    fn try_from(row: EventRow) -> Result<Self, QueryError> {
        Ok(Self {
            id: row.id,
            organization_id: row.organization_id,
            kind: row.kind,
            facts: read_facts(&row.facts)?,
            at: row.created_at,
        })
    }
}

fn read_facts(stored: &str) -> Result<Facts, QueryError> {
    let texts: BTreeMap<String, String> = serde_json::from_str(stored).map_err(QueryError::unreadable)?;
    // A newer version may have known more.
    Ok(texts.into_iter().filter_map(|(name, value)| Some((Fact::try_from(name).ok()?, value))).collect())
}

/// Serializes facts for storage.
pub(super) fn facts_text(facts: &Facts) -> Result<String, QueryError> {
    let texts: BTreeMap<&str, &str> =
        facts.iter().map(|(fact, value)| (fact.as_str(), value.as_str())).collect();
    serde_json::to_string(&texts).map_err(QueryError::unreadable)
}

/// Selects pending deliveries. Written as a literal, like the next, because with a parameter the planner
/// does not see that the partial indexes apply.
pub(super) fn waits() -> Literal<Bool> {
    literal("deliveries.state = 'pending'")
}

/// Selects deliveries that are being sent.
pub(super) fn is_sent() -> Literal<Bool> {
    literal("deliveries.state = 'sending'")
}

/// Selects the delivery on which the claim is still valid.
#[auto_type(no_type_alias)]
pub(super) fn held_by(claim: &Claim) -> _ {
    let id: DbId = DbId::from(claim.delivery);
    let attempt: i32 = claim.attempt;
    let instance: DbId = DbId::from(claim.sender.instance);
    let boot: DbId = DbId::from(claim.sender.boot);
    deliveries::id
        .eq(id)
        .and(deliveries::state.eq("sending"))
        .and(deliveries::attempt.eq(attempt))
        .and(deliveries::lease_instance.eq(instance))
        .and(deliveries::lease_boot.eq(boot))
}

/// The values of the lease columns of a delivery that is not being sent.
pub(super) type NoLease = (
    diesel::dsl::Eq<deliveries::lease_instance, Option<DbId>>,
    diesel::dsl::Eq<deliveries::lease_boot, Option<DbId>>,
    diesel::dsl::Eq<deliveries::lease_until, Option<DbTs>>,
);

pub(super) fn no_lease() -> NoLease {
    (deliveries::lease_instance.eq(None), deliveries::lease_boot.eq(None), deliveries::lease_until.eq(None))
}
