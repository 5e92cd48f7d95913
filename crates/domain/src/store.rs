//! Writing: the only way to change what is stored.

use async_trait::async_trait;

use crate::{auth, organizations, users};

/// One change to what is stored. Each feature owns its own writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Sessions, tokens, passwords, two-factor login.
    Auth(auth::Write),
    /// Users and their settings.
    User(users::Write),
    /// Organizations and memberships.
    Organization(organizations::Write),
}

/// Makes changes durable.
///
/// Promises: all writes of one call take effect together, in their order, or none does; when the
/// call returns `Ok` they survive the loss of power; every repository sees them from then on.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait UnitOfWork: Send + Sync {
    /// Carries out `writes` as one unit.
    ///
    /// # Errors
    /// [`StoreError::Taken`] when a write would repeat something unique, [`StoreError::Stale`]
    /// when a write's guard no longer holds; then nothing was changed.
    async fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError>;
}

/// Why the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached or is too busy; the same call may succeed later.
    #[error("the database is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Something unique exists already.
    #[error("{0:?} is taken")]
    Taken(Unique),
    /// What a guarded write expected to find is not there any more.
    #[error("the stored state has changed meanwhile")]
    Stale,
    /// A fault that trying again will not mend.
    #[error("the database refused a statement")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What may exist only once.
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
}
