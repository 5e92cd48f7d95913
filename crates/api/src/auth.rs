//! Registration, login, API tokens and two-factor login.

mod requests;
mod tokens;
mod two_factor;
mod views;

use actix_web::{HttpRequest, web::Data};
use launchway_application::auth::{LoginRequest, PasswordSetupRequest, SetupProof};

use self::{
    requests::{LogIn, Register, SetUpPassword},
    views::{AdminRegistered, LoggedInView},
};
pub(crate) use self::{tokens::*, two_factor::*};
use crate::{
    Api,
    body::{Body, NoFields},
    caller::SessionCaller,
    client::{FromClient, is_local},
    envelope::{Envelope, Nothing, Reply, success},
    routes::Routes,
};

pub(crate) fn routes(routes: &mut Routes) {
    routes
        .get("/api/v1/auth/is-admin-registered", is_admin_registered)
        .post("/api/v1/auth/register", register)
        .post("/api/v1/auth/login", log_in)
        .post("/api/v1/auth/logout", log_out)
        .post("/api/v1/auth/password/setup", set_up_password);
    tokens::routes(routes);
    two_factor::routes(routes);
}

/// Check that the first administrator exists
#[utoipa::path(get, path = "/api/v1/auth/is-admin-registered", tag = "auth",
    responses((status = 200, body = Envelope<AdminRegistered>)))]
pub(crate) async fn is_admin_registered(api: Data<Api>) -> Reply<AdminRegistered> {
    let admin_registered = api.services.registration.admin_registered().await?;
    Ok(success("Admin registration status", AdminRegistered { admin_registered }))
}

/// Register the first administrator
///
/// Works once. A request from another machine than that of the server needs the `setup_token` that the
/// server printed when it started.
#[utoipa::path(post, path = "/api/v1/auth/register", tag = "auth",
    request_body = Register, responses((status = 200, body = Envelope<LoggedInView>)))]
pub(crate) async fn register(
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

/// Log in
#[utoipa::path(post, path = "/api/v1/auth/login", tag = "auth",
    request_body = LogIn, responses((status = 200, body = Envelope<LoggedInView>)))]
pub(crate) async fn log_in(
    api: Data<Api>,
    FromClient(origin): FromClient,
    body: Body<LogIn>,
) -> Reply<LoggedInView> {
    let LogIn { email, password, totp_code } = body.read().await?;
    let logged_in = api.services.logins.log_in(LoginRequest { email, password, totp_code, origin }).await?;
    Ok(success("Logged in successfully", logged_in.into()))
}

/// Log out
#[utoipa::path(post, path = "/api/v1/auth/logout", tag = "auth", security(("bearer" = [])),
    responses((status = 200, body = Envelope<Nothing>)))]
pub(crate) async fn log_out(api: Data<Api>, caller: SessionCaller, body: Body<NoFields>) -> Reply<Nothing> {
    body.read().await?;
    api.services.logins.log_out(&caller).await?;
    Ok(success("Logged out successfully", Nothing))
}

/// Set the first password
///
/// For a user who was added to an organization, with the `setup_token` of that response.
#[utoipa::path(post, path = "/api/v1/auth/password/setup", tag = "auth",
    request_body = SetUpPassword, responses((status = 200, body = Envelope<Nothing>)))]
pub(crate) async fn set_up_password(
    api: Data<Api>,
    FromClient(origin): FromClient,
    body: Body<SetUpPassword>,
) -> Reply<Nothing> {
    let SetUpPassword { token, password } = body.read().await?;
    api.services.passwords.set_up(PasswordSetupRequest { token, password, origin }).await?;
    Ok(success("Password set successfully", Nothing))
}
