//! The envelope of every response.

use std::borrow::Cow;

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::header::{CACHE_CONTROL, ContentType, HeaderValue, X_CONTENT_TYPE_OPTIONS},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    endpoint::{Answer, Description},
    error::{ApiError, Code},
    fields::Problem,
    schema::{Schemas, list_of},
};

/// The result of a handler.
pub(crate) type Reply<T> = Result<Success<T>, ApiError>;

/// A successful response.
pub(crate) type Success<T> = Envelope<T>;

/// The envelope of a success.
#[derive(Serialize)]
pub(crate) struct Envelope<T> {
    data: T,
    message: &'static str,
    status: &'static str,
}

/// The payload of a response without data: null.
#[derive(Serialize)]
pub(crate) struct Nothing;

/// The envelope of a success that has only a message, with the `error` field of a failure. Few operations
/// use it.
#[derive(Serialize)]
pub(crate) struct Done {
    data: (),
    message: Cow<'static, str>,
    status: &'static str,
    error: &'static str,
}

/// The envelope of a failure.
#[derive(Serialize)]
pub(crate) struct ErrorEnvelope<'a> {
    pub(crate) data: (),
    pub(crate) message: &'a str,
    pub(crate) status: &'static str,
    pub(crate) error: &'static str,
    /// The problems of single fields.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) errors: &'a [Problem],
}

/// The payload of an envelope.
pub(crate) trait Payload {
    /// Adds the schema of its envelope, and returns a reference to it.
    fn envelope(schemas: &mut Schemas) -> Value;
}

impl Payload for Nothing {
    fn envelope(schemas: &mut Schemas) -> Value {
        schemas.add("EmptyResponse", |_| envelope_of(json!({"type": "null"})))
    }
}

impl<T: ToSchema> Payload for T {
    fn envelope(schemas: &mut Schemas) -> Value {
        let data = schemas.add_view::<T>();
        match name_of(&data).map(|name| format!("{name}Response")) {
            Some(name) => schemas.add(&name, |_| envelope_of(data)),
            None => envelope_of(data),
        }
    }
}

/// A payload that is a list.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct List<T>(Vec<T>);

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T: ToSchema> Payload for List<T> {
    fn envelope(schemas: &mut Schemas) -> Value {
        let items = schemas.add_view::<T>();
        let name = format!("{}ListResponse", name_of(&items).unwrap_or("String"));
        schemas.add(&name, |_| envelope_of(list_of(items)))
    }
}

/// Returns the name of the schema that a reference leads to.
fn name_of(reference: &Value) -> Option<&str> {
    reference["$ref"].as_str().and_then(|reference| reference.rsplit('/').next())
}

fn envelope_of(data: Value) -> Value {
    json!({
        "type": "object",
        "required": ["data", "message", "status"],
        "properties": {
            "data": data,
            "message": {"type": "string", "description": "A sentence for users."},
            "status": {"type": "string", "enum": ["success"]},
        },
    })
}

impl<T: Payload> Answer for Envelope<T> {
    fn describe(description: &mut Description) {
        description.answer(T::envelope);
    }
}

impl Answer for Done {
    fn describe(description: &mut Description) {
        description.answer(|schemas| {
            schemas.add("MessageResponse", |_| {
                let mut envelope = envelope_of(json!({"type": "null"}));
                envelope["properties"]["error"] = json!({"type": "string", "enum": [""]});
                envelope["required"] = json!(["data", "message", "status", "error"]);
                envelope
            })
        });
    }
}

/// Adds the schema of failures.
pub(crate) fn add_error_schema(schemas: &mut Schemas) {
    let problem = schemas.add_view::<Problem>();
    schemas.add("Error", |_| {
        json!({
            "type": "object",
            "required": ["data", "message", "status", "error"],
            "properties": {
                "data": {"type": "null"},
                "message": {"type": "string", "description": "A sentence for users."},
                "status": {"type": "string", "enum": ["error"]},
                "error": {
                    "type": "string",
                    "enum": Code::ALL.iter().map(|code| code.name()).collect::<Vec<_>>(),
                    "description": "A stable code for programs.",
                },
                "errors": {
                    "type": "array",
                    "items": problem,
                    "description": "The problems of single fields, if there are any.",
                },
            },
        })
    });
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
