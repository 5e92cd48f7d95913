//! An HTML page of the OpenAPI document. It loads no external resources.

use std::{fmt::Write, sync::LazyLock};

use actix_web::{
    HttpResponse,
    http::header::{CONTENT_SECURITY_POLICY, ContentType, X_CONTENT_TYPE_OPTIONS},
};
use serde_json::Value;

use crate::{endpoint::Endpoint, openapi::document};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/docs", "docs_page", docs_page)
            .summary("Show the API reference")
            .responds("text/html", |_| serde_json::json!({"type": "string"})),
    ]
}

async fn docs_page() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(ContentType::html())
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ))
        .body(PAGE.as_str())
}

/// Rendered once: the page never changes while the server runs.
static PAGE: LazyLock<String> = LazyLock::new(page);

fn page() -> String {
    let document = document();
    let mut html = String::from(include_str!("docs/head.html"));
    for (path, item) in members(&document["paths"]) {
        for (method, operation) in members(item) {
            operation_section(&mut html, &document, path, method, operation);
        }
    }
    html.push_str("<h1>Types</h1>\n");
    for (name, schema) in members(&document["components"]["schemas"]) {
        // Envelopes are described above, and requests with their operations.
        if !name.ends_with("Response") && !fields(&document, schema).is_empty() {
            let _ = write!(html, "<section id=\"{}\">", escaped(name));
            table(&mut html, &document, &escaped(name), schema);
            html.push_str("</section>\n");
        }
    }
    html.push_str("</main></body></html>\n");
    html
}

fn operation_section(html: &mut String, document: &Value, path: &str, method: &str, operation: &Value) {
    let text = |key: &str| escaped(operation[key].as_str().unwrap_or_default());
    let guarded = if operation["security"] != Value::Array(Vec::new()) {
        "<span class=guarded>needs a token</span>"
    } else {
        ""
    };
    let _ = write!(
        html,
        "<section><h2><code class={method}>{}</code> <code>{}</code> {guarded}</h2><p><b>{}</b></p><p>{}</p>",
        method.to_uppercase(),
        escaped(path),
        text("summary"),
        text("description"),
    );
    parameters(html, &operation["parameters"]);
    table(html, document, "Request body", &operation["requestBody"]["content"]["application/json"]["schema"]);
    let answer = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    table(html, document, "Data of the answer", &resolved(document, answer)["properties"]["data"]);
    html.push_str("</section>\n");
}

/// Writes a table of the path, query and header parameters, if there are any.
fn parameters(html: &mut String, parameters: &Value) {
    let Some(parameters) = parameters.as_array().filter(|parameters| !parameters.is_empty()) else { return };
    html.push_str("<h3>Parameters</h3><table><tr><th>name</th><th>in</th><th></th></tr>");
    for parameter in parameters {
        let text = |key: &str| escaped(parameter[key].as_str().unwrap_or_default());
        let note = if parameter["required"] == true { "" } else { "optional. " };
        let _ = write!(
            html,
            "<tr><td><code>{}</code></td><td>{}</td><td>{note}{}</td></tr>",
            text("name"),
            text("in"),
            text("description")
        );
    }
    html.push_str("</table>");
}

/// Describes the constraints of a field beyond its type.
fn limits(field: &Value) -> String {
    [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "characters: at least"),
        ("maxLength", "characters: at most"),
        ("pattern", "of the form"),
        ("example", "such as"),
    ]
    .into_iter()
    .filter(|(key, _)| !field[*key].is_null())
    .map(|(key, words)| {
        let value = field[key].as_str().map_or_else(|| field[key].to_string(), str::to_owned);
        format!(" {words} <code>{}</code>.", escaped(&value))
    })
    .collect()
}

/// Writes a table of the fields of `schema`, if it has any.
fn table(html: &mut String, document: &Value, title: &str, schema: &Value) {
    let schema = resolved(document, schema);
    let schema = if schema["items"].is_object() { resolved(document, &schema["items"]) } else { schema };
    let fields = fields(document, schema);
    if fields.is_empty() {
        return;
    }
    let _ = write!(html, "<h3>{title}</h3><table><tr><th>field</th><th>type</th><th></th></tr>");
    for (name, field, is_required) in fields {
        let note = if is_required { "" } else { "optional. " };
        let about = field["description"].as_str().unwrap_or_default();
        let _ = write!(
            html,
            "<tr><td><code>{}</code></td><td>{}</td><td>{note}{}{}</td></tr>",
            escaped(name),
            escaped(&type_of(document, field)),
            escaped(about),
            limits(field)
        );
    }
    html.push_str("</table>");
}

/// Returns the fields of an object, including those of its `allOf` parts.
fn fields<'a>(document: &'a Value, schema: &'a Value) -> Vec<(&'a str, &'a Value, bool)> {
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
    };
    let own = members(&schema["properties"]).map(|(name, field)| (name, field, required(name)));
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let inherited = parts.flat_map(|part| fields(document, resolved(document, part)));
    inherited.chain(own).collect()
}

fn type_of(document: &Value, field: &Value) -> String {
    let name = |reference: &str| reference.rsplit('/').next().unwrap_or_default().to_owned();
    if let Some(reference) = field["$ref"].as_str() {
        let target = resolved(document, field);
        return if target["type"] == "string" { "string".to_owned() } else { name(reference) };
    }
    if let Some(choices) = field["oneOf"].as_array() {
        let choices: Vec<_> = choices.iter().map(|choice| type_of(document, choice)).collect();
        return choices.join(" or ");
    }
    match &field["type"] {
        Value::String(kind) if kind == "array" => format!("array of {}", type_of(document, &field["items"])),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    }
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        Some(pointer) => document.pointer(pointer).unwrap_or(schema),
        None => schema,
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
