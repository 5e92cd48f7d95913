//! Who is calling, and what they may do.

mod actor;
mod api_token;
mod client;
mod identity;
mod password;
mod permission;
mod session;
mod throttle;
mod token;
mod two_factor;

use async_trait::async_trait;

pub use self::{
    actor::{Actor, Forbidden},
    api_token::{ApiToken, ApiTokenName},
    client::{Client, Origin},
    identity::{Credential, Identity, IdentityRepository},
    password::{HasherError, Password, PasswordHash, PasswordHasher, PasswordSetup},
    permission::{Action, Permission, Permissions, Resource},
    session::Session,
    throttle::{AccountKey, Admission, LoginAttempt, LoginThrottle, ThrottleLimits},
    token::{Token, TokenHash, TokenKind},
    two_factor::{RecoveryCode, TotpSecret, TwoFactor},
};
#[cfg(feature = "mock")]
pub use self::{identity::MockIdentityRepository, password::MockPasswordHasher, throttle::MockLoginThrottle};
use crate::{
    clock::Timestamp,
    ids::{ApiTokenId, OrganizationId, SessionId, UserId},
    organizations::Scope,
    secret::Sealed,
    store::{self, StoreError},
    users::EmailAddress,
};

/// What a login is checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Whose they are.
    pub user_id: UserId,
    /// The password, hashed; absent while the user has not set one.
    pub password: Option<PasswordHash>,
    /// The second factor, once it was set up; it counts only when enabled.
    pub two_factor: Option<TwoFactor>,
}

/// Reads what logins are checked against. Every method sees what `commit` last made durable and
/// nothing of soft-deleted users.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait CredentialRepository: Send + Sync {
    /// Whether the first administrator exists.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn admin_registered(&self) -> Result<bool, StoreError>;

    /// The credentials of the user with that address, ignoring case.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn by_email(&self, email: &EmailAddress) -> Result<Option<Credentials>, StoreError>;

    /// The credentials of that user.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn by_user(&self, user_id: UserId) -> Result<Option<Credentials>, StoreError>;

    /// The API tokens that a user has in that organization and that were not revoked, newest first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn api_tokens(&self, scope: Scope, user_id: UserId) -> Result<Vec<ApiToken>, StoreError>;

    /// Who may still set their first password with the token of that hash, at that moment.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn by_password_setup(
        &self,
        token: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<UserId>, StoreError>;
}

/// Changes to sessions, tokens, passwords and second factors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// The installation has its first administrator. `Taken(Installation)` when it had one.
    ClaimInstallation {
        /// The administrator.
        admin: UserId,
        /// When.
        at: Timestamp,
    },
    /// Sets or replaces a password. The user has one from now on, so that an offer to set the first
    /// one is void.
    SetPassword {
        /// Whose.
        user_id: UserId,
        /// The password, hashed.
        hash: PasswordHash,
        /// When.
        at: Timestamp,
    },
    /// Changes nothing. `Stale` unless `hash` is still the user's password, so that a login that
    /// overlaps with a change of the password does not outlive it.
    ConfirmPassword {
        /// Whose.
        user_id: UserId,
        /// The hash that was verified.
        hash: PasswordHash,
    },
    /// Lets a user set their first password. What they were offered before is void.
    /// `Refused(AccountInUse)` when they have a password, or are a member anywhere.
    OfferPasswordSetup(PasswordSetup),
    /// The token of that hash is used up. It proves no address, because an admin handed it out. `Stale` unless it is the
    /// user's, and not expired at `at`.
    RedeemPasswordSetup {
        /// Whose.
        user_id: UserId,
        /// What recognises the token.
        token: TokenHash,
        /// When.
        at: Timestamp,
    },
    /// A new session. When it is from a device that was not seen for
    /// [so long](crate::notifications::DEVICE_KNOWN_FOR), the user's organizations are told; sessions of
    /// the same user that were over for longer may be forgotten.
    OpenSession(Session),
    /// A session lives longer. `Stale` when it was ended.
    ExtendSession {
        /// Which.
        id: SessionId,
        /// When it was used.
        at: Timestamp,
        /// Its new end.
        expires_at: Timestamp,
    },
    /// A session is over. `Stale` when it was ended before.
    EndSession {
        /// Which.
        id: SessionId,
        /// When.
        at: Timestamp,
    },
    /// All sessions of a user are over, but for one that may be kept.
    EndSessions {
        /// Whose.
        user_id: UserId,
        /// The session that goes on.
        keep: Option<SessionId>,
        /// When.
        at: Timestamp,
    },
    /// A new API token. `Taken(ApiTokenName)` when its owner has one of that name there, `Stale`
    /// unless its owner is a member there.
    IssueApiToken(ApiToken),
    /// An API token is void. `Stale` unless that user has it in that organization.
    RevokeApiToken {
        /// Which.
        id: ApiTokenId,
        /// Where.
        organization_id: OrganizationId,
        /// Whose.
        user_id: UserId,
        /// When.
        at: Timestamp,
    },
    /// A second factor is being set up. `Stale` when one is enabled already.
    BeginTwoFactor {
        /// Whose.
        user_id: UserId,
        /// The shared secret.
        secret: Sealed,
        /// When.
        at: Timestamp,
    },
    /// The second factor is demanded from now on. `Stale` unless `secret` is the one being set up.
    EnableTwoFactor {
        /// Whose.
        user_id: UserId,
        /// The secret that the code was checked against.
        secret: Sealed,
        /// The time step of the code that proved the set-up; it does not work again.
        step: i64,
        /// The hashes of the recovery codes.
        recovery_codes: Vec<TokenHash>,
        /// When.
        at: Timestamp,
    },
    /// The second factor is gone. `Stale` when there was none enabled.
    DisableTwoFactor {
        /// Whose.
        user_id: UserId,
        /// When.
        at: Timestamp,
    },
    /// A code was used. `Stale` when that step, or a later one, was used before.
    UseTotpStep {
        /// Whose.
        user_id: UserId,
        /// The time step of the code.
        step: i64,
    },
    /// A recovery code was used. `Stale` unless it exists and was not used before.
    UseRecoveryCode {
        /// Whose.
        user_id: UserId,
        /// The hash of the code.
        code: TokenHash,
        /// When.
        at: Timestamp,
    },
}

impl Write {
    /// Whether the trail has to tell of it. The others only keep a login going or guard it.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        match self {
            Self::ConfirmPassword { .. }
            | Self::ExtendSession { .. }
            | Self::UseTotpStep { .. }
            | Self::UseRecoveryCode { .. } => false,
            Self::ClaimInstallation { .. }
            | Self::SetPassword { .. }
            | Self::OfferPasswordSetup(_)
            | Self::RedeemPasswordSetup { .. }
            | Self::OpenSession(_)
            | Self::EndSession { .. }
            | Self::EndSessions { .. }
            | Self::IssueApiToken(_)
            | Self::RevokeApiToken { .. }
            | Self::BeginTwoFactor { .. }
            | Self::EnableTwoFactor { .. }
            | Self::DisableTwoFactor { .. } => true,
        }
    }
}

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::Auth(write)
    }
}
