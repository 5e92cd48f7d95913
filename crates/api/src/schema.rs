//! The schemas of the OpenAPI document.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::{ToSchema, openapi::RefOr};

/// Adds a schema to the document, and returns a reference to it.
pub(crate) type Register = fn(&mut Schemas) -> Value;

/// The schemas of the document, by name.
#[derive(Default)]
pub(crate) struct Schemas(BTreeMap<String, Value>);

impl Schemas {
    /// Adds a schema by its name, and returns a reference to it.
    pub(crate) fn add(&mut self, name: &str, schema: impl FnOnce(&mut Self) -> Value) -> Value {
        if !self.0.contains_key(name) {
            let schema = schema(self);
            self.0.insert(name.to_owned(), schema);
        }
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    /// Adds the schema of a view and of all that it contains, and returns the schema of a field with it.
    pub(crate) fn add_view<T: ToSchema>(&mut self) -> Value {
        let mut parts: Vec<(String, RefOr<utoipa::openapi::Schema>)> = Vec::new();
        T::schemas(&mut parts);
        for (name, part) in parts {
            self.add(&name, |_| in_json(&part));
        }
        let schema = in_json(&T::schema());
        if schema["allOf"].is_array() || schema["type"] == "object" && schema["properties"].is_object() {
            self.add(&T::name(), |_| schema)
        } else {
            schema
        }
    }

    /// Returns all of them.
    pub(crate) fn into_json(self) -> Value {
        json!(self.0)
    }
}

fn in_json(schema: &RefOr<utoipa::openapi::Schema>) -> Value {
    serde_json::to_value(schema).unwrap_or_default()
}

/// Returns the schema of a text with an example.
pub(crate) fn text(example: &str) -> Value {
    json!({"type": "string", "examples": [example]})
}

/// Returns the schema of a text of `min` to `max` characters.
pub(crate) fn text_of(min: usize, max: usize, example: &str) -> Value {
    let mut schema = json!({"type": "string", "maxLength": max, "examples": [example]});
    if min > 0 {
        schema["minLength"] = json!(min);
    }
    schema
}

/// The characters that no name has, as in `launchway_domain::value::is_invisible`.
const INVISIBLE: &str = r"\u0000-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff";

/// Returns the schema of a line of `min` to `max` visible characters.
pub(crate) fn line_of(min: usize, max: usize, example: &str) -> Value {
    let mut schema = text_of(min, max, example);
    schema["pattern"] = json!(match min {
        0 => format!("^[^{INVISIBLE}]*$"),
        _ => format!(r"^[^{INVISIBLE}]*[^\s{INVISIBLE}][^{INVISIBLE}]*$"),
    });
    schema
}

/// Returns the schema of a text of at most `max` characters that matches `pattern`.
pub(crate) fn short_text_like(pattern: &str, max: usize, example: &str) -> Value {
    let mut schema = text_like(pattern, example);
    schema["maxLength"] = json!(max);
    schema
}

/// Returns the schema of a text that matches `pattern`.
pub(crate) fn text_like(pattern: &str, example: &str) -> Value {
    json!({"type": "string", "pattern": pattern, "examples": [example]})
}

/// Returns the schema of a text in a format, such as `uuid`.
pub(crate) fn text_in(format: &str) -> Value {
    json!({"type": "string", "format": format})
}

/// Returns the schema of an id in a header. It is no format `uuid`: generated clients would send an object.
pub(crate) fn uuid_text() -> Value {
    text_like(
        "^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$",
        "01980000-0000-7000-8000-0000000000ff",
    )
}

/// Returns the schema of one of several names.
pub(crate) fn one_of(names: impl IntoIterator<Item = &'static str>) -> Value {
    json!({"type": "string", "enum": names.into_iter().collect::<Vec<_>>()})
}

/// Returns the schema of a whole number.
pub(crate) fn whole_number(min: i64, max: Option<i64>) -> Value {
    let mut schema = json!({"type": "integer", "minimum": min});
    if let Some(max) = max {
        schema["maximum"] = json!(max);
    }
    schema
}

/// Returns the schema of a list.
pub(crate) fn list_of(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

/// Returns the schema of an optional field: null counts as absent.
pub(crate) fn or_null(mut schema: Value) -> Value {
    match schema.get_mut("type") {
        Some(Value::Array(kinds)) => kinds.push(json!("null")),
        Some(kind) => *kind = json!([kind, "null"]),
        None => {}
    }
    if let Some(names) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        names.push(Value::Null);
    }
    schema
}
