//! The error codes of the API, and their HTTP statuses.
//!
//! **Invariant:** a code and its HTTP status are defined together in one place, `Code::row`.
//!
//! **Invariant:** the cause of a 500 or 503 is logged, and never part of a response.

use std::{error::Error as StdError, fmt};

use actix_web::{
    HttpResponse, ResponseError,
    http::{
        StatusCode,
        header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
    },
};
use launchway_application::Error;
use launchway_domain::ids::InvalidId;

use crate::envelope::{ErrorEnvelope, json};

/// A stable error code for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    InvalidJson,
    ValidationFailed,
    UnknownField,
    InvalidId,
    Unauthenticated,
    InvalidCredentials,
    InvalidSignature,
    TwoFactorRequired,
    Forbidden,
    RegistrationClosed,
    NotFound,
    RouteNotFound,
    MethodNotAllowed,
    RequestTimeout,
    Conflict,
    PayloadTooLarge,
    RateLimited,
    Internal,
    Unavailable,
}

impl Code {
    /// Returns the name of a code, and its HTTP status.
    fn row(self) -> (&'static str, StatusCode) {
        // codes:begin
        match self {
            Self::InvalidJson => ("invalid_json", StatusCode::BAD_REQUEST),
            Self::ValidationFailed => ("validation_failed", StatusCode::BAD_REQUEST),
            Self::UnknownField => ("unknown_field", StatusCode::BAD_REQUEST),
            Self::InvalidId => ("invalid_id", StatusCode::BAD_REQUEST),
            Self::Unauthenticated => ("unauthenticated", StatusCode::UNAUTHORIZED),
            Self::InvalidCredentials => ("invalid_credentials", StatusCode::UNAUTHORIZED),
            Self::InvalidSignature => ("invalid_signature", StatusCode::UNAUTHORIZED),
            Self::TwoFactorRequired => ("two_factor_required", StatusCode::UNAUTHORIZED),
            Self::Forbidden => ("forbidden", StatusCode::FORBIDDEN),
            Self::RegistrationClosed => ("registration_closed", StatusCode::FORBIDDEN),
            Self::NotFound => ("not_found", StatusCode::NOT_FOUND),
            Self::RouteNotFound => ("route_not_found", StatusCode::NOT_FOUND),
            Self::MethodNotAllowed => ("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED),
            Self::RequestTimeout => ("request_timeout", StatusCode::REQUEST_TIMEOUT),
            Self::Conflict => ("conflict", StatusCode::CONFLICT),
            Self::PayloadTooLarge => ("payload_too_large", StatusCode::PAYLOAD_TOO_LARGE),
            Self::RateLimited => ("rate_limited", StatusCode::TOO_MANY_REQUESTS),
            Self::Internal => ("internal", StatusCode::INTERNAL_SERVER_ERROR),
            Self::Unavailable => ("unavailable", StatusCode::SERVICE_UNAVAILABLE),
        }
        // codes:end
    }
}

/// An error response.
#[derive(Debug)]
pub(crate) struct ApiError {
    code: Code,
    message: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The cause, which is logged and not sent to the client.
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl ApiError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), headers: Vec::new(), cause: None }
    }

    /// Returns the error for a known path with another method.
    pub(crate) fn method_not_allowed(allow: &str) -> Self {
        let message = format!("this path allows only {allow}");
        Self::new(Code::MethodNotAllowed, message).with_header(ALLOW, allow)
    }

    /// Returns an internal error, whose cause is only logged.
    pub(crate) fn internal(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = "internal error; find the cause in the server log by the x-request-id of this response";
        Self { cause: Some(cause.into()), ..Self::new(Code::Internal, message) }
    }

    /// Returns the error for an unavailable dependency.
    pub(crate) fn unavailable(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = "Launchway is stopping, too busy, or cannot reach its database; try again in a moment";
        Self { cause: Some(cause.into()), ..Self::new(Code::Unavailable, message) }
            .with_header(RETRY_AFTER, "1")
    }

    /// Returns the error for a full disk of the database. The response says so, and the cause is only
    /// logged.
    fn storage_full(error: Error) -> Self {
        let message = error.to_string();
        Self { cause: Some(error.into()), ..Self::new(Code::Unavailable, message) }
            .with_header(RETRY_AFTER, "10")
    }

    /// Adds a header to the response.
    pub(crate) fn with_header(mut self, name: HeaderName, value: impl TryInto<HeaderValue>) -> Self {
        self.headers.extend(value.try_into().ok().map(|value| (name, value)));
        self
    }

    /// Returns the cause to log.
    pub(crate) fn cause(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.cause.as_deref()
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Invalid(_) => Code::ValidationFailed,
            Error::Unauthenticated => Code::Unauthenticated,
            Error::InvalidCredentials(_) => Code::InvalidCredentials,
            Error::InvalidSignature => Code::InvalidSignature,
            Error::TwoFactorRequired => Code::TwoFactorRequired,
            Error::Forbidden(_) | Error::SetupTokenNeeded => Code::Forbidden,
            Error::RegistrationClosed => Code::RegistrationClosed,
            Error::NotFound(_) => Code::NotFound,
            Error::Conflict(_)
            | Error::QuotaExceeded(_)
            | Error::Repeated
            | Error::IdempotencyKeyReused
            | Error::WebhookConfigured(_)
            | Error::MailServerConfigured => Code::Conflict,
            Error::RateLimited { .. } | Error::Busy { .. } => Code::RateLimited,
            Error::Unavailable(_) => return Self::unavailable(error),
            Error::StorageFull(_) => return Self::storage_full(error),
            Error::Internal(_) => return Self::internal(error),
        };
        let failure = Self::new(code, message_of(&error));
        match error {
            Error::Unauthenticated => failure.with_header(WWW_AUTHENTICATE, "Bearer"),
            Error::RateLimited { retry_after } | Error::Busy { retry_after, .. } => {
                failure.with_header(RETRY_AFTER, retry_after.as_secs())
            }
            _ => failure,
        }
    }
}

