//! The one behind a request.

use std::sync::Arc;

use uuid::Uuid;

use super::{Credential, Identity, Origin, Permission, Permissions, Session};
use crate::{
    audit::{Author, Chain},
    ids::{OrganizationId, UserId},
    organizations::{Membership, MembershipDetail, Organization, Role, Scope},
    users::{Profile, User, UserKind},
};

/// Someone who acts in an organization, with what they may do there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    identity: Arc<Identity>,
    organization: Option<OrganizationId>,
    permissions: Permissions,
    origin: Origin,
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
    /// Metrics are for administrators of the installation and for tokens that they issued for it.
    #[error(
        "this needs a session of an administrator of the installation, or an API token of theirs with the permission \
         `metrics:read`"
    )]
    NoMetrics,
}

impl Actor {
    pub(super) fn new(
        identity: Arc<Identity>,
        organization: Option<OrganizationId>,
        permissions: Permissions,
        origin: Origin,
    ) -> Self {
        Self { identity, organization, permissions, origin }
    }

    /// Somebody who acts as `role` in an organization because the service that embeds Launchway says
    /// so. It has its own users, and recognises them before it comes here.
    #[must_use]
    pub fn vouched_for(user: User, organization: Organization, role: Role) -> Self {
        let (id, now) = (organization.id, user.created_at);
        let membership = Membership::new(Uuid::from(user.id).into(), id, user.id, role, now);
        let memberships = vec![MembershipDetail { membership, organization }];
        let profile = Arc::new(Profile { user, settings: None, memberships });
        let identity = Arc::new(Identity { credential: Credential::Vouched, profile });
        Self::new(identity, Some(id), role.permissions(), Origin::within())
    }

    /// The same one, by a request that came to the embedding service.
    #[must_use]
    pub fn by_request(self, origin: Origin) -> Self {
        Self { origin, ..self }
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

    /// Fails unless the actor may read the metrics of the installation: by a session of one of its administrators, or by an
    /// API token that an administrator issued for it.
    ///
    /// # Errors
    /// [`Forbidden::NoMetrics`].
    pub fn require_metrics(&self) -> Result<(), Forbidden> {
        let is_issued_for_it = match &self.identity.credential {
            Credential::Session(_) => true,
            Credential::ApiToken(token) => token.permissions.contain(Permission::METRICS),
            Credential::Vouched => false,
        };
        if is_issued_for_it && self.administers_installation() { Ok(()) } else { Err(Forbidden::NoMetrics) }
    }

    /// The request that they act by.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// How the audit trail knows them: in the trail of the organization that they act in.
    #[must_use]
    pub fn author(&self) -> Author {
        Author {
            chain: Chain::from(self.organization),
            name: self.user().username.as_str().to_owned(),
            user_id: Some(self.user_id()),
            origin: Some(self.origin.clone()),
        }
    }

    /// The same one, acting in another organization; `None` when it is not one of theirs.
    #[must_use]
    pub fn acting_in(&self, organization: OrganizationId) -> Option<Self> {
        let identity = Arc::clone(&self.identity);
        identity.act_in(Some(organization), self.origin.clone()).ok().flatten()
    }

    /// The organization that they act in.
    ///
    /// # Errors
    /// [`Forbidden::NoOrganization`] when they belong to none.
    pub fn organization(&self) -> Result<Scope, Forbidden> {
        self.organization.map(Scope::new).ok_or(Forbidden::NoOrganization)
    }

    /// What they are in the organization that they act in, and what that is.
    #[must_use]
    pub fn membership(&self) -> Option<&MembershipDetail> {
        let in_question = |detail: &&MembershipDetail| Some(detail.organization.id) == self.organization;
        self.profile().memberships.iter().find(in_question)
    }

    /// The organization that they act in, if they have `permission` there.
    ///
    /// # Errors
    /// [`Forbidden::NoOrganization`] or [`Forbidden::Lacks`].
    pub fn require(&self, permission: Permission) -> Result<Scope, Forbidden> {
        let scope = self.organization()?;
        if self.permissions.contain(permission) { Ok(scope) } else { Err(Forbidden::Lacks(permission)) }
    }

    /// That they have every one of `permissions`: nobody gives away what they do not have.
    ///
    /// # Errors
    /// [`Forbidden::Lacks`] with the first that they lack.
    pub fn require_all(&self, permissions: Permissions) -> Result<(), Forbidden> {
        match permissions.iter().find(|permission| !self.permissions.contain(*permission)) {
            Some(lacking) => Err(Forbidden::Lacks(lacking)),
            None => Ok(()),
        }
    }

    /// The session that they came with.
    ///
    /// # Errors
    /// [`Forbidden::NeedsSession`] when they came with an API token.
    pub fn session(&self) -> Result<&Session, Forbidden> {
        match &self.identity.credential {
            Credential::Session(session) => Ok(session),
            Credential::ApiToken(_) | Credential::Vouched => Err(Forbidden::NeedsSession),
        }
    }
}
