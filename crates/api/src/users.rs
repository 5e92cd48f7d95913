//! The endpoints of the caller: name, organizations, settings and password.

mod requests;

use actix_web::web::Data;
use launchway_application::auth::PasswordChange;
use launchway_domain::users::SettingsChange;

use self::requests::{ChangeAutoUpdate, ChangeFont, ChangeLanguage, ChangePassword, ChangeTheme, Rename};
use crate::{
    Api,
    body::Body,
    caller::{Caller, SessionCaller},
    endpoint::Endpoint,
    envelope::{List, Nothing, Reply, success},
    error::Code,
    views::{
        organizations::MembershipView,
        users::{SettingsView, UserView},
    },
};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/api/v1/user", "user", user).summary("Get the caller").cli("launchway whoami"),
        Endpoint::patch("/api/v1/user/name", "rename", rename).summary("Change the caller's name"),
        Endpoint::patch("/api/v1/user/password", "change_password", change_password)
            .summary("Change the caller's password")
            .cli("launchway password")
            .about("Ends the caller's other sessions.")
            .fails(&[Code::InvalidCredentials, Code::RateLimited, Code::Conflict]),
        Endpoint::get("/api/v1/user/organizations", "user_organizations", user_organizations)
            .summary("List the caller's memberships")
            .cli("launchway org list"),
        Endpoint::get("/api/v1/user/settings", "settings", settings).summary("Get the caller's settings"),
        Endpoint::patch("/api/v1/user/settings/auto-update", "change_auto_update", change_auto_update)
            .summary("Enable or disable automatic updates"),
        Endpoint::patch("/api/v1/user/settings/theme", "change_theme", change_theme)
            .summary("Change the colour theme"),
        Endpoint::patch("/api/v1/user/settings/font", "change_font", change_font)
            .summary("Change the typeface, its size, or both"),
        Endpoint::patch("/api/v1/user/settings/language", "change_language", change_language)
            .summary("Change the language"),
    ]
}

async fn user(caller: Caller) -> Reply<UserView> {
    Ok(success("User retrieved successfully", UserView::with_memberships(caller.profile())))
}

async fn rename(api: Data<Api>, caller: Caller, body: Body<Rename>) -> Reply<UserView> {
    let request = body.read().await?;
    let profile = api.services.users.rename(&caller, request.username).await?;
    Ok(success("Username updated successfully", UserView::with_memberships(&profile)))
}

async fn change_password(
    api: Data<Api>,
    caller: SessionCaller,
    body: Body<ChangePassword>,
) -> Reply<Nothing> {
    let ChangePassword { current_password, new_password } = body.read().await?;
    let change = PasswordChange { current: current_password, new: new_password };
    api.services.passwords.change(&caller, change).await?;
    Ok(success("Password updated successfully", Nothing))
}

async fn user_organizations(caller: Caller) -> Reply<List<MembershipView>> {
    let memberships = caller
        .profile()
        .memberships
        .iter()
        .map(|detail| MembershipView::from(&detail.membership).with_organization(&detail.organization))
        .collect();
    Ok(success("User organizations retrieved successfully", memberships))
}

async fn settings(api: Data<Api>, caller: Caller) -> Reply<SettingsView> {
    let detail = api.services.users.settings(&caller).await?;
    Ok(success("User settings retrieved successfully", detail.into()))
}

async fn change_auto_update(
    api: Data<Api>,
    caller: Caller,
    body: Body<ChangeAutoUpdate>,
) -> Reply<SettingsView> {
    let changes = vec![SettingsChange::AutoUpdate(body.read().await?.auto_update)];
    let detail = api.services.users.change_settings(&caller, changes).await?;
    Ok(success("Auto update setting updated successfully", detail.into()))
}

async fn change_theme(api: Data<Api>, caller: Caller, body: Body<ChangeTheme>) -> Reply<SettingsView> {
    let changes = vec![SettingsChange::Theme(body.read().await?.theme)];
    let detail = api.services.users.change_settings(&caller, changes).await?;
    Ok(success("Theme updated successfully", detail.into()))
}

async fn change_font(api: Data<Api>, caller: Caller, body: Body<ChangeFont>) -> Reply<SettingsView> {
    let changes = body.read().await?.into_changes();
    let detail = api.services.users.change_settings(&caller, changes).await?;
    Ok(success("Font updated successfully", detail.into()))
}

async fn change_language(api: Data<Api>, caller: Caller, body: Body<ChangeLanguage>) -> Reply<SettingsView> {
    let changes = vec![SettingsChange::Language(body.read().await?.language)];
    let detail = api.services.users.change_settings(&caller, changes).await?;
    Ok(success("Language updated successfully", detail.into()))
}
