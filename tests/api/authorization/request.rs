//! A request for an operation, made from its description.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Map, Value, json};

use crate::openapi::Documented;

/// The id of nothing.
const NOTHING: &str = "01a1dd03-0000-7000-8000-000000000000";

/// The bodies of which the schema does not say all.
const BODIES: &[(&str, &str)] = &[
    (
        "POST /api/v1/deploy/application",
        r#"{"name": "shop", "repository": "registry.example/shop", "port": 80, "environment": "production",
            "build_pack": "image"}"#,
    ),
    ("PATCH /api/v1/user/settings/font", r#"{"font_size": 20}"#),
];

/// A request that is valid, and names no existing resource.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Option<String>,
}

impl Request {
    pub(crate) fn new(document: &Value, operation: &Documented) -> Self {
        let (mut path, mut query) = (operation.path.clone(), Vec::new());
        for parameter in operation.operation["parameters"].as_array().into_iter().flatten() {
            let (name, value) = (parameter["name"].as_str().unwrap(), text(&sample(&parameter["schema"])));
            if parameter["in"] == "path" {
                path = path.replace(&format!("{{{name}}}"), &value);
            } else if parameter["in"] == "query" && parameter["required"] == true {
                query.push(format!("{name}={value}"));
            }
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let given = BODIES.iter().find(|(name, _)| *name == operation.name());
        let schema = &operation.operation["requestBody"]["content"]["application/json"]["schema"];
        let body = match given {
            Some((_, body)) => Some((*body).to_owned()),
            None if schema.is_null() => None,
            None => Some(body(operation.resolved(document, schema)).to_string()),
        };
        Self { method: operation.method.clone(), path, body }
    }
}

/// Returns an object with the required fields.
fn body(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let fields: Map<_, _> =
        required.map(|name| (name.to_owned(), sample(&schema["properties"][name]))).collect();
    fields.into()
}

fn sample(schema: &Value) -> Value {
    static UNIQUE: AtomicU32 = AtomicU32::new(0);
    if let Some(name) = schema["enum"].get(0) {
        return name.clone();
    }
    match (schema["format"].as_str(), schema["type"].as_str()) {
        (Some("uuid"), _) => json!(NOTHING),
        (Some("email"), _) => {
            json!(format!("somebody-{}@example.com", UNIQUE.fetch_add(1, Ordering::Relaxed)))
        }
        (Some("password"), _) => json!("a long passphrase"),
        (_, Some("integer")) => schema["minimum"].clone(),
        (_, Some("boolean")) => json!(true),
        (_, Some("array")) => json!([]),
        (_, Some("object")) => json!({}),
        _ => schema["examples"].get(0).cloned().unwrap_or_else(|| json!("something")),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
