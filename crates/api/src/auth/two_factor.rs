//! Two-factor login.

use actix_web::web::Data;

use super::requests::TwoFactorCode;
use crate::{
    Api,
    body::Body,
    caller::SessionCaller,
    endpoint::Endpoint,
    envelope::{Nothing, Reply, success},
    error::Code,
    input::NoFields,
    views::auth::{RecoveryCodes, TwoFactorSetupView},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/api/v1/auth/two-factor/setup", "set_up_two_factor", set_up_two_factor)
            .summary("Begin the setup of two-factor login")
            .cli("launchway two-factor setup")
            .about("Logins need no code until it is enabled.")
            .fails(&[Code::Conflict]),
        Endpoint::post("/api/v1/auth/two-factor/enable", "enable_two_factor", enable_two_factor)
            .summary("Enable two-factor login")
            .cli("launchway two-factor enable")
            .about("Takes a TOTP code of the new authenticator, and returns recovery codes.")
            .fails(&[Code::InvalidCredentials, Code::Conflict, Code::RateLimited]),
        Endpoint::post("/api/v1/auth/two-factor/disable", "disable_two_factor", disable_two_factor)
            .summary("Disable two-factor login")
            .cli("launchway two-factor disable")
            .fails(&[Code::InvalidCredentials, Code::Conflict, Code::RateLimited]),
    ]
}

async fn set_up_two_factor(
    api: Data<Api>,
    caller: SessionCaller,
    body: Body<NoFields>,
) -> Reply<TwoFactorSetupView> {
    body.read().await?;
    let setup = api.services.two_factor.set_up(&caller).await?;
    Ok(success("Two-factor login can be enabled now", setup.into()))
}

async fn enable_two_factor(
    api: Data<Api>,
    caller: SessionCaller,
    body: Body<TwoFactorCode>,
) -> Reply<RecoveryCodes> {
    let request = body.read().await?;
    let codes = api.services.two_factor.enable(&caller, request.code.expose()).await?;
    Ok(success("Two-factor login enabled successfully", codes.into()))
}

async fn disable_two_factor(
    api: Data<Api>,
    caller: SessionCaller,
    body: Body<TwoFactorCode>,
) -> Reply<Nothing> {
    let request = body.read().await?;
    api.services.two_factor.disable(&caller, request.code.expose()).await?;
    Ok(success("Two-factor login disabled successfully", Nothing))
}
