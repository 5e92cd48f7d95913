//! The authenticated actor of a request.
//!
//! **Invariant:** an actor carries the request that it acts by, as an `Origin`: address, user agent and
//! request id. A login, which has no actor yet, gets it as an argument. `Actor::author` is derived from it
//! for the audit log.

use std::sync::Arc;

use uuid::Uuid;

use super::{Credential, Identity, Origin, Permission, Permissions, Session};
use crate::{
    audit::{Author, Chain},
    ids::{OrganizationId, UserId},
    organizations::{Membership, MembershipDetail, Organization, Role, Scope},
    users::{Profile, User, UserKind},
};

/// An actor in an organization, with its permissions there.
///
/// ```
/// use launchway_domain::{auth::Actor, organizations::{Organization, Role}, users::User};
/// use uuid::Uuid;
///
/// let now = chrono::DateTime::UNIX_EPOCH;
/// let id = Uuid::from_u128(1);
/// let engines = Organization::new(id.into(), "Engines".parse().unwrap(), "".parse().unwrap(), now);
/// let ada = User::invited(id.into(), "ada".parse().unwrap(), "ada@example.com".parse().unwrap(), now);
/// let ada = Actor::vouched_for(ada, engines, Role::Viewer);
/// assert!(!ada.permissions().contain("deploy:create".parse().unwrap()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    identity: Arc<Identity>,
    organization: Option<OrganizationId>,
    permissions: Permissions,
    origin: Origin,
}

/// The reason why an actor may not do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Forbidden {
    /// The organization is not one of the caller's, or does not exist.
    #[error("you are not a member of this organization")]
    NotAMember,
    /// The caller is a member of no organization.
    #[error("you are not a member of any organization")]
    NoOrganization,
    /// The role, or the token's scope, does not include the permission.
    #[error("this needs the permission `{0}`, which you do not have in this organization")]
    Lacks(Permission),
    /// Tokens, passwords and second factors can be managed with a session only.
    #[error("this needs a session: log in instead of using an API token")]
    NeedsSession,
    /// Only an administrator of the installation may do this.
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

    /// Returns an actor with `role` in an organization, authenticated by the service that embeds Launchway.
    /// That service has its own users, and authenticates them before it calls Launchway.
    #[must_use]
    pub fn vouched_for(user: User, organization: Organization, role: Role) -> Self {
        let (id, now) = (organization.id, user.created_at);
        let membership = Membership::new(Uuid::from(user.id).into(), id, user.id, role, now);
        let memberships = vec![MembershipDetail { membership, organization }];
        let profile = Arc::new(Profile { user, settings: None, memberships });
        let identity = Arc::new(Identity { credential: Credential::Vouched, profile });
        Self::new(identity, Some(id), role.permissions(), Origin::within())
    }

    /// Sets the request to one that the embedding service received.
    #[must_use]
    pub fn by_request(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// Returns the user.
    #[must_use]
    pub fn user(&self) -> &User {
        &self.profile().user
    }

    /// Returns the id of the user.
    #[must_use]
    pub fn user_id(&self) -> UserId {
        self.user().id
    }

    /// Returns the user with settings and memberships.
    #[must_use]
    pub fn profile(&self) -> &Arc<Profile> {
        &self.identity.profile
    }

    /// Returns the permissions in the actor's organization.
    #[must_use]
    pub fn permissions(&self) -> Permissions {
        self.permissions
    }

    /// Returns whether the actor administers the installation.
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

    /// Returns the request.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the author for the audit log of the actor's organization.
    #[must_use]
    pub fn author(&self) -> Author {
        Author {
            chain: Chain::from(self.organization),
            name: self.user().username.as_str().to_owned(),
            user_id: Some(self.user_id()),
            origin: Some(self.origin.clone()),
        }
    }

    /// Returns the same actor in another organization; `None` if the user is not a member of it.
    #[must_use]
    pub fn acting_in(&self, organization: OrganizationId) -> Option<Self> {
        let identity = Arc::clone(&self.identity);
        identity.act_in(Some(organization), self.origin.clone()).ok().flatten()
    }

    /// Returns the organization in which the actor acts.
    ///
    /// # Errors
    /// [`Forbidden::NoOrganization`] if the user is a member of none.
    pub fn organization(&self) -> Result<Scope, Forbidden> {
        self.organization.map(Scope::new).ok_or(Forbidden::NoOrganization)
    }

    /// Returns the membership in the actor's organization.
    #[must_use]
    pub fn membership(&self) -> Option<&MembershipDetail> {
        let in_question = |detail: &&MembershipDetail| Some(detail.organization.id) == self.organization;
        self.profile().memberships.iter().find(in_question)
    }

    /// Returns the actor's organization if the actor has `permission` there.
    ///
    /// # Errors
    /// [`Forbidden::NoOrganization`] or [`Forbidden::Lacks`].
    pub fn require(&self, permission: Permission) -> Result<Scope, Forbidden> {
        let scope = self.organization()?;
        if self.permissions.contain(permission) { Ok(scope) } else { Err(Forbidden::Lacks(permission)) }
    }

    /// Checks that the actor has every one of `permissions`: no one can grant what they do not have.
    ///
    /// # Errors
    /// [`Forbidden::Lacks`] with the first that is missing.
    pub fn require_all(&self, permissions: Permissions) -> Result<(), Forbidden> {
        match permissions.iter().find(|permission| !self.permissions.contain(*permission)) {
            Some(lacking) => Err(Forbidden::Lacks(lacking)),
            None => Ok(()),
        }
    }

    /// Returns the session of the actor.
    ///
    /// # Errors
    /// [`Forbidden::NeedsSession`] if the actor used an API token.
    pub fn session(&self) -> Result<&Session, Forbidden> {
        match &self.identity.credential {
            Credential::Session(session) => Ok(session),
            Credential::ApiToken(_) | Credential::Vouched => Err(Forbidden::NeedsSession),
        }
    }
}
