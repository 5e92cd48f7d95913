//! Tenant scope as a type.
//!
//! **Invariant:** whatever reads an organization's records for a caller takes a `Scope`, and only an
//! `Actor` returns one (decision 11). `Scope::of_record` is for ids that come from a record.

use crate::ids::OrganizationId;

/// An organization in which the caller may act.
///
/// Everything that reads or writes an organization's data takes one, and only an
/// [`Actor`](crate::auth::Actor) returns one, for an organization of its user: an id from a request alone
/// gives no access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope(OrganizationId);

impl Scope {
    pub(crate) fn new(organization: OrganizationId) -> Self {
        Self(organization)
    }

    /// Returns the scope of internal work without a caller: the organization comes from a record, never
    /// from a request.
    #[must_use]
    pub fn of_record(organization: OrganizationId) -> Self {
        Self(organization)
    }

    /// Returns the organization.
    #[must_use]
    pub fn id(self) -> OrganizationId {
        self.0
    }
}
