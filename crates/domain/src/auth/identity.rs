//! The holder of a token.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Actor, ApiToken, Forbidden, Origin, Session, TokenHash};
use crate::{
    clock::Timestamp, ids::OrganizationId, organizations::MembershipDetail, store_error::StoreError,
    users::Profile,
};

/// The credential that a caller presented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// The session of a user.
    Session(Session),
    /// The API token of a program.
    ApiToken(ApiToken),
    /// None: the service that embeds Launchway has authenticated the user.
    Vouched,
}

/// The holder of a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The credential that was presented.
    pub credential: Credential,
    /// The holder's profile.
    pub profile: Arc<Profile>,
}

impl Identity {
    /// Returns whether the token has expired.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        match &self.credential {
            Credential::Session(session) => session.expires_at <= now,
            Credential::ApiToken(token) => token.expires_at.is_some_and(|end| end <= now),
            Credential::Vouched => false,
        }
    }

    /// Returns the holder as an actor in the organization that they ask for, by the request `origin`.
    ///
    /// If they ask for none, it is the organization of the token, or else that of the oldest membership.
    /// `None` inside `Ok` means that the token is void: its owner left the only organization that it works
    /// in.
    ///
    /// # Errors
    /// [`Forbidden::NotAMember`] for any other organization, whether it exists or not.
    pub fn act_in(
        self: Arc<Self>,
        requested: Option<OrganizationId>,
        origin: Origin,
    ) -> Result<Option<Actor>, Forbidden> {
        match &self.credential {
            Credential::Session(_) | Credential::Vouched => {
                let membership = match requested {
                    None => self.profile.memberships.first(),
                    Some(id) => Some(self.membership_of(id).ok_or(Forbidden::NotAMember)?),
                };
                let (organization, permissions) = membership
                    .map(|detail| (detail.membership.organization_id, detail.membership.role.permissions()))
                    .unzip();
                Ok(Some(Actor::new(Arc::clone(&self), organization, permissions.unwrap_or_default(), origin)))
            }
            Credential::ApiToken(token) => {
                if requested.is_some_and(|id| id != token.organization_id) {
                    return Err(Forbidden::NotAMember);
                }
                let Some(detail) = self.membership_of(token.organization_id) else {
                    return Ok(None);
                };
                let permissions = detail.membership.role.permissions().and(token.permissions);
                Ok(Some(Actor::new(Arc::clone(&self), Some(token.organization_id), permissions, origin)))
            }
        }
    }

    fn membership_of(&self, organization: OrganizationId) -> Option<&MembershipDetail> {
        self.profile.memberships.iter().find(|detail| detail.membership.organization_id == organization)
    }
}

/// Authenticates tokens.
///
/// Promises: a token that was revoked, a session that was ended and a token of a deleted user are not
/// accepted, and memberships and roles are as the last commit left them, whichever process made it. An
/// expired token may still be found: compare with the clock.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait IdentityRepository: Send + Sync {
    /// Returns the holder of the token with that hash.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn by_token(&self, hash: &TokenHash) -> Result<Option<Arc<Identity>>, StoreError>;
}