/// Returns the message of an error, with the advice for a client of the HTTP API.
fn message_of(error: &Error) -> String {
    let message = match error {
        Error::Unauthenticated => {
            "a valid bearer token is needed: log in, and send `Authorization: Bearer <token>`"
        }
        Error::InvalidSignature => {
            "this webhook is not signed with the secret of a repository that is deployed here: an admin reads it by \
             `GET /api/v1/deploy/application/webhook-secret?id=`"
        }
        Error::TwoFactorRequired => {
            "this account needs a code from its authenticator: send it as `totp_code`"
        }
        Error::SetupTokenNeeded => {
            "registration from another machine needs the `setup_token` that the server printed when it started"
        }
        Error::RegistrationClosed => {
            "an administrator is registered already: log in by `POST /api/v1/auth/login`, or ask them to add you to an \
             organization"
        }
        Error::Repeated => "a request with this `Idempotency-Key` was already processed",
        Error::IdempotencyKeyReused => {
            "this `Idempotency-Key` was used with another body: use a new one for another request"
        }
        Error::WebhookConfigured(kind) => {
            return format!(
                "a webhook of type {} is configured already: change it by `PUT /api/v1/notification/webhook`, or \
                 delete it first",
                kind.as_str()
            );
        }
        Error::MailServerConfigured => {
            "a mail server is configured already: change it by `PUT /api/v1/notification/smtp`, or delete it first"
        }
        error => return error.to_string(),
    };
    message.to_owned()
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.code.row().1
    }

    fn error_response(&self) -> HttpResponse {
        let (error, status) = self.code.row();
        let mut response = HttpResponse::build(status);
        for header in &self.headers {
            response.insert_header(header.clone());
        }
        json(response, &ErrorEnvelope { data: (), message: &self.message, status: "error", error })
    }
}

/// Parses an id of a path.
pub(crate) fn path_id<T: std::str::FromStr<Err = InvalidId>>(name: &str, raw: &str) -> Result<T, ApiError> {
    raw.parse().map_err(|refused: InvalidId| ApiError::new(Code::InvalidId, format!("{name} {refused}")))
}
