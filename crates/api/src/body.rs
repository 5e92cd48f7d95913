//! Request bodies: read late, limited in size, time and depth, independent of their content type.

use std::future::{Ready, ready};

use actix_web::{
    FromRequest, HttpRequest,
    dev::Payload,
    http::header::CONTENT_LENGTH,
    web::{Bytes, BytesMut, Data},
};
use futures_util::StreamExt;
use launchway_domain::idempotency::BodyHash;
use serde_json::{Map, Value};
use std::marker::PhantomData;

use crate::{
    Api,
    endpoint::{Description, Part},
    error::{ApiError, Code},
    fields::Fields,
    input::Input,
};

/// A body that has not been read yet.
///
/// Extracting it reads nothing, so that a handler that rejects its caller never waits for a body;
/// [`read`](Body::read) does.
pub(crate) struct Body<T> {
    api: Data<Api>,
    declared_length: Option<usize>,
    payload: Payload,
    input: PhantomData<T>,
}

impl<T> FromRequest for Body<T> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let declared_length = request
            .headers()
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok())
            .and_then(|length| length.parse().ok());
        ready(match request.app_data::<Data<Api>>() {
            Some(api) => {
                Ok(Self { api: api.clone(), declared_length, payload: payload.take(), input: PhantomData })
            }
            None => Err(ApiError::internal("the API's state is not set up")),
        })
    }
}

impl<T: Input> Part for Body<T> {
    fn describe(description: &mut Description) {
        let is_required = T::properties().into_iter().any(|field| field.is_required);
        description.body(T::schema, is_required);
        description.fails(&[
            Code::InvalidJson,
            Code::ValidationFailed,
            Code::UnknownField,
            Code::RequestTimeout,
            Code::PayloadTooLarge,
        ]);
        if T::properties().into_iter().any(|field| field.schema["format"] == "uuid") {
            description.fails(&[Code::InvalidId]);
        }
    }
}

impl<T: Input> Body<T> {
    /// Reads the body and its fields.
    pub(crate) async fn read(self) -> Result<T, ApiError> {
        self.read_with_hash().await.map(|(input, _)| input)
    }

    /// Reads the body and its fields, and returns the hash of the body too.
    pub(crate) async fn read_with_hash(self) -> Result<(T, BodyHash), ApiError> {
        let limit = self.api.options.body_limit;
        let bytes = self.raw(limit).await?;
        Ok((T::read(Fields::new(object(&bytes)?))?, BodyHash::of(&bytes)))
    }
}

impl<T> Body<T> {
    /// Returns whether the declared length is at most `limit` bytes.
    pub(crate) fn is_within(&self, limit: usize) -> bool {
        self.declared_length.is_some_and(|length| length <= limit)
    }

    /// Returns the body unread, for a handler that stores it piece by piece.
    pub(crate) fn into_payload(self) -> Payload {
        self.payload
    }

    /// Returns the raw body of at most `limit` bytes.
    pub(crate) async fn raw(self, limit: usize) -> Result<Bytes, ApiError> {
        let timeout = self.api.options.body_timeout;
        tokio::time::timeout(timeout, self.bytes(limit)).await.map_err(|_elapsed| {
            ApiError::new(
                Code::RequestTimeout,
                format!("the body did not arrive within {} seconds", timeout.as_secs_f32()),
            )
        })?
    }

    async fn bytes(mut self, limit: usize) -> Result<Bytes, ApiError> {
        let too_large = || {
            ApiError::new(
                Code::PayloadTooLarge,
                format!("the body is larger than the {limit} bytes that are read"),
            )
        };
        if self.declared_length.is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let mut bytes = BytesMut::new();
        while let Some(chunk) = self.payload.next().await {
            let chunk = chunk.map_err(|_broken| {
                ApiError::new(
                    Code::InvalidJson,
                    "the body ended before its announced length, or is not encoded well",
                )
            })?;
            if bytes.len() + chunk.len() > limit {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.freeze())
    }
}

/// The largest nesting depth of arrays and objects.
const MAX_DEPTH: usize = 32;

fn object(bytes: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| ApiError::new(Code::InvalidJson, format!("the body is not valid JSON: {error}")))?;
    check(&value, MAX_DEPTH)?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(ApiError::new(Code::InvalidJson, "the body must be a JSON object")),
    }
}

/// Rejects values that no field may contain, at any depth.
fn check(value: &Value, depth_left: usize) -> Result<(), ApiError> {
    let no_nul = |text: &str| {
        if text.contains('\0') {
            Err(ApiError::new(Code::ValidationFailed, "the body must not contain NUL characters"))
        } else {
            Ok(())
        }
    };
    let depth_left = match value {
        Value::Array(_) | Value::Object(_) => depth_left.checked_sub(1).ok_or_else(|| {
            ApiError::new(Code::InvalidJson, format!("the body is nested deeper than {MAX_DEPTH} levels"))
        })?,
        _ => depth_left,
    };
    match value {
        Value::String(text) => no_nul(text),
        Value::Array(items) => items.iter().try_for_each(|item| check(item, depth_left)),
        Value::Object(object) => object.iter().try_for_each(|(name, item)| {
            no_nul(name)?;
            check(item, depth_left)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Vec<u8> {
        // The outermost object counts as a level.
        format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1)).into_bytes()
    }

    #[test]
    fn a_body_may_be_nested_32_levels_deep_and_no_deeper() {
        assert!(object(&nested(32)).is_ok());
        assert!(object(&nested(33)).is_err());
        assert!(object(&nested(5000)).is_err());
    }

    #[test]
    fn an_empty_body_counts_as_an_empty_object() {
        assert_eq!(object(b"").unwrap(), Map::new());
        assert_eq!(object(b" \n").unwrap(), Map::new());
    }

    #[test]
    fn a_body_that_is_no_object_is_refused() {
        for body in ["[]", "null", "1", "\"a\"", "{", "{\"a\":1} x", "\u{feff}{}"] {
            assert!(object(body.as_bytes()).is_err(), "{body}");
        }
        assert!(object(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn nul_characters_are_refused_wherever_they_are() {
        for body in [r#"{"a":"\u0000"}"#, r#"{"\u0000":1}"#, r#"{"a":[{"b":"x\u0000"}]}"#] {
            assert!(object(body.as_bytes()).is_err(), "{body}");
        }
    }
}
