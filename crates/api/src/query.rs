//! Query parameters, parsed like the fields of a body.

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, dev::Payload, web};
use serde_json::{Map, Value};

use crate::{
    error::{ApiError, Code},
    fields::Fields,
};

/// The query of a request, which is parsed late: the caller is authorized first.
pub(crate) struct Query(String);

impl FromRequest for Query {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        ready(Ok(Self(request.query_string().to_owned())))
    }
}

impl Query {
    /// Parses the query.
    pub(crate) fn read(&self) -> Result<Fields, ApiError> {
        let refuse = |message| ApiError::new(Code::ValidationFailed, message);
        let pairs = web::Query::<Vec<(String, String)>>::from_query(&self.0)
            .map_err(|_refused| refuse("the query is not of the form name=value&…"))?
            .into_inner();
        if pairs.iter().any(|(_, value)| value.contains('\0')) {
            return Err(refuse("the query must not contain NUL characters"));
        }
        let fields: Map<String, Value> =
            pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        Ok(Fields::new(fields))
    }
}
