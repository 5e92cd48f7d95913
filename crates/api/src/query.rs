//! Query and path parameters, parsed like the fields of a body.

use std::{
    future::{Ready, ready},
    marker::PhantomData,
};

use actix_web::{FromRequest, HttpRequest, dev::Payload, web};
use serde_json::{Map, Value};

use crate::{
    endpoint::{Description, Part},
    error::{ApiError, Code},
    fields::Fields,
    input::Input,
};

/// The query of a request, which is parsed late: the caller is authorized first.
pub(crate) struct Query<T>(String, PhantomData<T>);

impl<T> FromRequest for Query<T> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        ready(Ok(Self(request.query_string().to_owned(), PhantomData)))
    }
}

impl<T: Input> Query<T> {
    /// Parses the query. Unknown parameters are ignored: they may be for other software.
    pub(crate) fn read(&self) -> Result<T, ApiError> {
        let refuse = |message| ApiError::new(Code::ValidationFailed, message);
        let pairs = web::Query::<Vec<(String, String)>>::from_query(&self.0)
            .map_err(|_refused| refuse("the query is not of the form name=value&…"))?
            .into_inner();
        if pairs.iter().any(|(_, value)| value.contains('\0')) {
            return Err(refuse("the query must not contain NUL characters"));
        }
        read(pairs)
    }
}

impl<T: Input> Part for Query<T> {
    fn describe(description: &mut Description) {
        parameters::<T>(description, "query");
    }
}

/// The path parameters of a request, which are parsed late, too.
pub(crate) struct Path<T>(Vec<(String, String)>, PhantomData<T>);

impl<T> FromRequest for Path<T> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let names = request.match_info().iter().map(|(name, _)| name.to_owned());
        let values = web::Path::<Vec<String>>::from_request(request, payload).into_inner();
        ready(match values {
            Ok(values) => Ok(Self(names.zip(values.into_inner()).collect(), PhantomData)),
            Err(_not_utf8) => Err(ApiError::new(Code::ValidationFailed, "the path is not valid UTF-8")),
        })
    }
}

impl<T: Input> Path<T> {
    /// Parses the parameters.
    pub(crate) fn read(self) -> Result<T, ApiError> {
        read(self.0)
    }
}

impl<T: Input> Part for Path<T> {
    fn describe(description: &mut Description) {
        parameters::<T>(description, "path");
    }
}

fn read<T: Input>(pairs: impl IntoIterator<Item = (String, String)>) -> Result<T, ApiError> {
    let fields: Map<String, Value> =
        pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
    let mut fields = Fields::new(fields);
    let input = T::take(&mut fields);
    fields.finish_query()?;
    Ok(input?)
}

fn parameters<T: Input>(description: &mut Description, place: &str) {
    description.fails(&[Code::ValidationFailed]);
    for field in T::properties() {
        if field.schema["format"] == "uuid" {
            description.fails(&[Code::InvalidId]);
        }
        description.query_names.extend(field.alias.map(str::to_owned));
        description.query_names.push(field.name.clone());
        description.parameter(place, &field.name, &field.about, field.is_required, field.schema);
    }
}
