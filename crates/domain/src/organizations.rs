//! Organizations: the tenants of an installation, and who belongs to them.

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
    /// The organization is gone, its members are none any more, and the API tokens that work in it and its invitations
    /// are void. `Stale` when it was gone, `Refused(HasApplications)` while it has applications.
    Delete {
        /// Which.
        scope: Scope,
        /// When.
        at: Timestamp,
    },
    /// A new member, whose invitation is void. `Taken(Membership)` when the user is one already, `Stale` when the
    /// organization is gone.
    InsertMembership(Membership),
    /// Invites a user; an earlier invitation of theirs to the organization is void. `Taken(Membership)` when the user is a
    /// member already, `Stale` when the organization is gone.
    Invite(Invitation),
    /// Makes a membership of an invitation. `Stale` when the user has no such invitation, or it has expired at `at`, or the
    /// organization is gone. `Refused(InvitationToken)` when the address of the user is not verified and `token` is not that
    /// of the invitation.
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
    /// Another role. Invitations by who is no admin any more are void. `Stale` when the user is no member, `Refused(LastAdmin)` when nobody would be
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
    /// A member less, whose API tokens in that organization are void, and stay so if they come back. So are their
    /// invitations.
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
