//! Organizations: the tenants of an installation, and who belongs to them.

mod deploy_key;
mod membership;
mod organization;
mod role;
mod scope;

use async_trait::async_trait;

#[cfg(feature = "mock")]
pub use self::deploy_key::{MockDeployKeyRepository, MockKeyMaker};
pub use self::{
    deploy_key::{DeployKey, DeployKeyRepository, KeyMaker, KeyPair},
    membership::{Membership, MembershipDetail},
    organization::{Description, Organization, OrganizationName},
    role::Role,
    scope::Scope,
};
use crate::{
    clock::Timestamp,
    ids::UserId,
    store::{self, StoreError},
    users::{EmailAddress, User},
};

/// An organization and everyone in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrganizationDetail {
    /// The organization.
    pub organization: Organization,
    /// Its members, oldest membership first.
    pub members: Vec<Member>,
}

/// Someone in an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// As what.
    pub membership: Membership,
    /// Who.
    pub user: User,
}

/// Someone who might become a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Who.
    pub user: User,
    /// Whether nobody has used the account yet: it has no password and no membership.
    pub is_unused: bool,
}

/// Reads organizations. Every method sees what `commit` last made durable and no soft-deleted
/// record.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait OrganizationRepository: Send + Sync {
    /// The organization with its members (oldest membership first, ties by id); `None` when it is
    /// gone.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn detail(&self, scope: Scope) -> Result<Option<OrganizationDetail>, StoreError>;

    /// One member; `None` for who is none.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn member(&self, scope: Scope, user_id: UserId) -> Result<Option<Member>, StoreError>;

    /// The user of the installation who has that address, ignoring case.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn candidate(&self, email: &EmailAddress) -> Result<Option<Candidate>, StoreError>;
}

/// Changes to organizations and memberships.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A new organization. `Taken(OrganizationName)` when the name is in use, ignoring case.
    Insert(Organization),
    /// Another name, another description, or both. `Stale` when the organization is gone,
    /// `Taken(OrganizationName)` when the name is in use.
    Update {
        /// Which.
        scope: Scope,
        /// The new name.
        name: Option<OrganizationName>,
        /// The new description.
        description: Option<Description>,
        /// When.
        at: Timestamp,
    },
    /// The organization is gone, its members are none any more, and the API tokens that work in it
    /// are void. `Stale` when it was gone, `Refused(HasApplications)` while it has applications.
    Delete {
        /// Which.
        scope: Scope,
        /// When.
        at: Timestamp,
    },
    /// A new member. `Taken(Membership)` when the user is one already, `Stale` when the
    /// organization is gone.
    InsertMembership(Membership),
    /// Another role. `Stale` when the user is no member, `Refused(LastAdmin)` when nobody would be
    /// admin any more.
    ChangeRole {
        /// Where.
        scope: Scope,
        /// Whose.
        user_id: UserId,
        /// The new role.
        role: Role,
        /// When.
        at: Timestamp,
    },
    /// A member less, whose API tokens in that organization are void, and stay so if they come back.
    /// `Stale` when the user is none, `Refused(LastAdmin)` when nobody would be admin any more.
    RemoveMember {
        /// Where.
        scope: Scope,
        /// Who.
        user_id: UserId,
        /// When.
        at: Timestamp,
    },
    /// The organization's first deploy key. `Stale` when it has one, or is gone.
    FirstDeployKey(DeployKey),
    /// The organization's deploy key from now on, whichever it had. `Stale` when it is gone.
    ReplaceDeployKey(DeployKey),
}

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::Organization(write)
    }
}
