//! The request bodies of authentication.

use crate::input::input;
use launchway_application::auth::{NewAdmin, NewApiToken};
use launchway_domain::{
    auth::{ApiTokenName, Password, Permissions},
    clock::Timestamp,
    organizations::OrganizationName,
    secret::Secret,
    users::{EmailAddress, Username},
};

input! {
    pub(crate) struct Register {
        email: EmailAddress,
        password: Password,
        username: Username,
        /// The name of the organization; `<username>'s Team` by default.
        organization: Option<OrganizationName>,
        /// Required from another machine than that of the server.
        setup_token: Option<Secret<String>>,
    }
}

impl Register {
    pub(super) fn into_parts(self) -> (NewAdmin, Option<Secret<String>>) {
        let Self { email, password, username, organization, setup_token } = self;
        (NewAdmin { email, password, username, organization }, setup_token)
    }
}

input! {
    pub(crate) struct LogIn {
        pub(super) email: EmailAddress,
        pub(super) password: Secret<String>,
        /// A TOTP code or a recovery code; required once two-factor login is enabled.
        pub(super) totp_code: Option<Secret<String>>,
    }
}

input! {
    pub(crate) struct IssueToken {
        name: ApiTokenName,
        /// The permissions of the token, such as `deploy:read`; all of yours by default.
        permissions: Option<Permissions>,
        /// The time at which it expires; never by default.
        expires_at: Option<Timestamp>,
    }
}

impl From<IssueToken> for NewApiToken {
    fn from(IssueToken { name, permissions, expires_at }: IssueToken) -> Self {
        Self { name, permissions, expires_at }
    }
}

input! {
    pub(crate) struct TwoFactorCode {
        /// A TOTP code; to disable two-factor login, a recovery code works too.
        pub(super) code: Secret<String>,
    }
}

input! {
    pub(crate) struct SetUpPassword {
        /// The `setup_token` that the admin who added you got.
        pub(super) token: Secret<String>,
        pub(super) password: Password,
    }
}
