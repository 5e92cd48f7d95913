//! The endpoints of the caller: name, organizations, settings and password.

mod requests;
mod views;

use actix_web::web::Data;
use launchway_application::auth::PasswordChange;
use launchway_domain::users::SettingsChange;

use self::requests::{ChangeAutoUpdate, ChangeFont, ChangeLanguage, ChangePassword, ChangeTheme, Rename};
pub(crate) use self::views::{SettingsView, UserView};
use crate::{
    Api,
    body::Body,
    caller::{Caller, SessionCaller},
    envelope::{Envelope, Nothing, Reply, success},
    organizations::MembershipView,
    routes::Routes,
};

pub(crate) fn routes(routes: &mut Routes) {
    routes
        .get("/api/v1/user", user)
        .patch("/api/v1/user/name", rename)
        .patch("/api/v1/user/password", change_password)
        .get("/api/v1/user/organizations", user_organizations)
        .get("/api/v1/user/settings", settings)
        .patch("/api/v1/user/settings/auto-update", change_auto_update)
        .patch("/api/v1/user/settings/font", change_font)
        .patch("/api/v1/user/settings/language", change_language)
        .patch("/api/v1/user/settings/theme", change_theme);
}

/// Get the caller
#[utoipa::path(get, path = "/api/v1/user", tag = "users", security(("bearer" = [])),
    responses((status = 200, body = Envelope<UserView>)))]
pub(crate) async fn user(caller: Caller) -> Reply<UserView> {
    Ok(success("User retrieved successfully", UserView::with_memberships(caller.profile())))
}

/// Change the caller's name
#[utoipa::path(patch, path = "/api/v1/user/name", tag = "users", security(("bearer" = [])),
    request_body = Rename, responses((status = 200, body = Envelope<UserView>)))]
pub(crate) async fn rename(api: Data<Api>, caller: Caller, body: Body<Rename>) -> Reply<UserView> {
    let request = body.read().await?;
    let profile = api.services.users.rename(&caller, request.name).await?;
    Ok(success("Username updated successfully", UserView::with_memberships(&profile)))
}

/// Change the caller's password
///
/// Ends the caller's other sessions. Needs a session, not an API token.
#[utoipa::path(patch, path = "/api/v1/user/password", tag = "users", security(("bearer" = [])),
    request_body = ChangePassword, responses((status = 200, body = Envelope<Nothing>)))]
pub(crate) async fn change_password(
    api: Data<Api>,
    caller: SessionCaller,
    body: Body<ChangePassword>,
) -> Reply<Nothing> {
    let ChangePassword { current_password, new_password } = body.read().await?;
    let change = PasswordChange { current: current_password, new: new_password };
    api.services.passwords.change(&caller, change).await?;
    Ok(success("Password updated successfully", Nothing))
}

/// List the caller's memberships
#[utoipa::path(get, path = "/api/v1/user/organizations", tag = "users", security(("bearer" = [])),
    responses((status = 200, body = Envelope<Vec<MembershipView>>)))]
pub(crate) async fn user_organizations(caller: Caller) -> Reply<Vec<MembershipView>> {
    let memberships = caller
        .profile()
        .memberships
        .iter()
        .map(|detail| MembershipView::from(&detail.membership).with_organization(&detail.organization))
        .collect();
    Ok(success("User organizations retrieved successfully", memberships))
}

/// Get the caller's settings
#[utoipa::path(get, path = "/api/v1/user/settings", tag = "users", security(("bearer" = [])),
    responses((status = 200, body = Envelope<SettingsView>)))]
pub(crate) async fn settings(api: Data<Api>, caller: Caller) -> Reply<SettingsView> {
    let detail = api.services.users.settings(&caller).await?;
    Ok(success("User settings retrieved successfully", detail.into()))
}

/// Enable or disable automatic updates
#[utoipa::path(patch, path = "/api/v1/user/settings/auto-update", tag = "users", security(("bearer" = [])),
    request_body = ChangeAutoUpdate, responses((status = 200, body = Envelope<SettingsView>)))]
pub(crate) async fn change_auto_update(
    api: Data<Api>,
    caller: Caller,
    body: Body<ChangeAutoUpdate>,
) -> Reply<SettingsView> {
    let changes = vec![SettingsChange::AutoUpdate(body.read().await?.auto_update)];
    let detail = api.services.users.change_settings(&caller, changes).await?;
    Ok(success("Auto update setting updated successfully", detail.into()))
}

/// Change the colour theme
#[utoipa::path(patch, path = "/api/v1/user/settings/theme", tag = "users", security(("bearer" = [])),
    request_body = ChangeTheme, responses((status = 200, body = Envelope<SettingsView>)))]
pub(crate) async fn change_theme(
    api: Data<Api>,
    caller: Caller,
    body: Body<ChangeTheme>,
) -> Reply<SettingsView> {
    let changes = vec![SettingsChange::Theme(body.read().await?.theme)];
    let detail = api.services.users.change_settings(&caller, changes).await?;
    Ok(success("Theme updated successfully", detail.into()))
}

/// Change the typeface, its size, or both
#[utoipa::path(patch, path = "/api/v1/user/settings/font", tag = "users", security(("bearer" = [])),
    request_body = ChangeFont, responses((status = 200, body = Envelope<SettingsView>)))]
pub(crate) async fn change_font(
    api: Data<Api>,
    caller: Caller,
    body: Body<ChangeFont>,
) -> Reply<SettingsView> {
    let changes = body.read().await?.into_changes();
    let detail = api.services.users.change_settings(&caller, changes).await?;
    Ok(success("Font updated successfully", detail.into()))
}

/// Change the language
#[utoipa::path(patch, path = "/api/v1/user/settings/language", tag = "users", security(("bearer" = [])),
    request_body = ChangeLanguage, responses((status = 200, body = Envelope<SettingsView>)))]
pub(crate) async fn change_language(
    api: Data<Api>,
    caller: Caller,
    body: Body<ChangeLanguage>,
) -> Reply<SettingsView> {
    let changes = vec![SettingsChange::Language(body.read().await?.language)];
    let detail = api.services.users.change_settings(&caller, changes).await?;
    Ok(success("Language updated successfully", detail.into()))
}
