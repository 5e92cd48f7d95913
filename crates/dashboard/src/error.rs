//! Error pages.

use std::fmt;

use actix_web::{
    HttpRequest, HttpResponse, ResponseError,
    http::{
        StatusCode,
        header::{ContentType, LOCATION, RETRY_AFTER},
    },
};
use askama::Template;
use launchway_application::Error;
use launchway_domain::error_chain::ErrorChain;

use crate::{assets, middleware::protect, router::PREFIX};

/// An error as a page.
#[derive(Debug)]
pub(crate) struct PageError {
    status: StatusCode,
    message: String,
    /// The place to go to instead.
    location: Option<String>,
    retry_after: Option<u64>,
}

impl PageError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), location: None, retry_after: None }
    }

    /// Returns the error for an unknown path.
    pub(crate) fn unknown_page() -> Self {
        Self::new(StatusCode::NOT_FOUND, "this page does not exist")
    }

    /// Returns the way to the login, and from there back to the page.
    pub(crate) fn login(request: &HttpRequest) -> Self {
        let path = request.uri().path_and_query().map_or("", |path| path.as_str());
        let path = path.strip_prefix(PREFIX).filter(|path| request.method() == "GET" && path.len() > 1);
        let next: String = path.map(|path| format!("?next={}", encoded(path))).unwrap_or_default();
        let location = Some(format!("{PREFIX}/login{next}"));
        Self { location, ..Self::new(StatusCode::SEE_OTHER, "log in first") }
    }

    /// Returns the message for the visitor.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the seconds to wait before a retry.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.retry_after
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }
}

/// Returns a text as a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Invalid(_) => StatusCode::BAD_REQUEST,
            Error::Unauthenticated | Error::InvalidCredentials(_) | Error::TwoFactorRequired => {
                StatusCode::UNAUTHORIZED
            }
            Error::Forbidden(_) | Error::SetupTokenNeeded | Error::RegistrationClosed => {
                StatusCode::FORBIDDEN
            }
            Error::NotFound(_) => StatusCode::NOT_FOUND,
            Error::Conflict(_)
            | Error::QuotaExceeded(_)
            | Error::WebhookConfigured(_)
            | Error::MailServerConfigured => StatusCode::CONFLICT,
            Error::RateLimited { .. } | Error::Busy { .. } => StatusCode::TOO_MANY_REQUESTS,
            Error::StorageFull(_) => StatusCode::SERVICE_UNAVAILABLE,
            Error::Unavailable(cause) => {
                tracing::warn!(cause = %ErrorChain(&**cause), "page failed temporarily");
                let message =
                    "Launchway is stopping, too busy, or cannot reach its database; try again in a moment";
                return Self { retry_after: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) };
            }
            // `Internal`, and nothing else that a form can cause.
            _ => {
                tracing::error!(cause = %ErrorChain(&error), "page failed");
                return Self::internal();
            }
        };
        let retry_after = match &error {
            Error::RateLimited { retry_after } | Error::Busy { retry_after, .. } => {
                Some(retry_after.as_secs())
            }
            _ => None,
        };
        Self { retry_after, ..Self::new(status, error.to_string()) }
    }
}

impl PageError {
    pub(crate) fn internal() -> Self {
        let message = "internal error; find the cause in the server log by the x-request-id of this response";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    assets: &'static str,
    status: u16,
    title: &'a str,
    message: &'a str,
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status);
        if let Some(location) = &self.location {
            return response.insert_header((LOCATION, location.as_str())).finish();
        }
        if let Some(seconds) = self.retry_after {
            response.insert_header((RETRY_AFTER, seconds));
        }
        let title = match self.status {
            StatusCode::NOT_FOUND => "Not found",
            StatusCode::FORBIDDEN => "Not allowed",
            StatusCode::CONFLICT => "Not possible now",
            StatusCode::TOO_MANY_REQUESTS => "Too many requests",
            StatusCode::SERVICE_UNAVAILABLE => "Unavailable",
            status if status.is_client_error() => "This did not work",
            _ => "Something went wrong",
        };
        let page =
            ErrorPage { assets: assets::path(), status: self.status.as_u16(), title, message: &self.message };
        match page.render() {
            Ok(text) => {
                let mut response = response.insert_header(ContentType::html()).body(text);
                // An error of the middleware itself passes by it.
                protect(response.headers_mut());
                response
            }
            Err(_error) => response.finish(),
        }
    }
}
