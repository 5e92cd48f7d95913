//! The profile of the visitor: name, password, two-factor login, sessions and settings.

mod two_factor;

use actix_web::{
    HttpResponse,
    web::{ServiceConfig, get, post},
};
use askama::Template;
use launchway_application::{Error, auth::PasswordChange};
use launchway_domain::{
    auth::{Password, Session},
    secret::Secret,
    users::{FontSize, SettingsChange},
};

use crate::{
    context::PageContext,
    error::PageError,
    fields::Fields,
    form::{Form, Submitted},
    format::Time,
    frame::{Frame, Section, page_after, see_other},
    router::PREFIX,
};

pub(crate) fn routes(config: &mut ServiceConfig) {
    config
        .route("/profile", get().to(profile_page))
        .route("/profile/name", post().to(rename))
        .route("/profile/password", post().to(change_password))
        .route("/profile/settings", post().to(change_settings))
        .route("/profile/sessions/end", post().to(end_session))
        .route("/profile/two-factor", get().to(two_factor::two_factor_page))
        .route("/profile/two-factor/set-up", post().to(two_factor::set_up))
        .route("/profile/two-factor/enable", post().to(two_factor::enable))
        .route("/profile/two-factor/disable", post().to(two_factor::disable));
}

/// A session in the list.
struct SessionRow {
    id: String,
    is_current: bool,
    address: String,
    agent: String,
    opened: Time,
    used: Time,
}

#[derive(Template)]
#[template(path = "profile.html")]
struct ProfilePage {
    frame: Frame,
    email: String,
    two_factor_enabled: bool,
    sessions: Vec<SessionRow>,
    theme: String,
    font_family: String,
    font_size: u8,
    language: String,
}

async fn profile_page(context: PageContext) -> Result<HttpResponse, PageError> {
    show(&context, None).await
}

async fn show(context: &PageContext, error: Option<&PageError>) -> Result<HttpResponse, PageError> {
    let current = context.visitor.session().map_err(Error::from)?.id;
    let sessions = context.services().logins.sessions(&context.visitor).await?;
    let row = |session: Session| SessionRow {
        id: session.id.to_string(),
        is_current: session.id == current,
        address: session.client.address.to_string(),
        agent: session.client.user_agent,
        opened: Time(session.created_at),
        used: Time(session.extended_at),
    };
    let detail = context.services().users.settings(&context.visitor).await?;
    let settings = detail.settings;
    let template = ProfilePage {
        frame: context.frame(Section::Profile, "Profile").with_error(error),
        email: context.visitor.user().email.to_string(),
        two_factor_enabled: context.visitor.user().two_factor_enabled,
        sessions: sessions.into_iter().map(row).collect(),
        theme: settings.theme.to_string(),
        font_family: settings.font_family.to_string(),
        font_size: settings.font_size.get(),
        language: settings.language.to_string(),
    };
    page_after(error, &template)
}

/// Returns to the profile after a change, or shows it with the error.
async fn finish(context: &PageContext, outcome: Result<&str, Error>) -> Result<HttpResponse, PageError> {
    match outcome {
        Ok(done) => Ok(see_other(format!("{PREFIX}/profile?done={done}"))),
        Err(error) => show(context, Some(&error.into())).await,
    }
}

async fn rename(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let mut fields = Fields::of(&form);
    let outcome = match fields.required("username") {
        Ok(username) => context.services().users.rename(&context.visitor, username).await.map(|_| "saved"),
        Err(_noted) => Err(fields.error()),
    };
    finish(&context, outcome).await
}

async fn change_password(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let mut fields = Fields::of(&form);
    let new = fields.required_by("new_password", |text| Password::try_from(text.to_owned()));
    let outcome = match new {
        Ok(new) => {
            let current = Secret::new(form.text("current_password").to_owned());
            let changed =
                context.services().passwords.change(&context.visitor, PasswordChange { current, new }).await;
            changed.map(|()| "password")
        }
        Err(_noted) => Err(fields.error()),
    };
    finish(&context, outcome).await
}

async fn change_settings(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let outcome = match settings(&form) {
        Ok(changes) => {
            context.services().users.change_settings(&context.visitor, changes).await.map(|_| "saved")
        }
        Err(error) => Err(error),
    };
    finish(&context, outcome).await
}

fn settings(form: &Form) -> Result<Vec<SettingsChange>, Error> {
    let mut fields = Fields::of(form);
    let (theme, family) = (fields.required("theme"), fields.required("font_family"));
    let size = fields.required_by("font_size", |text| {
        let size: i64 = text.trim().parse().map_err(|_invalid| "must be a number".to_owned())?;
        FontSize::try_from(size).map_err(|invalid| invalid.to_string())
    });
    let language = fields.required("language");
    let (Ok(theme), Ok(family), Ok(size), Ok(language)) = (theme, family, size, language) else {
        return Err(fields.error());
    };
    Ok(vec![
        SettingsChange::Theme(theme),
        SettingsChange::FontFamily(family),
        SettingsChange::FontSize(size),
        SettingsChange::Language(language),
    ])
}

async fn end_session(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let id = form.text("id").parse().map_err(|_invalid| Error::NotFound("the session"));
    let outcome = match id {
        Ok(id) => context.services().logins.end_session(&context.visitor, id).await.map(|()| "ended"),
        Err(error) => Err(error),
    };
    finish(&context, outcome).await
}
