//! The request bodies of organizations.

use crate::input::input;
use launchway_application::organizations::{NewMember, NewOrganization, OrganizationChange};
use launchway_domain::{
    ids::{OrganizationId, UserId},
    organizations::{Description, OrganizationName, Role},
    users::{EmailAddress, Username},
};

input! {
    pub(crate) struct CreateOrganization {
        name: OrganizationName,
        description: Option<Description>,
    }
}

impl From<CreateOrganization> for NewOrganization {
    fn from(CreateOrganization { name, description }: CreateOrganization) -> Self {
        Self { name, description: description.unwrap_or_default() }
    }
}

input! {
    /// Absent fields keep their values.
    pub(crate) struct UpdateOrganization {
        name: Option<OrganizationName>,
        description: Option<Description>,
    }
}

impl From<UpdateOrganization> for OrganizationChange {
    fn from(UpdateOrganization { name, description }: UpdateOrganization) -> Self {
        Self { name, description }
    }
}

input! {
    pub(crate) struct AnOrganization {
        /// Id of one of your organizations; default: the current one
        pub(super) id: Option<OrganizationId>,
    }
}

input! {
    pub(crate) struct TheOrganization {
        /// Id of one of your organizations
        pub(super) id: OrganizationId,
    }
}

input! {
    pub(crate) struct AddMember {
        email: EmailAddress,
        role: Role,
        /// The name of a new account.
        username: Option<Username>,
    }
}

impl From<AddMember> for NewMember {
    fn from(AddMember { email, role, username }: AddMember) -> Self {
        Self { email, role, username }
    }
}

input! {
    pub(crate) struct ChangeMember {
        pub(super) user_id: UserId,
        pub(super) role: Role,
    }
}

input! {
    pub(crate) struct RemoveMember {
        pub(super) user_id: UserId,
    }
}
