//! The errors of use cases.

use std::time::Duration;

use launchway_domain::{
    auth::{Forbidden, HasherError},
    quotas::QuotaExceeded,
    secret::SecretBoxError,
    store::{StoreError, Unique},
};

/// The error of a use case. The codes and statuses of the API are listed in `docs/errors.md`.
///
/// A front end shows the message to the user, except that of [`Unavailable`](Error::Unavailable) and
/// [`Internal`](Error::Internal): their cause is for the log. A message names no endpoint, header or field of
/// a protocol; a front end adds the advice that its protocol needs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value violates a rule that only the use case can check.
    #[error("{0}")]
    Invalid(String),
    /// There is no token, or it is unknown, revoked or expired.
    #[error("a valid token is needed: log in to get one")]
    Unauthenticated,
    /// A password or a code is wrong.
    #[error("{0}")]
    InvalidCredentials(&'static str),
    /// A webhook is not signed with the secret of a repository that is deployed here.
    #[error("this webhook is not signed with the secret of a repository that is deployed here")]
    InvalidSignature,
    /// The password is right, and a TOTP code is needed too.
    #[error("this account needs a code from its authenticator")]
    TwoFactorRequired,
    /// The actor lacks the permission.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The first administrator can only be registered by a user who can read the log or the files of the
    /// server.
    #[error(
        "registration from another machine needs the setup token that the server printed when it started"
    )]
    SetupTokenNeeded,
    /// The first administrator exists already.
    #[error("an administrator is registered already: log in, or ask them to add you to an organization")]
    RegistrationClosed,
    /// The resource does not exist, or belongs to another organization.
    #[error("{0} was not found")]
    NotFound(&'static str),
    /// The current state does not allow the request.
    #[error("{0}")]
    Conflict(String),
    /// A quota of the organization is exhausted.
    #[error(transparent)]
    QuotaExceeded(QuotaExceeded),
    /// A concurrency quota is reached; it becomes available again soon.
    #[error("{exceeded}; try again in {} seconds", retry_after.as_secs())]
    Busy {
        /// The quota that is reached.
        exceeded: QuotaExceeded,
        /// The time to wait before a retry.
        retry_after: Duration,
    },
    /// A request with the same idempotency key was processed already.
    #[error("a request with this idempotency key was already processed")]
    Repeated,
    /// The idempotency key was used with another body.
    #[error("this idempotency key was used with another body: use a new one for another request")]
    IdempotencyKeyReused,
    /// The organization has a webhook channel of this kind already.
    #[cfg(feature = "notifications")]
    #[error("a webhook of type {} is configured already: change it, or delete it first", .0.as_str())]
    WebhookConfigured(launchway_domain::notifications::WebhookKind),
    /// The organization has a mail server already.
    #[error("a mail server is configured already: change it, or delete it first")]
    MailServerConfigured,
    /// Too many attempts.
    #[error("too many attempts; try again in {} seconds", retry_after.as_secs())]
    RateLimited {
        /// The time to wait before a retry.
        retry_after: Duration,
    },
    /// A dependency cannot be reached; a retry may help.
    #[error("a required service is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The disk of the database is full; a retry helps once there is space.
    #[error(
        "the disk of the database is full: nothing was changed. Reads go on; changes are accepted again as soon as there \
         is space"
    )]
    StorageFull(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A bug in Launchway or inconsistent data.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::Unavailable(error.into()),
            StoreError::StorageFull(cause) => Self::StorageFull(cause),
            StoreError::QuotaExceeded(exceeded) => Self::QuotaExceeded(exceeded),
            // Only a claim of a key fails like this.
            StoreError::Taken(Unique::IdempotencyKey) => Self::Repeated,
            // Use cases that expect other errors map them; here they are unexpected.
            _ => Self::Internal(error.into()),
        }
    }
}

impl From<HasherError> for Error {
    fn from(error: HasherError) -> Self {
        match error {
            HasherError::Busy => Self::RateLimited { retry_after: Duration::from_secs(1) },
            HasherError::Broken(_) => Self::Internal(error.into()),
        }
    }
}

impl From<SecretBoxError> for Error {
    fn from(error: SecretBoxError) -> Self {
        Self::Internal(error.into())
    }
}
