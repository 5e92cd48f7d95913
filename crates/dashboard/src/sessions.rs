//! Login, registration of the first administrator, the first password, and logout.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{HeaderName, HeaderValue, RETRY_AFTER, SET_COOKIE},
    },
    web::{Data, ServiceConfig, get, post},
};
use askama::Template;
use launchway_application::{
    Error,
    auth::{LoggedIn, LoginRequest, NewAdmin, PasswordSetupRequest, SetupProof},
};
use launchway_domain::{auth::Password, secret::Secret};

use crate::{
    Dashboard, assets,
    context::PageContext,
    cookies::Cookies,
    error::PageError,
    fields::Fields,
    form::{Form, Submitted},
    frame::{page_with, parameter, see_other},
    router::PREFIX,
};

pub(crate) fn routes(config: &mut ServiceConfig) {
    config
        .route("/login", get().to(login_page))
        .route("/login", post().to(log_in))
        .route("/register", get().to(register_page))
        .route("/register", post().to(register))
        .route("/join", get().to(join_page))
        .route("/join", post().to(join))
        .route("/logout", post().to(log_out))
        .route("/logout-everywhere", post().to(log_out_everywhere))
        .route("/organization/select", post().to(select_organization));
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    assets: &'static str,
    title: &'static str,
    error: Option<String>,
    notice: Option<&'static str>,
    email: &'a str,
    next: String,
    needs_code: bool,
    /// The address of this server, if the browser does not speak HTTPS and is on another machine.
    is_refused: bool,
}

#[derive(Template)]
#[template(path = "register.html")]
struct RegisterPage<'a> {
    assets: &'static str,
    title: &'static str,
    error: Option<String>,
    form: &'a Form,
    needs_token: bool,
    is_refused: bool,
}

#[derive(Template)]
#[template(path = "join.html")]
struct JoinPage {
    assets: &'static str,
    title: &'static str,
    error: Option<String>,
    is_refused: bool,
}

/// Returns whether passwords must not be typed: they and the cookie would be readable on the way.
fn is_refused(request: &HttpRequest, dashboard: &Dashboard) -> bool {
    let cookies = Cookies::of(request, &dashboard.options);
    !cookies.is_secure() && !(dashboard.options.is_local)(request)
}

fn insecure() -> PageError {
    let message = "HTTPS is needed to log in from another machine";
    PageError::new(StatusCode::FORBIDDEN, message)
}

async fn login_page(request: HttpRequest, dashboard: Data<Dashboard>) -> Result<HttpResponse, PageError> {
    if !dashboard.services.registration.admin_registered().await? {
        return Ok(see_other(format!("{PREFIX}/register")));
    }
    let next = parameter(&request, "next").unwrap_or_default();
    let notice = match parameter(&request, "done").as_deref() {
        Some("logged-out") => Some("You are logged out."),
        Some("logged-out-everywhere") => Some("All sessions of your account have ended."),
        Some("joined") => Some("Your password is set. Log in with it."),
        _ => None,
    };
    let is_refused = is_refused(&request, &dashboard);
    show_login(None, notice, &Form::default().with("next", next), is_refused)
}

