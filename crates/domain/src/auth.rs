//! Authentication and authorization.

mod actor;
mod api_token;
mod client;
#[cfg(feature = "accounts")]
mod credentials;
mod identity;
mod password;
mod permission;
mod session;
#[cfg(feature = "accounts")]
mod throttle;
mod token;
#[cfg(feature = "accounts")]
mod two_factor;

pub use self::{
    actor::{Actor, Forbidden},
    api_token::{ApiToken, ApiTokenName},
    client::{Client, Origin},
    identity::{Credential, Identity, IdentityRepository},
    password::{HasherError, Password, PasswordHash, PasswordHasher, PasswordSetup},
    permission::{Action, Permission, Permissions, Resource},
    session::Session,
    token::{Token, TokenHash, TokenKind},
};
#[cfg(all(feature = "accounts", feature = "mock"))]
pub use self::{credentials::MockCredentialRepository, throttle::MockLoginThrottle};
#[cfg(feature = "accounts")]
pub use self::{
    credentials::{CredentialRepository, Credentials},
    throttle::{AccountKey, Admission, LoginAttempt, LoginThrottle, ThrottleLimits},
    two_factor::{RecoveryCode, TotpSecret, TwoFactor},
};
#[cfg(feature = "mock")]
pub use self::{identity::MockIdentityRepository, password::MockPasswordHasher};
use crate::{
    clock::Timestamp,
    ids::{ApiTokenId, OrganizationId, SessionId, UserId},
    secret::Sealed,
};

/// Changes to sessions, tokens, passwords and second factors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Registers the first administrator of the installation. `Taken(Installation)` if there is one
    /// already.
    ClaimInstallation {
        /// The administrator.
        admin: UserId,
        /// The time of the change.
        at: Timestamp,
    },
    /// Sets or replaces a password. An open offer to set the first one becomes void.
    SetPassword {
        /// The id of the user.
        user_id: UserId,
        /// The password, hashed.
        hash: PasswordHash,
        /// The time of the change.
        at: Timestamp,
    },
    /// Changes nothing. `Stale` unless `hash` is still the user's password, so that a login that
    /// overlaps with a change of the password does not outlive it.
    ConfirmPassword {
        /// The id of the user.
        user_id: UserId,
        /// The hash that was verified.
        hash: PasswordHash,
    },
    /// Lets a user set their first password. Earlier offers become void. `Refused(AccountInUse)` if they
    /// have a password, or are a member of any organization.
    OfferPasswordSetup(PasswordSetup),
    /// Redeems the token of that hash. It does not verify an email address, because an admin handed it out.
    /// `Stale` unless it is the user's, and not expired at `at`.
    RedeemPasswordSetup {
        /// The id of the user.
        user_id: UserId,
        /// The hash of the token.
        token: TokenHash,
        /// The time of the change.
        at: Timestamp,
    },
    /// Opens a session. If it is from a device that was not seen for [so
    /// long](crate::notifications::DEVICE_KNOWN_FOR), the user's organizations are notified; sessions of
    /// the same user that ended longer ago may be deleted.
    OpenSession(Session),
    /// Extends a session. `Stale` if it was ended.
    ExtendSession {
        /// The id of the session.
        id: SessionId,
        /// When it was used.
        at: Timestamp,
        /// The new expiry.
        expires_at: Timestamp,
    },
    /// Ends a session. `Stale` if it was ended before.
    EndSession {
        /// The id of the session.
        id: SessionId,
        /// The time of the change.
        at: Timestamp,
    },
    /// Ends all sessions of a user, except for one that may be kept.
    EndSessions {
        /// The id of the user.
        user_id: UserId,
        /// The session to keep.
        keep: Option<SessionId>,
        /// The time of the change.
        at: Timestamp,
    },
    /// Issues an API token. `Taken(ApiTokenName)` if its owner has one of that name in the organization,
    /// `Stale` unless its owner is a member there.
    IssueApiToken(ApiToken),
    /// Revokes an API token. `Stale` unless that user has it in that organization.
    RevokeApiToken {
        /// The id of the API token.
        id: ApiTokenId,
        /// The organization.
        organization_id: OrganizationId,
        /// The id of the user.
        user_id: UserId,
        /// The time of the change.
        at: Timestamp,
    },
    /// Starts the set-up of a second factor. `Stale` if one is enabled already.
    BeginTwoFactor {
        /// The id of the user.
        user_id: UserId,
        /// The shared secret.
        secret: Sealed,
        /// The time of the change.
        at: Timestamp,
    },
    /// Requires the second factor from now on. `Stale` unless `secret` is the one being set up.
    EnableTwoFactor {
        /// The id of the user.
        user_id: UserId,
        /// The secret that the code was checked against.
        secret: Sealed,
        /// The time step of the code that confirmed the set-up; it cannot be used again.
        step: i64,
        /// The hashes of the recovery codes.
        recovery_codes: Vec<TokenHash>,
        /// The time of the change.
        at: Timestamp,
    },
    /// Removes the second factor. `Stale` if none was enabled.
    DisableTwoFactor {
        /// The id of the user.
        user_id: UserId,
        /// The time of the change.
        at: Timestamp,
    },
    /// Marks the time step of a code as used. `Stale` if that step, or a later one, was used before.
    UseTotpStep {
        /// The id of the user.
        user_id: UserId,
        /// The time step of the code.
        step: i64,
    },
    /// Marks a recovery code as used. `Stale` unless it exists and was not used before.
    UseRecoveryCode {
        /// The id of the user.
        user_id: UserId,
        /// The hash of the code.
        code: TokenHash,
        /// The time of the change.
        at: Timestamp,
    },
}

impl Write {
    /// Returns whether the change requires an entry in the audit log. The others only keep a login going or
    /// guard it.
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
