//! The one behind a request.

use std::sync::Arc;

use super::{Credential, Identity, Permission, Permissions, Session};
use crate::{
    ids::{OrganizationId, UserId},
    users::{Profile, User, UserKind},
};

/// Someone who acts in an organization, with what they may do there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    identity: Arc<Identity>,
    organization: Option<OrganizationId>,
    permissions: Permissions,
}

/// Why an actor may not do a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// The organization is not one of the caller's, or does not exist.
    #[error("you are not a member of this organization")]
    NotAMember,
    /// The caller belongs to no organization at all.
    #[error("you are not a member of any organization")]
    NoOrganization,
    /// The role, or the token's scope, does not include the permission.
    #[error("this needs the permission `{0}`, which you do not have in this organization")]
    Lacks(Permission),
    /// Tokens, passwords and second factors are managed with a session only.
    #[error("this needs a session: log in instead of using an API token")]
    NeedsSession,
    /// Only who administers the installation may.
    #[error("this needs an administrator of the installation")]
    NotAnAdministrator,
}

impl Actor {
    pub(super) fn new(
        identity: Arc<Identity>,
        organization: Option<OrganizationId>,
        permissions: Permissions,
    ) -> Self {
        Self { identity, organization, permissions }
    }

    /// Who acts.
    #[must_use]
    pub fn user(&self) -> &User {
        &self.profile().user
    }

    /// Who acts, by id.
    #[must_use]
    pub fn user_id(&self) -> UserId {
        self.user().id
    }

    /// Who acts, with settings and memberships.
    #[must_use]
    pub fn profile(&self) -> &Arc<Profile> {
        &self.identity.profile
    }

    /// What they may do in their organization.
    #[must_use]
    pub fn permissions(&self) -> Permissions {
        self.permissions
    }

    /// Whether the actor administers the installation.
    #[must_use]
    pub fn administers_installation(&self) -> bool {
        self.user().kind == UserKind::Admin
    }

    /// The organization that they act in.
    ///
    /// # Errors
    /// [`Forbidden::NoOrganization`] when they belong to none.
    pub fn organization(&self) -> Result<OrganizationId, Forbidden> {
        self.organization.ok_or(Forbidden::NoOrganization)
    }

    /// The organization that they act in, if they have `permission` there.
    ///
    /// # Errors
    /// [`Forbidden::NoOrganization`] or [`Forbidden::Lacks`].
    pub fn require(&self, permission: Permission) -> Result<OrganizationId, Forbidden> {
        let organization = self.organization()?;
        if self.permissions.contain(permission) {
            Ok(organization)
        } else {
            Err(Forbidden::Lacks(permission))
        }
    }

    /// The session that they came with.
    ///
    /// # Errors
    /// [`Forbidden::NeedsSession`] when they came with an API token.
    pub fn session(&self) -> Result<&Session, Forbidden> {
        match &self.identity.credential {
            Credential::Session(session) => Ok(session),
            Credential::ApiToken(_) => Err(Forbidden::NeedsSession),
        }
    }
}