fn show_login(
    error: Option<&PageError>,
    notice: Option<&'static str>,
    form: &Form,
    is_refused: bool,
) -> Result<HttpResponse, PageError> {
    let status = error.map_or(StatusCode::OK, PageError::status);
    let needs_code = form.is_checked("needs_code");
    let template = LoginPage {
        assets: assets::path(),
        title: "Log in",
        error: error.map(|error| error.message().to_owned()),
        notice,
        email: form.text("email"),
        next: safe_next(form.text("next")),
        needs_code,
        is_refused,
    };
    let mut response = page_with(status, &template)?;
    if let Some(seconds) = error.and_then(PageError::retry_after) {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    if needs_code {
        let name = HeaderName::from_static("x-two-factor");
        response.headers_mut().insert(name, HeaderValue::from_static("required"));
    }
    Ok(response)
}

async fn log_in(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    form: Form,
) -> Result<HttpResponse, PageError> {
    if is_refused(&request, &dashboard) {
        return Err(insecure());
    }
    match attempt(&request, &dashboard, &form).await {
        Ok(logged_in) => {
            let next = safe_next(form.text("next"));
            let next = if next.is_empty() { "/applications" } else { &next };
            Ok(with_session(&request, &dashboard, &logged_in, &format!("{PREFIX}{next}")))
        }
        Err(error) => {
            let needs_code = matches!(error, Error::TwoFactorRequired) || form.is_checked("totp_code");
            let form = if needs_code { form.with("needs_code", "yes") } else { form };
            show_login(Some(&error.into()), None, &form, false)
        }
    }
}

async fn attempt(request: &HttpRequest, dashboard: &Dashboard, form: &Form) -> Result<LoggedIn, Error> {
    let mut fields = Fields::of(form);
    let (Ok(email), Ok(password)) = (fields.required("email"), fields.required_by("password", secret)) else {
        return Err(fields.error());
    };
    let code = form.text("totp_code").trim();
    let totp_code = (!code.is_empty()).then(|| Secret::new(code.to_owned()));
    let origin = (dashboard.options.origin)(request);
    dashboard.services.logins.log_in(LoginRequest { email, password, totp_code, origin }).await
}

fn secret(text: &str) -> Result<Secret<String>, std::convert::Infallible> {
    Ok(Secret::new(text.to_owned()))
}

/// Returns the response that opens the session in the browser. Its token is new, whatever cookie the browser had.
fn with_session(
    request: &HttpRequest,
    dashboard: &Dashboard,
    logged_in: &LoggedIn,
    location: &str,
) -> HttpResponse {
    let cookie = Cookies::of(request, &dashboard.options).store_session(logged_in.token.expose());
    let mut response = see_other(location);
    response.headers_mut().append(SET_COOKIE, cookie);
    response
}

/// Returns the page to go to after the login, below the prefix; empty if it leads anywhere else.
fn safe_next(next: &str) -> String {
    let is_path = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains(['\\', ':', '@'])
        && next.chars().all(|c| c.is_ascii_graphic());
    if is_path { next.to_owned() } else { String::new() }
}

async fn register_page(request: HttpRequest, dashboard: Data<Dashboard>) -> Result<HttpResponse, PageError> {
    if dashboard.services.registration.admin_registered().await? {
        return Ok(see_other(format!("{PREFIX}/login")));
    }
    show_registration(&request, &dashboard, None, &Form::default())
}

fn show_registration(
    request: &HttpRequest,
    dashboard: &Dashboard,
    error: Option<&PageError>,
    form: &Form,
) -> Result<HttpResponse, PageError> {
    let template = RegisterPage {
        assets: assets::path(),
        title: "Welcome to Launchway",
        error: error.map(|error| error.message().to_owned()),
        form,
        needs_token: !(dashboard.options.is_local)(request),
        is_refused: is_refused(request, dashboard),
    };
    page_with(error.map_or(StatusCode::OK, PageError::status), &template)
}

async fn register(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    form: Form,
) -> Result<HttpResponse, PageError> {
    if is_refused(&request, &dashboard) {
        return Err(insecure());
    }
    match register_admin(&request, &dashboard, &form).await {
        Ok(logged_in) => {
            Ok(with_session(&request, &dashboard, &logged_in, &format!("{PREFIX}/applications")))
        }
        Err(error) => show_registration(&request, &dashboard, Some(&error.into()), &form),
    }
}

async fn register_admin(
    request: &HttpRequest,
    dashboard: &Dashboard,
    form: &Form,
) -> Result<LoggedIn, Error> {
    let mut fields = Fields::of(form);
    let (email, username) = (fields.required("email"), fields.required("username"));
    let password = fields.required_by("password", |text| Password::try_from(text.to_owned()));
    let organization = fields.optional("organization");
    let (Ok(email), Ok(username), Ok(password), Ok(organization)) = (email, username, password, organization)
    else {
        return Err(fields.error());
    };
    let proof = match form.text("setup_token").trim() {
        _ if (dashboard.options.is_local)(request) => SetupProof::Local,
        "" => SetupProof::None,
        token => SetupProof::Token(Secret::new(token.to_owned())),
    };
    let admin = NewAdmin { email, password, username, organization };
    dashboard.services.registration.register(admin, proof, (dashboard.options.origin)(request)).await
}

async fn join_page(request: HttpRequest, dashboard: Data<Dashboard>) -> Result<HttpResponse, PageError> {
    let is_refused = is_refused(&request, &dashboard);
    let title = "Set your password";
    page_with(StatusCode::OK, &JoinPage { assets: assets::path(), title, error: None, is_refused })
}

async fn join(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    form: Form,
) -> Result<HttpResponse, PageError> {
    if is_refused(&request, &dashboard) {
        return Err(insecure());
    }
    match set_up(&request, &dashboard, &form).await {
        Ok(()) => Ok(see_other(format!("{PREFIX}/login?done=joined"))),
        Err(error) => {
            let error = PageError::from(error);
            let text = Some(error.message().to_owned());
            let title = "Set your password";
            let template = JoinPage { assets: assets::path(), title, error: text, is_refused: false };
            page_with(error.status(), &template)
        }
    }
}

async fn set_up(request: &HttpRequest, dashboard: &Dashboard, form: &Form) -> Result<(), Error> {
    let mut fields = Fields::of(form);
    let token = fields.required_by("token", |text| secret(text.trim()));
    let password = fields.required_by("password", |text| Password::try_from(text.to_owned()));
    let (Ok(token), Ok(password)) = (token, password) else { return Err(fields.error()) };
    let origin = (dashboard.options.origin)(request);
    dashboard.services.passwords.set_up(PasswordSetupRequest { token, password, origin }).await
}

async fn log_out(Submitted { context, .. }: Submitted) -> Result<HttpResponse, PageError> {
    context.services().logins.log_out(&context.visitor).await?;
    Ok(without_session(&context, "logged-out"))
}

async fn log_out_everywhere(Submitted { context, .. }: Submitted) -> Result<HttpResponse, PageError> {
    context.services().logins.log_out_everywhere(&context.visitor).await?;
    Ok(without_session(&context, "logged-out-everywhere"))
}

fn without_session(context: &PageContext, done: &str) -> HttpResponse {
    let mut response = see_other(format!("{PREFIX}/login?done={done}"));
    let cookie = Cookies::of(&context.request, &context.dashboard.options).remove_session();
    response.headers_mut().append(SET_COOKIE, cookie);
    response
}

async fn select_organization(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let selected = form.text("organization").parse().ok().and_then(|id| context.visitor.acting_in(id));
    let selected = selected.ok_or(Error::NotFound("the organization"))?;
    let id = selected.organization().map_err(Error::from)?.id();
    let mut response = see_other(format!("{PREFIX}/applications"));
    let cookies = Cookies::of(&context.request, &context.dashboard.options);
    response.headers_mut().append(SET_COOKIE, cookies.store_organization(&id.to_string()));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_only_to_pages_of_the_dashboard() {
        assert_eq!(safe_next("/applications?search=a%20b"), "/applications?search=a%20b");
        for next in [
            "",
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "applications",
            "/@evil.example",
            "/a\nb",
        ] {
            assert_eq!(safe_next(next), "", "{next}");
        }
    }
}
