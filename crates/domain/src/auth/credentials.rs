//! The credentials of logins.

use async_trait::async_trait;

use super::{ApiToken, PasswordHash, Session, TokenHash, TwoFactor};
use crate::{
    clock::Timestamp, ids::UserId, organizations::Scope, store_error::StoreError, users::EmailAddress,
};

/// The credentials that a login is checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The id of the user.
    pub user_id: UserId,
    /// The password, hashed; absent while the user has not set one.
    pub password: Option<PasswordHash>,
    /// The second factor, once it was set up; it is required only when enabled.
    pub two_factor: Option<TwoFactor>,
}

/// Reads credentials. Every method sees what `commit` last made durable and nothing of soft-deleted users.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait CredentialRepository: Send + Sync {
    /// Returns whether the first administrator exists.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn admin_registered(&self) -> Result<bool, StoreError>;

    /// Returns the credentials of the user with that address, ignoring case.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn by_email(&self, email: &EmailAddress) -> Result<Option<Credentials>, StoreError>;

    /// Returns the credentials of that user.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn by_user(&self, user_id: UserId) -> Result<Option<Credentials>, StoreError>;

    /// Returns the API tokens that a user has in that organization and that were not revoked, newest first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn api_tokens(&self, scope: Scope, user_id: UserId) -> Result<Vec<ApiToken>, StoreError>;

    /// Returns the sessions of a user that are open at that time, newest first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn sessions(&self, user_id: UserId, now: Timestamp) -> Result<Vec<Session>, StoreError>;

    /// Returns the user who may still set their first password with the token of that hash at that time.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn by_password_setup(
        &self,
        token: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<UserId>, StoreError>;
}
