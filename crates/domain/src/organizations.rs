//! Organizations: the tenants of an installation, and their members.

mod deploy_key;
mod invitation;
mod membership;
mod organization;
mod role;
mod scope;

use async_trait::async_trait;

#[cfg(feature = "mock")]
pub use self::deploy_key::{MockDeployKeyRepository, MockKeyMaker};
pub use self::{
    deploy_key::{DeployKey, DeployKeyRepository, KeyMaker, KeyPair},
    invitation::{Invitation, InvitationDetail},
    membership::{Membership, MembershipDetail},
    organization::{Description, Organization, OrganizationName},
    role::Role,
    scope::Scope,
};
use crate::{
    auth::TokenHash,
    clock::Timestamp,
    ids::{InvitationId, MembershipId, UserId},
    store_error::StoreError,
    users::{EmailAddress, User},
};

/// An organization with its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrganizationDetail {
    /// The organization.
    pub organization: Organization,
    /// Its members, oldest membership first.
    pub members: Vec<Member>,
}

/// A member of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The membership.
    pub membership: Membership,
    /// The user.
    pub user: User,
}

/// A user who might become a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The user.
    pub user: User,
    /// True if the account was never used: it has no password and no membership.
    pub is_unused: bool,
}

/// Reads organizations. Every method sees what `commit` last made durable and no soft-deleted
/// record.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait OrganizationRepository: Send + Sync {
    /// Returns the organization with its members (oldest membership first, ties by id); `None` when it is
    /// gone.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn detail(&self, scope: Scope) -> Result<Option<OrganizationDetail>, StoreError>;

    /// Returns one member; `None` if the user is not a member.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn member(&self, scope: Scope, user_id: UserId) -> Result<Option<Member>, StoreError>;

    /// Returns the user of the installation who has that address, ignoring case.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn candidate(&self, email: &EmailAddress) -> Result<Option<Candidate>, StoreError>;

    /// Returns the invitations of an organization that can be accepted at `now`, newest first, ties by id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn invitations(&self, scope: Scope, now: Timestamp) -> Result<Vec<InvitationDetail>, StoreError>;

    /// Returns the invitations of a user that can be accepted at `now`, newest first, ties by id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn invitations_of(
        &self,
        user_id: UserId,
        now: Timestamp,
    ) -> Result<Vec<InvitationDetail>, StoreError>;
}

/// Changes to organizations and memberships.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Inserts an organization. `Taken(OrganizationName)` if the name is in use, ignoring case.
    Insert(Organization),
    /// Changes the name, the description, or both. `Stale` if the organization is gone,
    /// `Taken(OrganizationName)` if the name is in use.
    Update {
        /// The organization.
        scope: Scope,
        /// The new name.
        name: Option<OrganizationName>,
        /// The new description.
        description: Option<Description>,
        /// The time of the change.
        at: Timestamp,
    },
    /// Deletes the organization and its memberships, and revokes the API tokens that work in it and its
    /// invitations. `Stale` if it was gone already, `Refused(HasApplications)` while it has applications.
    Delete {
        /// The organization.
        scope: Scope,
        /// The time of the change.
        at: Timestamp,
    },
    /// Adds a member, whose invitation becomes void. `Taken(Membership)` if the user is one already,
    /// `Stale` if the organization is gone.
    InsertMembership(Membership),
    /// Invites a user; an earlier invitation of theirs to the organization becomes void.
    /// `Taken(Membership)` if the user is a member already, `Stale` if the organization is gone.
    Invite(Invitation),
    /// Turns an invitation into a membership. `Stale` if the user has no such invitation, or it has expired
    /// at `at`, or the organization is gone. `Refused(InvitationToken)` if the address of the user is not
    /// verified and `token` is not that of the invitation.
    AcceptInvitation {
        /// The invitation.
        id: InvitationId,
        /// The user who accepts it.
        user_id: UserId,
        /// The hash of the token that they gave.
        token: Option<TokenHash>,
        /// The id of the new membership.
        membership: MembershipId,
        /// The time of the acceptance.
        at: Timestamp,
    },
    /// Ends an invitation. `Stale` when the user has no such invitation, or it has expired at `at`.
    DeclineInvitation {
        /// The invitation.
        id: InvitationId,
        /// The user who declines it.
        user_id: UserId,
        /// The time of the refusal.
        at: Timestamp,
    },
    /// Ends an invitation. `Stale` when the user has none to the organization, or it has expired at `at`.
    WithdrawInvitation {
        /// The organization that invited.
        scope: Scope,
        /// The user who was invited.
        user_id: UserId,
        /// The time of the withdrawal.
        at: Timestamp,
    },
    /// Changes the role of a member. Invitations by a member who is not an admin any more become void.
    /// `Stale` if the user is not a member, `Refused(LastAdmin)` if no admin would be left.
    ChangeRole {
        /// The organization.
        scope: Scope,
        /// The id of the user.
        user_id: UserId,
        /// The new role.
        role: Role,
        /// The time of the change.
        at: Timestamp,
    },
    /// Removes a member. Their API tokens in that organization are revoked, and stay so if they come back.
    /// So are their invitations. `Stale` if the user is not a member, `Refused(LastAdmin)` if no admin
    /// would be left.
    RemoveMember {
        /// The organization.
        scope: Scope,
        /// The id of the member.
        user_id: UserId,
        /// The time of the change.
        at: Timestamp,
    },
    /// Sets the organization's first deploy key. `Stale` if it has one, or is gone.
    FirstDeployKey(DeployKey),
    /// Replaces the organization's deploy key, if it has one. `Stale` if it is gone.
    ReplaceDeployKey(DeployKey),
}
