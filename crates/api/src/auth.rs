//! Registration, login, API tokens and two-factor login.

mod requests;
mod tokens;
mod two_factor;

use actix_web::{HttpRequest, web::Data};
use launchway_application::auth::{LoginRequest, PasswordSetupRequest, SetupProof};

use self::requests::{LogIn, Register, SetUpPassword};
use crate::{
    Api,
    body::Body,
    caller::SessionCaller,
    client::{FromClient, is_local},
    endpoint::Endpoint,
    envelope::{Nothing, Reply, success},
    error::Code,
    input::NoFields,
    views::auth::{AdminRegistered, LoggedInView},
};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = vec![
        Endpoint::get("/api/v1/auth/is-admin-registered", "is_admin_registered", is_admin_registered)
            .summary("Check that the first administrator exists"),
        Endpoint::post("/api/v1/auth/register", "register", register)
            .summary("Register the first administrator")
            .cli("launchway register <URL>")
            .about("Works once. A request from another machine than that of the server needs the `setup_token` that the server printed when it started.")
            .fails(&[Code::RegistrationClosed, Code::RateLimited, Code::InvalidCredentials, Code::Conflict]),
        Endpoint::post("/api/v1/auth/login", "log_in", log_in)
            .summary("Log in")
            .cli("launchway login <URL>")
            .fails(&[Code::InvalidCredentials, Code::TwoFactorRequired, Code::RateLimited]),
        Endpoint::post("/api/v1/auth/logout", "log_out", log_out)
            .summary("Log out")
            .cli("launchway logout"),
        Endpoint::post("/api/v1/auth/password/setup", "set_up_password", set_up_password)
            .summary("Set the first password")
            .cli("launchway join <URL>")
            .about("For a user who was added to an organization, with the `setup_token` of that response.")
            .fails(&[Code::InvalidCredentials, Code::RateLimited, Code::Conflict]),
    ];
    endpoints.extend(tokens::endpoints());
    endpoints.extend(two_factor::endpoints());
    endpoints
}

async fn is_admin_registered(api: Data<Api>) -> Reply<AdminRegistered> {
    let admin_registered = api.services.registration.admin_registered().await?;
    Ok(success("Admin registration status", AdminRegistered { admin_registered }))
}

async fn register(
    api: Data<Api>,
    request: HttpRequest,
    FromClient(origin): FromClient,
    body: Body<Register>,
) -> Reply<LoggedInView> {
    let (admin, setup_token) = body.read().await?.into_parts();
    let proof = match setup_token {
        _ if is_local(&request) => SetupProof::Local,
        Some(token) => SetupProof::Token(token),
        None => SetupProof::None,
    };
    let logged_in = api.services.registration.register(admin, proof, origin).await?;
    Ok(success("Administrator registered successfully", logged_in.into()))
}

async fn log_in(api: Data<Api>, FromClient(origin): FromClient, body: Body<LogIn>) -> Reply<LoggedInView> {
    let LogIn { email, password, totp_code } = body.read().await?;
    let logged_in = api.services.logins.log_in(LoginRequest { email, password, totp_code, origin }).await?;
    Ok(success("Logged in successfully", logged_in.into()))
}

async fn log_out(api: Data<Api>, caller: SessionCaller, body: Body<NoFields>) -> Reply<Nothing> {
    body.read().await?;
    api.services.logins.log_out(&caller).await?;
    Ok(success("Logged out successfully", Nothing))
}

async fn set_up_password(
    api: Data<Api>,
    FromClient(origin): FromClient,
    body: Body<SetUpPassword>,
) -> Reply<Nothing> {
    let SetUpPassword { token, password } = body.read().await?;
    api.services.passwords.set_up(PasswordSetupRequest { token, password, origin }).await?;
    Ok(success("Password set successfully", Nothing))
}
