//! Organizations and memberships.

use launchway_domain::{
    clock::Timestamp,
    organizations::{
        Description, Member, Membership, MembershipDetail, Organization, OrganizationDetail, Role,
    },
    users::User,
};

use super::{a_user, parsed};
use crate::{
    clock::{NEW_YEAR, moment},
    ids::id_of,
};

/// The organization Analytics, created at [`NEW_YEAR`].
pub fn an_organization() -> OrganizationBuilder {
    OrganizationBuilder {
        name: "Analytics".to_owned(),
        description: Description::default(),
        created_at: moment(NEW_YEAR),
    }
}

/// Builds an [`Organization`].
#[derive(Debug, Clone)]
#[must_use]
pub struct OrganizationBuilder {
    name: String,
    description: Description,
    created_at: Timestamp,
}

impl OrganizationBuilder {
    /// Sets the name, and so another id.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the description.
    #[track_caller]
    pub fn described(mut self, description: &str) -> Self {
        self.description = parsed(description);
        self
    }

    /// Sets the time of creation.
    pub fn created_at(mut self, at: Timestamp) -> Self {
        self.created_at = at;
        self
    }

    /// Returns the organization.
    ///
    /// # Panics
    /// If it cannot have that name.
    #[must_use]
    #[track_caller]
    pub fn build(self) -> Organization {
        let id = id_of(&format!("organization {}", self.name)).into();
        Organization::new(id, parsed(&self.name), self.description, self.created_at)
    }

    /// Returns the organization with its members, oldest membership first.
    ///
    /// # Panics
    /// If it cannot have that name.
    #[must_use]
    #[track_caller]
    pub fn with_members(self, members: Vec<Member>) -> OrganizationDetail {
        OrganizationDetail { organization: self.build(), members }
    }
}

/// The membership of [`a_user`] as an admin of [`an_organization`], since [`NEW_YEAR`].
pub fn a_membership() -> MembershipBuilder {
    MembershipBuilder {
        user: a_user().build(),
        organization: an_organization().build(),
        role: Role::Admin,
        created_at: moment(NEW_YEAR),
    }
}

/// Builds a [`Membership`].
#[derive(Debug, Clone)]
#[must_use]
pub struct MembershipBuilder {
    user: User,
    organization: Organization,
    role: Role,
    created_at: Timestamp,
}

impl MembershipBuilder {
    /// Sets the user.
    pub fn of(mut self, user: &User) -> Self {
        self.user = user.clone();
        self
    }

    /// Sets the organization.
    pub fn in_organization(mut self, organization: &Organization) -> Self {
        self.organization = organization.clone();
        self
    }

    /// Sets the role.
    pub fn with_role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Sets the time of creation.
    pub fn created_at(mut self, at: Timestamp) -> Self {
        self.created_at = at;
        self
    }

    /// Returns the membership.
    #[must_use]
    pub fn build(self) -> Membership {
        self.detail().membership
    }

    /// Returns the membership with its user.
    #[must_use]
    pub fn member(self) -> Member {
        let user = self.user.clone();
        Member { membership: self.build(), user }
    }

    /// Returns the membership with its organization.
    #[must_use]
    pub fn detail(self) -> MembershipDetail {
        let Self { user, organization, role, created_at } = self;
        let id = id_of(&format!("membership {} {}", user.id, organization.id)).into();
        let membership = Membership::new(id, organization.id, user.id, role, created_at);
        MembershipDetail { membership, organization }
    }
}
