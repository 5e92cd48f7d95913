//! Why a use case did not do what was asked.

use std::time::Duration;

use launchway_domain::{
    auth::{Forbidden, HasherError},
    quotas::QuotaExceeded,
    secret::SecretBoxError,
    store::StoreError,
};

/// Why a use case did not do what was asked: one variant for each row of the contract's table.
///
/// A front end shows the message to a person, except that of [`Unavailable`](Error::Unavailable)
/// and [`Internal`](Error::Internal): their cause is for the log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value is refused by a rule that only the use case can check.
    #[error("{0}")]
    Invalid(String),
    /// There is no token, or it is unknown, revoked or expired.
    #[error("a valid bearer token is needed: log in, and send `Authorization: Bearer <token>`")]
    Unauthenticated,
    /// A password or a code is wrong.
    #[error("{0}")]
    InvalidCredentials(&'static str),
    /// A webhook is not signed with the secret of a repository that is deployed here.
    #[error(
        "this webhook is not signed with the secret of a repository that is deployed here: an admin reads it by \
         `GET /api/v1/deploy/application/webhook-secret?id=`"
    )]
    InvalidSignature,
    /// The password is right, and a code is needed too.
    #[error("this account needs a code from its authenticator: send it as `totp_code`")]
    TwoFactorRequired,
    /// The actor may not do that.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The first administrator can be made only by who can read the server's log or files.
    #[error(
        "from elsewhere than the server's own machine, registration needs the `setup_token` that the server \
         printed when it started"
    )]
    SetupTokenNeeded,
    /// The first administrator exists.
    #[error(
        "an administrator is registered already: log in by `POST /api/v1/auth/login`, or ask them to add you to an \
         organization"
    )]
    RegistrationClosed,
    /// What was asked for does not exist, or belongs to another organization.
    #[error("{0} was not found")]
    NotFound(&'static str),
    /// The present state forbids it.
    #[error("{0}")]
    Conflict(String),
    /// The organization has no room for it.
    #[error(transparent)]
    QuotaExceeded(QuotaExceeded),
    /// Too much of a resource is in use now; some of it is given back soon.
    #[error("{exceeded}; try again in {} seconds", retry_after.as_secs())]
    Busy {
        /// The quota that is reached.
        exceeded: QuotaExceeded,
        /// The time to wait.
        retry_after: Duration,
    },
    /// The request was carried out already, under the same idempotency key.
    #[error("a request with this `Idempotency-Key` was carried out already")]
    Repeated,
    /// Too many tries.
    #[error("too many tries; try again in {} seconds", retry_after.as_secs())]
    RateLimited {
        /// The time to wait.
        retry_after: Duration,
    },
    /// Something that is needed cannot be reached; trying again may help.
    #[error("something that is needed is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The disk of the database is full; trying again helps once there is space.
    #[error(
        "the disk of the database is full: nothing was changed. Reads go on; changes are accepted again as soon as there \
         is space"
    )]
    StorageFull(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A fault in Launchway or in its data.
    #[error("something went wrong")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::Unavailable(error.into()),
            StoreError::StorageFull(cause) => Self::StorageFull(cause),
            StoreError::QuotaExceeded(exceeded) => Self::QuotaExceeded(exceeded),
            // A use case that can meet these names them; here they are a surprise.
            StoreError::Taken(_)
            | StoreError::Stale
            | StoreError::Refused(_)
            | StoreError::Unaudited
            | StoreError::Internal(_) => Self::Internal(error.into()),
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
