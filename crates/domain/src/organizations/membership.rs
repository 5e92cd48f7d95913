//! Belonging to an organization.

use super::{Organization, Role};
use crate::{
    clock::Timestamp,
    ids::{MembershipId, OrganizationId, UserId},
};

/// That a user belongs to an organization, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// Which.
    pub id: MembershipId,
    /// Where.
    pub organization_id: OrganizationId,
    /// Who.
    pub user_id: UserId,
    /// As what.
    pub role: Role,
    /// Since when.
    pub created_at: Timestamp,
    /// When the role last changed.
    pub updated_at: Timestamp,
    /// When it ended; readers never see such a one.
    pub deleted_at: Option<Timestamp>,
}

impl Membership {
    /// A membership that has just begun.
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

/// A membership and the organization that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembershipDetail {
    /// The membership.
    pub membership: Membership,
    /// Its organization.
    pub organization: Organization,
}
