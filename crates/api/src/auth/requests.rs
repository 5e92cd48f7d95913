//! The request bodies of authentication.

use launchway_application::auth::{NewAdmin, NewApiToken};
use launchway_domain::{
    auth::{ApiTokenName, Password, Permissions},
    clock::Timestamp,
    organizations::OrganizationName,
    secret::Secret,
    users::{EmailAddress, Username},
};
use utoipa::ToSchema;

use crate::{body::Input, error::ApiError, fields::Fields};

#[derive(ToSchema)]
pub(crate) struct Register {
    #[schema(value_type = String, example = "ada@example.com")]
    email: EmailAddress,
    #[schema(value_type = String, min_length = 8, max_length = 256)]
    password: Password,
    #[schema(value_type = String, min_length = 1, max_length = 50)]
    username: Username,
    /// The name of the organization; `<username>'s Team` by default.
    #[schema(value_type = Option<String>, max_length = 50)]
    organization: Option<OrganizationName>,
    /// Required from another machine than that of the server.
    #[schema(value_type = Option<String>)]
    setup_token: Option<Secret<String>>,
}

impl Input for Register {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let email = fields.required("email");
        let password = fields.required("password");
        let username = fields.required("username");
        let organization = fields.optional("organization");
        let setup_token = fields.optional("setup_token");
        fields.finish()?;
        Ok(Self {
            email: email?,
            password: password?,
            username: username?,
            organization: organization?,
            setup_token: setup_token?,
        })
    }
}

impl Register {
    pub(super) fn into_parts(self) -> (NewAdmin, Option<Secret<String>>) {
        let Self { email, password, username, organization, setup_token } = self;
        (NewAdmin { email, password, username, organization }, setup_token)
    }
}

#[derive(ToSchema)]
pub(crate) struct LogIn {
    #[schema(value_type = String, example = "ada@example.com")]
    pub(super) email: EmailAddress,
    #[schema(value_type = String)]
    pub(super) password: Secret<String>,
    /// A TOTP code or a recovery code; required once two-factor login is enabled.
    #[schema(value_type = Option<String>)]
    pub(super) totp_code: Option<Secret<String>>,
}

impl Input for LogIn {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let email = fields.required("email");
        let password = fields.required("password");
        let totp_code = fields.optional("totp_code");
        fields.finish()?;
        Ok(Self { email: email?, password: password?, totp_code: totp_code? })
    }
}

#[derive(ToSchema)]
pub(crate) struct IssueToken {
    #[schema(value_type = String, min_length = 1, max_length = 50)]
    name: ApiTokenName,
    /// The permissions of the token, such as `deploy:read`; all of yours by default.
    #[schema(value_type = Option<Vec<String>>)]
    permissions: Option<Permissions>,
    /// The time at which it expires; never by default.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

impl Input for IssueToken {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let name = fields.required("name");
        let permissions = fields.optional("permissions");
        let expires_at = fields.optional("expires_at");
        fields.finish()?;
        Ok(Self { name: name?, permissions: permissions?, expires_at: expires_at? })
    }
}

impl From<IssueToken> for NewApiToken {
    fn from(IssueToken { name, permissions, expires_at }: IssueToken) -> Self {
        Self { name, permissions, expires_at }
    }
}

#[derive(ToSchema)]
pub(crate) struct TwoFactorCode {
    /// A TOTP code; to disable two-factor login, a recovery code works too.
    #[schema(value_type = String, example = "123456")]
    pub(super) code: Secret<String>,
}

impl Input for TwoFactorCode {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let code = fields.required("code");
        fields.finish()?;
        Ok(Self { code: code? })
    }
}

#[derive(ToSchema)]
pub(crate) struct SetUpPassword {
    /// The `setup_token` that the admin who added you got.
    #[schema(value_type = String)]
    pub(super) token: Secret<String>,
    #[schema(value_type = String, min_length = 8, max_length = 256)]
    pub(super) password: Password,
}

impl Input for SetUpPassword {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let token = fields.required("token");
        let password = fields.required("password");
        fields.finish()?;
        Ok(Self { token: token?, password: password? })
    }
}
