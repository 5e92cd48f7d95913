//! The JSON of authentication.

use launchway_application::auth::{IssuedApiToken, LoggedIn, TwoFactorSetup};
use launchway_domain::auth::{ApiToken, RecoveryCode};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::users::UserView;
use crate::timestamp::Moment;

#[derive(Serialize, ToSchema)]
pub(crate) struct AdminRegistered {
    pub(crate) admin_registered: bool,
}

/// A session that was just opened.
#[derive(Serialize, ToSchema)]
#[schema(as = LoggedIn)]
pub(crate) struct LoggedInView {
    /// Send it as `Authorization: Bearer <access_token>`. It is shown only once.
    access_token: String,
    #[schema(example = "Bearer")]
    token_type: &'static str,
    /// The time at which the session expires unless it is used.
    expires_at: Moment,
    user: UserView,
}

impl From<LoggedIn> for LoggedInView {
    fn from(LoggedIn { token, session, profile }: LoggedIn) -> Self {
        Self {
            access_token: token.expose().to_owned(),
            token_type: "Bearer",
            expires_at: session.expires_at.into(),
            user: UserView::with_memberships(&profile),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = ApiToken)]
pub(crate) struct ApiTokenView {
    id: Uuid,
    name: String,
    permissions: Vec<&'static str>,
    expires_at: Option<Moment>,
    created_at: Moment,
}

impl From<ApiToken> for ApiTokenView {
    fn from(token: ApiToken) -> Self {
        Self {
            id: token.id.into(),
            name: token.name.into(),
            permissions: token.permissions.names(),
            expires_at: token.expires_at.map(Into::into),
            created_at: token.created_at.into(),
        }
    }
}

/// An API token that was just issued.
#[derive(Serialize, ToSchema)]
#[schema(as = IssuedApiToken)]
pub(crate) struct IssuedApiTokenView {
    #[serde(flatten)]
    details: ApiTokenView,
    /// Send it as `Authorization: Bearer <token>`. It is shown only once.
    token: String,
}

impl From<IssuedApiToken> for IssuedApiTokenView {
    fn from(IssuedApiToken { token, details }: IssuedApiToken) -> Self {
        Self { details: details.into(), token: token.expose().to_owned() }
    }
}

/// The data for an authenticator, shown only once.
#[derive(Serialize, ToSchema)]
#[schema(as = TwoFactorSetup)]
pub(crate) struct TwoFactorSetupView {
    /// The secret, to be typed in.
    secret: String,
    /// The URL, to be scanned as a QR code.
    otpauth_url: String,
}

impl From<TwoFactorSetup> for TwoFactorSetupView {
    fn from(setup: TwoFactorSetup) -> Self {
        Self { secret: setup.secret.expose().clone(), otpauth_url: setup.otpauth_url.expose().clone() }
    }
}

/// Codes that replace a lost authenticator, each of them once. They are shown only once.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecoveryCodes {
    recovery_codes: Vec<String>,
}

impl From<Vec<RecoveryCode>> for RecoveryCodes {
    fn from(codes: Vec<RecoveryCode>) -> Self {
        Self { recovery_codes: codes.iter().map(|code| code.expose().to_owned()).collect() }
    }
}
