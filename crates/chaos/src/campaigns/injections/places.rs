//! Every field of a request that takes a text.

use launchway_testkit::client::Client;
use serde_json::{Map, Value, json};

use crate::{
    document::{Ids, Operation},
    harness::PASSWORD,
};

/// The position of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a field of the body.
    Field(String),
    /// As the only item of a list.
    Item(String),
    /// As a value, and as a key, of a map.
    Entry(String),
    Path(String),
    Query(String),
    Header(String),
}

/// Returns the positions of an operation.
pub(crate) fn places(document: &Value, operation: &Operation) -> Vec<Place> {
    let fields = fields(document, body_schema(operation));
    let in_body = fields.into_iter().filter_map(|(name, schema)| match resolved(document, &schema) {
        schema if is(&schema, "array") => Some(Place::Item(name)),
        schema if is(&schema, "object") => Some(Place::Entry(name)),
        schema if is(&schema, "string") => Some(Place::Field(name)),
        _ => None,
    });
    let named = |place: &str, make: fn(String) -> Place| {
        operation.parameters(place, false).into_iter().map(make).collect::<Vec<_>>()
    };
    let mut places: Vec<_> = in_body.collect();
    places.extend(named("path", Place::Path));
    places.extend(named("query", Place::Query));
    places.extend(named("header", Place::Header));
    places
}

/// A request that would be valid except for one text.
pub(crate) struct Request {
    method: String,
    path: String,
    body: Option<Value>,
    header: Option<(String, String)>,
}

impl Request {
    /// Returns no request if the text cannot be placed there; several if there are several ways.
    pub(crate) fn with(
        document: &Value,
        operation: &Operation,
        place: &Place,
        text: &str,
        world: &World<'_>,
    ) -> Vec<Self> {
        let path = operation.filled(world.ids);
        let body = operation.about["requestBody"].is_object().then(|| world.body(document, operation));
        let plain = |path: String, body: Option<Value>| {
            vec![Self { method: operation.method.clone(), path, body, header: None }]
        };
        let with = |name: &str, value: Value| {
            let mut body = body.clone().unwrap_or_else(|| json!({}));
            body[name] = value;
            Some(body)
        };
        match place {
            Place::Field(name) => plain(path, with(name, json!(text))),
            Place::Item(name) => plain(path, with(name, json!([text]))),
            Place::Entry(name) => {
                let mut both = plain(path.clone(), with(name, json!({"NAME": text})));
                both.extend(plain(path, with(name, json!({text: "value"}))));
                both
            }
            // The limit of a head is tested elsewhere.
            Place::Path(_) | Place::Query(_) | Place::Header(_) if text.len() > 1000 => Vec::new(),
            Place::Path(name) => {
                let template = operation.path.replace(&format!("{{{name}}}"), &encoded(text));
                let operation = Operation {
                    path: template,
                    method: operation.method.clone(),
                    about: operation.about.clone(),
                };
                plain(operation.filled(world.ids), body)
            }
            Place::Query(name) => {
                let joint = if path.contains('?') { '&' } else { '?' };
                // Of a duplicate key the last one counts.
                plain(format!("{path}{joint}{name}={}", encoded(text)), body)
            }
            // A blank value would be empty, and so a valid request.
            Place::Header(_) if text.trim().is_empty() => Vec::new(),
            Place::Header(_) if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) => Vec::new(),
            Place::Header(name) => {
                let mut one = plain(path, body);
                one[0].header = Some((name.clone(), text.to_owned()));
                one
            }
        }
    }

    /// Returns the status of the response, or `None` if there was none.
    pub(crate) fn send(&self, client: &Client) -> Option<u16> {
        let body = self.body.as_ref().map(Value::to_string);
        let client = match &self.header {
            Some((name, value)) => client.with_header(name, value),
            None => client.clone(),
        };
        client.try_send(&self.method, &self.path, body.as_deref()).ok().map(|answer| answer.status)
    }
}

/// The source of valid values.
pub(crate) struct World<'a> {
    pub(crate) ids: &'a Ids,
    pub(crate) repository: &'a str,
    /// Differs for each request: some values must be unique.
    pub(crate) number: usize,
}

