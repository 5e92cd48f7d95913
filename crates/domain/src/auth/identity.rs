//! The holder of a token.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Actor, ApiToken, Forbidden, Origin, Session, TokenHash};
use crate::{
    clock::Timestamp, ids::OrganizationId, organizations::MembershipDetail, store::StoreError, users::Profile,
};

/// What a caller presented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A person's login.
    Session(Session),
    /// A program's access.
    ApiToken(ApiToken),
    /// Nothing: the service that embeds Launchway knows who it is, and says so.
    Vouched,
}

/// The holder of a token that was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// What was presented.
    pub credential: Credential,
    /// Whose it is.
    pub profile: Arc<Profile>,
}

impl Identity {
    /// Whether the token ended by itself.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        match &self.credential {
            Credential::Session(session) => session.expires_at <= now,
            Credential::ApiToken(token) => token.expires_at.is_some_and(|end| end <= now),
            Credential::Vouched => false,
        }
    }

    /// Lets the holder act in the organization that they ask for, by the request `origin`.
    ///
    /// Without one that is the token's own, or else the oldest membership. `None` inside `Ok`
    /// means that the token is void: its owner left the only organization that it works in.
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

/// Recognises tokens.
///
/// Promises: a token that was revoked, a session that was ended and a token of a deleted user are
/// not recognised, and memberships and roles are as the last commit left them, whichever process
/// made it. A token that ended by itself may still be recognised: compare with the clock.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait IdentityRepository: Send + Sync {
    /// The holder of the token with that hash.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn by_token(&self, hash: &TokenHash) -> Result<Option<Arc<Identity>>, StoreError>;
}
