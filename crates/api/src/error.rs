//! The error codes of the API, and their HTTP statuses.
//!
//! **Invariant:** a code and its HTTP status are defined together in one place, `codes!`.
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

use crate::{
    envelope::{ErrorEnvelope, json},
    fields::Problem,
};

/// Defines the error codes: name, HTTP status, and an example of a message.
macro_rules! codes {
    ($($code:ident => $name:literal, $status:ident, $example:literal;)*) => {
        /// A stable error code for programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Code {
            $(#[doc = concat!("`", $name, "`.")] $code),*
        }

        impl Code {
            /// All codes, by status.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$code),*];

            /// Returns the name.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$code => $name),* }
            }

            /// Returns the HTTP status.
            pub(crate) fn status(self) -> StatusCode {
                match self { $(Self::$code => StatusCode::$status),* }
            }

            /// Returns a message that a failure with this code may have.
            pub(crate) fn example(self) -> &'static str {
                match self { $(Self::$code => $example),* }
            }
        }
    };
}

// codes:begin
codes! {
    InvalidJson => "invalid_json", BAD_REQUEST, "the body must be a JSON object";
    ValidationFailed => "validation_failed", BAD_REQUEST, "name is required";
    UnknownField => "unknown_field", BAD_REQUEST, "colour is not a field of this request";
    InvalidId => "invalid_id", BAD_REQUEST, "id is not a UUID";
    Unauthenticated => "unauthenticated", UNAUTHORIZED, "a valid bearer token is needed: log in, and send `Authorization: Bearer <token>`";
    InvalidCredentials => "invalid_credentials", UNAUTHORIZED, "the e-mail address or the password is wrong";
    InvalidSignature => "invalid_signature", UNAUTHORIZED, "this webhook is not signed with the secret of a repository that is deployed here: an admin reads it by `GET /api/v1/deploy/application/webhook-secret?id=`";
    TwoFactorRequired => "two_factor_required", UNAUTHORIZED, "this account needs a code from its authenticator: send it as `totp_code`";
    Forbidden => "forbidden", FORBIDDEN, "this needs the permission `deploy:update`, which you do not have in this organization";
    RegistrationClosed => "registration_closed", FORBIDDEN, "an administrator is registered already: log in by `POST /api/v1/auth/login`, or ask them to add you to an organization";
    NotFound => "not_found", NOT_FOUND, "the application was not found";
    RouteNotFound => "route_not_found", NOT_FOUND, "there is nothing at `/api/v2`; /docs lists what there is";
    MethodNotAllowed => "method_not_allowed", METHOD_NOT_ALLOWED, "this path allows only GET, HEAD";
    RequestTimeout => "request_timeout", REQUEST_TIMEOUT, "the body did not arrive within 30 seconds";
    Conflict => "conflict", CONFLICT, "the application was changed in the meantime: read it again";
    PayloadTooLarge => "payload_too_large", PAYLOAD_TOO_LARGE, "the body is larger than the 1048576 bytes that are read";
    RateLimited => "rate_limited", TOO_MANY_REQUESTS, "too many attempts; try again in 30 seconds";
    Internal => "internal", INTERNAL_SERVER_ERROR, "internal error; find the cause in the server log by the x-request-id of this response";
    Unavailable => "unavailable", SERVICE_UNAVAILABLE, "Launchway is stopping, too busy, or cannot reach its database; try again in a moment";
}
// codes:end

/// An error response.
#[derive(Debug)]
pub(crate) struct ApiError {
    code: Code,
    message: String,
    /// The problems of single fields.
    problems: Vec<Problem>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The cause, which is logged and not sent to the client.
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl ApiError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message, problems: Vec::new(), headers: Vec::new(), cause: None }
    }

    /// Returns the error of invalid fields.
    pub(crate) fn of_fields(code: Code, problems: Vec<Problem>) -> Self {
        let message = problems.iter().map(Problem::message).collect::<Vec<_>>().join("; ");
        Self { problems, ..Self::new(code, message) }
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// Returns the body of the response.
    pub(crate) fn envelope(&self) -> ErrorEnvelope<'_> {
        let Self { code, message, problems, .. } = self;
        ErrorEnvelope { data: (), message, status: "error", error: code.name(), errors: problems }
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
            // `Internal`, and nothing else.
            _ => return Self::internal(error),
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
        self.code.status()
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        for header in &self.headers {
            response.insert_header(header.clone());
        }
        json(response, &self.envelope())
    }
}
