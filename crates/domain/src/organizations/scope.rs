//! Tenant scope as a type.

use crate::ids::OrganizationId;

/// An organization that someone may act in.
///
/// Whatever reads or writes an organization's data takes one, and only an
/// [`Actor`](crate::auth::Actor) gives one, for an organization that it belongs to: an id that a
/// caller merely wrote down opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope(OrganizationId);

impl Scope {
    pub(crate) fn new(organization: OrganizationId) -> Self {
        Self(organization)
    }

    /// The scope of work that the installation does by itself, for no caller: the organization
    /// comes from a record, never from a request.
    #[must_use]
    pub fn of_record(organization: OrganizationId) -> Self {
        Self(organization)
    }

    /// The organization.
    #[must_use]
    pub fn id(self) -> OrganizationId {
        self.0
    }
}
