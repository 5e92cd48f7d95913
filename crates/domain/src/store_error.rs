//! The errors of the store. Every feature imports them, so they import none.

use crate::limits::QuotaExceeded;

/// The error of a store operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database cannot be reached or is too busy; the same call may succeed later.
    #[error("the database is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The disk of the database is full; the same call may succeed once there is space.
    #[error("the disk of the database is full")]
    StorageFull(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Something unique exists already.
    #[error("{0:?} is taken")]
    Taken(Unique),
    /// The guard of a write no longer holds.
    #[error("the stored state has changed meanwhile")]
    Stale,
    /// A rule about what is stored forbids it.
    #[error("{0:?} forbids it")]
    Refused(Rule),
    /// A quota of the organization is exceeded.
    #[error(transparent)]
    QuotaExceeded(QuotaExceeded),
    /// The writes change something without an entry in the audit log.
    #[error("a change without an audit entry")]
    Unaudited,
    /// An error that a retry will not fix.
    #[error("the database refused a statement")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A rule about stored records that only the store can check atomically with the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// An organization must keep an admin.
    LastAdmin,
    /// An account that is in use cannot be taken over.
    AccountInUse,
    /// An organization with applications cannot be deleted.
    HasApplications,
    /// An organization with objects of extensions cannot be deleted.
    HasExtensions,
    /// An application has a maximum number of domains.
    MostDomains,
    /// An application has a maximum number of previews, and of requests that wait for an approval.
    MostPreviews,
    /// An account with an unverified address needs the token to accept an invitation.
    InvitationToken,
}

/// A unique property of stored records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unique {
    /// The first administrator of the installation.
    Installation,
    /// The e-mail address of a user, ignoring case.
    UserEmail,
    /// The name of an organization, ignoring case.
    OrganizationName,
    /// A user's membership of one organization.
    Membership,
    /// The name of a caller's API token in one organization.
    ApiTokenName,
    /// The name of an application in one organization and environment.
    ApplicationName,
    /// A domain in the installation.
    Domain,
    /// The key of an extension.
    ExtensionKey,
    /// An idempotency key.
    IdempotencyKey,
    /// A delivery of a code host to one application.
    WebhookDelivery,
    /// An organization's HTTP channel of one kind.
    WebhookConfig,
    /// An organization's SMTP configuration.
    SmtpConfig,
}
