//! The request bodies of organizations.

use launchway_application::organizations::{NewMember, NewOrganization, OrganizationChange};
use launchway_domain::{
    ids::{OrganizationId, UserId},
    organizations::{Description, OrganizationName, Role},
    users::{EmailAddress, Username},
};
use utoipa::ToSchema;

use crate::{body::Input, error::ApiError, fields::Fields};

#[derive(ToSchema)]
pub(crate) struct CreateOrganization {
    #[schema(value_type = String, min_length = 1, max_length = 50)]
    name: OrganizationName,
    #[schema(value_type = Option<String>, max_length = 100)]
    description: Option<Description>,
}

impl Input for CreateOrganization {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let name = fields.required("name");
        let description = fields.optional("description");
        fields.finish()?;
        Ok(Self { name: name?, description: description? })
    }
}

impl From<CreateOrganization> for NewOrganization {
    fn from(CreateOrganization { name, description }: CreateOrganization) -> Self {
        Self { name, description: description.unwrap_or_default() }
    }
}

/// Absent fields keep their values.
#[derive(ToSchema)]
pub(crate) struct UpdateOrganization {
    #[schema(value_type = Option<String>, max_length = 50)]
    name: Option<OrganizationName>,
    #[schema(value_type = Option<String>, max_length = 100)]
    description: Option<Description>,
}

impl Input for UpdateOrganization {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let name = fields.optional("name");
        let description = fields.optional("description");
        fields.finish()?;
        Ok(Self { name: name?, description: description? })
    }
}

impl From<UpdateOrganization> for OrganizationChange {
    fn from(UpdateOrganization { name, description }: UpdateOrganization) -> Self {
        Self { name, description }
    }
}

#[derive(ToSchema)]
pub(crate) struct OrganizationUsers {
    /// One of your organizations.
    #[schema(value_type = Option<String>)]
    pub(super) id: Option<OrganizationId>,
}

impl Input for OrganizationUsers {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let id = fields.id("id");
        fields.finish()?;
        Ok(Self { id: id? })
    }
}

#[derive(ToSchema)]
pub(crate) struct AddMember {
    #[schema(value_type = String, example = "grace@example.com")]
    email: EmailAddress,
    #[schema(value_type = String, example = "member")]
    role: Role,
    /// The name of a new account.
    #[schema(value_type = Option<String>, max_length = 50)]
    username: Option<Username>,
}

impl Input for AddMember {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let email = fields.required("email");
        let role = fields.required("role");
        let username = fields.optional("username");
        fields.finish()?;
        Ok(Self { email: email?, role: role?, username: username? })
    }
}

impl From<AddMember> for NewMember {
    fn from(AddMember { email, role, username }: AddMember) -> Self {
        Self { email, role, username }
    }
}

#[derive(ToSchema)]
pub(crate) struct ChangeMember {
    #[schema(value_type = String)]
    pub(super) user_id: UserId,
    #[schema(value_type = String, example = "viewer")]
    pub(super) role: Role,
}

impl Input for ChangeMember {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let user_id = fields.required_id("user_id");
        let role = fields.required("role");
        fields.finish()?;
        Ok(Self { user_id: user_id?, role: role? })
    }
}

#[derive(ToSchema)]
pub(crate) struct RemoveMember {
    #[schema(value_type = String)]
    pub(super) user_id: UserId,
}

impl Input for RemoveMember {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let user_id = fields.required_id("user_id");
        fields.finish()?;
        Ok(Self { user_id: user_id? })
    }
}
