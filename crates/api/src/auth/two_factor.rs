//! Two-factor login.

use actix_web::web::Data;

use super::{
    requests::TwoFactorCode,
    views::{RecoveryCodes, TwoFactorSetupView},
};
use crate::{
    Api,
    body::{Body, NoFields},
    caller::SessionCaller,
    envelope::{Envelope, Nothing, Reply, success},
    routes::Routes,
};

pub(super) fn routes(routes: &mut Routes) {
    routes
        .post("/api/v1/auth/two-factor/setup", set_up_two_factor)
        .post("/api/v1/auth/two-factor/enable", enable_two_factor)
        .post("/api/v1/auth/two-factor/disable", disable_two_factor);
}

/// Begin the setup of two-factor login
///
/// Logins need no code until it is enabled.
#[utoipa::path(post, path = "/api/v1/auth/two-factor/setup", tag = "auth", security(("bearer" = [])),
    responses((status = 200, body = Envelope<TwoFactorSetupView>)))]
pub(crate) async fn set_up_two_factor(
    api: Data<Api>,
    caller: SessionCaller,
    body: Body<NoFields>,
) -> Reply<TwoFactorSetupView> {
    body.read().await?;
    let setup = api.services.two_factor.set_up(&caller).await?;
    Ok(success("Two-factor login can be enabled now", setup.into()))
}

/// Enable two-factor login
///
/// Takes a TOTP code of the new authenticator, and returns recovery codes.
#[utoipa::path(post, path = "/api/v1/auth/two-factor/enable", tag = "auth", security(("bearer" = [])),
    request_body = TwoFactorCode, responses((status = 200, body = Envelope<RecoveryCodes>)))]
pub(crate) async fn enable_two_factor(
    api: Data<Api>,
    caller: SessionCaller,
    body: Body<TwoFactorCode>,
) -> Reply<RecoveryCodes> {
    let request = body.read().await?;
    let codes = api.services.two_factor.enable(&caller, request.code.expose()).await?;
    Ok(success("Two-factor login enabled successfully", codes.into()))
}

/// Disable two-factor login
#[utoipa::path(post, path = "/api/v1/auth/two-factor/disable", tag = "auth", security(("bearer" = [])),
    request_body = TwoFactorCode, responses((status = 200, body = Envelope<Nothing>)))]
pub(crate) async fn disable_two_factor(
    api: Data<Api>,
    caller: SessionCaller,
    body: Body<TwoFactorCode>,
) -> Reply<Nothing> {
    let request = body.read().await?;
    api.services.two_factor.disable(&caller, request.code.expose()).await?;
    Ok(success("Two-factor login disabled successfully", Nothing))
}
