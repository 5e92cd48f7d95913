//! Memberships of organizations.

use super::{Organization, Role};
use crate::{
    clock::Timestamp,
    ids::{MembershipId, OrganizationId, UserId},
};

/// The membership of a user in an organization, with a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The id of the membership.
    pub id: MembershipId,
    /// The organization.
    pub organization_id: OrganizationId,
    /// The user.
    pub user_id: UserId,
    /// The role in the organization.
    pub role: Role,
    /// The time of creation.
    pub created_at: Timestamp,
    /// When the role last changed.
    pub updated_at: Timestamp,
    /// When it ended; readers never see such a record.
    pub deleted_at: Option<Timestamp>,
}

impl Membership {
    /// Creates a membership that begins now.
    #[must_use]
    pub fn new(
        id: MembershipId,
        organization_id: OrganizationId,
        user_id: UserId,
        role: Role,
        now: Timestamp,
    ) -> Self {
        Self { id, organization_id, user_id, role, created_at: now, updated_at: now, deleted_at: None }
    }
}

/// A membership with its organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembershipDetail {
    /// The membership.
    pub membership: Membership,
    /// Its organization.
    pub organization: Organization,
}