impl World<'_> {
    /// Returns a valid body with the required fields.
    fn body(&self, document: &Value, operation: &Operation) -> Value {
        let schema = body_schema(operation);
        let mut required = required(document, schema);
        // Most build packs require one.
        required.push("branch".to_owned());
        let fields = fields(document, schema).into_iter().filter(|(name, _)| required.contains(name));
        fields
            .map(|(name, schema)| (name.clone(), self.value(document, operation, &name, &schema)))
            .collect::<Map<_, _>>()
            .into()
    }

    fn value(&self, document: &Value, operation: &Operation, name: &str, schema: &Value) -> Value {
        let number = self.number;
        let of_deployment =
            ["/rollback", "/cancel-deployment"].iter().any(|end| operation.path.ends_with(end));
        match name {
            "id" if of_deployment => json!(self.ids.deployment),
            "id" | "user_id" => json!(self.ids.of(&operation.path, name)),
            "email" => json!(format!("hostile-{number}@example.com")),
            "name" | "username" => json!(format!("made-{number}")),
            "domain" => json!(format!("made-{number}.example.com")),
            "password" | "new_password" => json!("a password of their own"),
            "current_password" => json!(PASSWORD),
            "role" => json!("viewer"),
            "repository" => json!(self.repository),
            "webhook_url" => json!("https://hooks.example.com/services/T0/B0/x"),
            _ => {
                let schema = resolved(document, schema);
                let given = [&schema["examples"][0], &schema["enum"][0]];
                match given.into_iter().find(|given| !given.is_null()).unwrap_or(&Value::Null) {
                    Value::Null if is(&schema, "string") => json!("text"),
                    Value::Null if is(&schema, "integer") => json!(8080),
                    Value::Null if is(&schema, "boolean") => json!(false),
                    Value::Null => json!({}),
                    example => example.clone(),
                }
            }
        }
    }
}

fn body_schema(operation: &Operation) -> &Value {
    &operation.about["requestBody"]["content"]["application/json"]["schema"]
}

/// Returns the fields of an object, with those of its parts.
fn fields(document: &Value, schema: &Value) -> Vec<(String, Value)> {
    let schema = resolved(document, schema);
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let mut all: Vec<_> = parts.flat_map(|part| fields(document, part)).collect();
    let own = schema["properties"].as_object().into_iter().flatten();
    all.extend(own.map(|(name, schema)| (name.clone(), schema.clone())));
    all
}

fn required(document: &Value, schema: &Value) -> Vec<String> {
    let schema = resolved(document, schema);
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let mut all: Vec<_> = parts.flat_map(|part| required(document, part)).collect();
    all.extend(
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned),
    );
    all
}

/// Resolves a reference, and of several alternatives returns the one that is not null.
fn resolved(document: &Value, schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).cloned().unwrap_or_default();
        return resolved(document, &target);
    }
    let forms = schema["oneOf"].as_array().into_iter().flatten();
    match forms.clone().find(|form| form["type"] != "null") {
        Some(form) => resolved(document, form),
        None => schema.clone(),
    }
}

fn is(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|own| own == kind),
        own => own == kind,
    }
}

/// Percent-encodes every reserved byte of a URL.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_a_body_is_a_place() {
        let document = json!({"components": {"schemas": {
            "Part": {"properties": {"labels": {"type": ["array", "null"]}, "port": {"type": "integer"}}},
        }}});
        let schema = json!({"allOf": [
            {"$ref": "#/components/schemas/Part"},
            {"properties": {"name": {"type": ["string", "null"]}, "variables": {"type": "object"}}},
        ]});
        let about = json!({"requestBody": {"content": {"application/json": {"schema": schema}}}, "parameters": [
            {"name": "id", "in": "query", "required": true},
        ]});
        let operation = Operation { method: "PUT".to_owned(), path: "/a".to_owned(), about };
        let found = places(&document, &operation);
        let name = |name: &str| name.to_owned();
        let expected = [
            Place::Item(name("labels")),
            Place::Field(name("name")),
            Place::Entry(name("variables")),
            Place::Query(name("id")),
        ];
        assert_eq!(found, expected);
        let world =
            World { ids: &Ids { application: name("7"), ..Ids::default() }, repository: "", number: 1 };
        let both = Request::with(&document, &operation, &expected[2], "a b", &world);
        assert_eq!(both.len(), 2);
        let query = Request::with(&document, &operation, &expected[3], "a b", &world).remove(0);
        assert_eq!(query.path, "/a?id=7&id=a%20b");
    }
}
