//! The envelope of every response.

use std::borrow::Cow;

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::header::{CACHE_CONTROL, ContentType, HeaderValue, X_CONTENT_TYPE_OPTIONS},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;

/// The result of a handler.
pub(crate) type Reply<T> = Result<Success<T>, ApiError>;

/// A successful response.
pub(crate) type Success<T> = Envelope<T>;

/// The envelope of a success.
#[derive(Serialize, ToSchema)]
pub(crate) struct Envelope<T> {
    /// The payload of the response.
    data: T,
    /// A sentence for users.
    message: &'static str,
    /// Always `success`.
    #[schema(example = "success")]
    status: &'static str,
}

/// The payload of a response without data: null.
#[derive(Serialize, ToSchema)]
pub(crate) struct Nothing;

/// The envelope of a success that has only a message, with the `error` field of a failure. Few operations
/// use it.
#[derive(Serialize, ToSchema)]
pub(crate) struct Done {
    /// Always null.
    #[schema(value_type = Option<Object>)]
    data: (),
    /// A sentence for users.
    #[schema(value_type = String)]
    message: Cow<'static, str>,
    /// Always `success`.
    #[schema(example = "success")]
    status: &'static str,
    /// Always empty.
    #[schema(example = "")]
    error: &'static str,
}

/// The envelope of a failure.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorEnvelope<'a> {
    /// Always null.
    #[schema(value_type = Option<Object>)]
    pub(crate) data: (),
    /// A sentence for users.
    pub(crate) message: &'a str,
    /// Always `error`.
    #[schema(example = "error")]
    pub(crate) status: &'static str,
    /// A stable code for programs.
    #[schema(example = "not_found")]
    pub(crate) error: &'static str,
}

/// Wraps the payload of a successful response.
pub(crate) fn success<T>(message: &'static str, data: T) -> Success<T> {
    Envelope { data, message, status: "success" }
}

/// Returns a successful response without data.
pub(crate) fn done(message: impl Into<Cow<'static, str>>) -> Done {
    Done { data: (), message: message.into(), status: "success", error: "" }
}

impl Responder for Done {
    type Body = BoxBody;

    fn respond_to(self, _request: &HttpRequest) -> HttpResponse {
        json(HttpResponse::Ok(), &self)
    }
}

impl<T: Serialize> Responder for Envelope<T> {
    type Body = BoxBody;

    fn respond_to(self, _request: &HttpRequest) -> HttpResponse {
        json(HttpResponse::Ok(), &self)
    }
}

/// Returns a response with `body` as JSON.
pub(crate) fn json(response: actix_web::HttpResponseBuilder, body: &impl Serialize) -> HttpResponse {
    match serde_json::to_vec(body) {
        Ok(bytes) => json_bytes(response, bytes),
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "response serialization failed");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// Returns a response whose body is serialized JSON.
pub(crate) fn json_bytes(mut response: actix_web::HttpResponseBuilder, body: Vec<u8>) -> HttpResponse {
    // Responses differ by caller and contain secrets, so no proxy may cache them.
    response
        .insert_header(ContentType::json())
        .insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .insert_header((X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")))
        .body(body)
}
