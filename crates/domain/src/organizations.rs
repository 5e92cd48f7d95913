//! Organizations: the tenants of an installation, and who belongs to them.

mod membership;
mod organization;
mod role;

pub use self::{
    membership::{Membership, MembershipDetail},
    organization::{Description, Organization, OrganizationName},
    role::Role,
};
use crate::store;

/// Changes to organizations and memberships.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A new organization. `Taken(OrganizationName)` when the name is in use, ignoring case.
    Insert(Organization),
    /// A new member. `Taken(Membership)` when the user is one already.
    InsertMembership(Membership),
}

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::Organization(write)
    }
}
