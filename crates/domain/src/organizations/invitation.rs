//! Invitations to an organization.

use chrono::TimeDelta;

use super::{Organization, Role};
use crate::{
    auth::TokenHash,
    clock::Timestamp,
    ids::{InvitationId, OrganizationId, UserId},
    users::{User, Username},
};

/// An offer of a role in an organization to a user with an account. The role does not count before it is
/// accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Identifies the invitation.
    pub id: InvitationId,
    /// The organization that invites.
    pub organization_id: OrganizationId,
    /// The user who is invited.
    pub user_id: UserId,
    /// The role that is offered.
    pub role: Role,
    /// The admin who invited the user. The invitation ends when they are no admin any more.
    pub invited_by: UserId,
    /// The hash of the token that the invitation needs while the address of the user is not verified: the
    /// holder of such an account may be someone else than the organization means.
    pub token: Option<TokenHash>,
    /// The time of the invitation.
    pub created_at: Timestamp,
    /// The time from which on it cannot be accepted.
    pub expires_at: Timestamp,
}

impl Invitation {
    /// The time that an invitation can be accepted.
    pub const LIFETIME: TimeDelta = TimeDelta::days(7);
}

/// An invitation with its organization and users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationDetail {
    /// The invitation.
    pub invitation: Invitation,
    /// The organization that invites.
    pub organization: Organization,
    /// The user who is invited.
    pub user: User,
    /// The name of the admin who invited the user.
    pub invited_by: Username,
}

impl InvitationDetail {
    /// Returns whether the invitation cannot be accepted without its token.
    #[must_use]
    pub fn needs_token(&self) -> bool {
        !self.user.is_verified
    }
}
