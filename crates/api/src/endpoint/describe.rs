//! The description of an endpoint by the types of its handler.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::{HttpRequest, HttpResponse, web::Data};
use serde_json::{Map, Value, json};

use super::Access;
use crate::{
    Api,
    error::{ApiError, Code},
    schema::{Register, Schemas},
};

/// A part of a request that a handler takes.
pub(crate) trait Part {
    /// Adds its parameters, its body and its errors.
    fn describe(description: &mut Description);
}

/// A response that a handler returns.
pub(crate) trait Answer {
    /// Sets the response.
    fn describe(description: &mut Description);
}

/// The description of an endpoint by the types of its handler.
pub(crate) struct Description {
    pub(super) caller: Access,
    pub(super) parameters: Vec<Value>,
    pub(super) errors: BTreeSet<Code>,
    /// The names of the parameters that are read.
    pub(crate) query_names: Vec<String>,
    pub(super) content_type: &'static str,
    pub(super) other_content_type: Option<&'static str>,
    /// The media type of the body.
    pub(crate) body_type: &'static str,
    body: Option<(Register, bool)>,
    answer: Option<Register>,
}

impl Default for Description {
    fn default() -> Self {
        Self {
            caller: Access::Public,
            parameters: Vec::new(),
            errors: BTreeSet::new(),
            query_names: Vec::new(),
            content_type: "application/json",
            other_content_type: None,
            body_type: "application/json",
            body: None,
            answer: None,
        }
    }
}

impl Description {
    /// Declares error codes.
    pub(crate) fn fails(&mut self, codes: &[Code]) {
        self.errors.extend(codes);
    }

    /// Declares the access that the caller needs.
    pub(crate) fn access(&mut self, access: Access) {
        self.caller = access;
    }

    /// Adds a parameter.
    pub(crate) fn parameter(
        &mut self,
        place: &str,
        name: &str,
        about: &str,
        is_required: bool,
        schema: Value,
    ) {
        let mut parameter = json!({"name": name, "in": place, "required": is_required, "schema": schema});
        if !about.is_empty() {
            parameter["description"] = json!(about);
        }
        if place == "query" && !is_required {
            parameter["allowEmptyValue"] = json!(true);
        }
        self.parameters.push(parameter);
    }

    /// Sets the schema of the body, and whether a request without it fails.
    pub(crate) fn body(&mut self, schema: Register, is_required: bool) {
        self.body = Some((schema, is_required));
    }

    /// Sets the schema of the response.
    pub(crate) fn answer(&mut self, schema: Register) {
        self.answer = Some(schema);
    }

    pub(super) fn request_body(&self, schemas: &mut Schemas) -> Option<Value> {
        let (schema, is_required) = self.body?;
        Some(json!({"required": is_required, "content": {self.body_type: {"schema": schema(schemas)}}}))
    }

    pub(super) fn responses(&self, schemas: &mut Schemas) -> Value {
        let success = match self.answer {
            Some(schema) => {
                let types = [Some(self.content_type), self.other_content_type].into_iter().flatten();
                types.map(|name| (name.to_owned(), json!({"schema": schema(schemas)}))).collect()
            }
            None => json!({}),
        };
        let mut responses = Map::new();
        responses.insert("200".to_owned(), json!({"description": "Success", "content": success}));
        let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
        for code in &self.errors {
            by_status.entry(code.status().as_u16()).or_default().push(*code);
        }
        for (status, codes) in by_status {
            responses.insert(status.to_string(), failure(&codes));
        }
        Value::Object(responses)
    }
}

/// Returns the response object of the error codes of one status.
fn failure(codes: &[Code]) -> Value {
    let about: Vec<_> = codes.iter().map(|code| format!("`{}`", code.name())).collect();
    let examples: Map<String, Value> = codes
        .iter()
        .map(|code| {
            (code.name().to_owned(), json!({"value": ApiError::new(*code, code.example()).envelope()}))
        })
        .collect();
    json!({
        "description": about.join(", "),
        "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Error"},
            "examples": examples,
        }},
    })
}

/// Parts that say nothing about the endpoint.
macro_rules! silent {
    ($($part:ty),*) => {$(
        impl Part for $part {
            fn describe(_description: &mut Description) {}
        }
    )*};
}

silent!(Data<Api>, HttpRequest, ());

/// Implements [`Part`] for the parameters of a handler.
macro_rules! parts {
    ($($name:ident)+) => {
        impl<$($name: Part),+> Part for ($($name,)+) {
            fn describe(description: &mut Description) {
                $($name::describe(description);)+
            }
        }
    };
}

parts!(A);
parts!(A B);
parts!(A B C);
parts!(A B C D);
parts!(A B C D E);

impl<T: Answer> Answer for Result<T, ApiError> {
    fn describe(description: &mut Description) {
        T::describe(description);
    }
}

/// A response that its endpoint declares by [`responds`](super::Endpoint::responds).
impl Answer for HttpResponse {
    fn describe(_description: &mut Description) {}
}
