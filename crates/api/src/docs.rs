//! The API reference: an HTML page of the OpenAPI document. It loads no external resources.

mod fields;
mod operation;

use std::{fmt::Write, sync::LazyLock};

use actix_web::{
    HttpResponse,
    http::header::{CONTENT_SECURITY_POLICY, ContentType, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};
use data_encoding::BASE64;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{endpoint::Endpoint, openapi::document};

const STYLE: &str = include_str!("docs/page.css");
const SCRIPT: &str = include_str!("docs/page.js");

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/docs", "docs_page", docs_page)
            .summary("Show the API reference")
            .responds("text/html", |_| json!({"type": "string"})),
    ]
}

async fn docs_page() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(ContentType::html())
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY.as_str()))
        .body(PAGE.as_str())
}

/// Allows the style and the script of the page by their hashes, and requests to this server.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| BASE64.encode(&Sha256::digest(text));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
});

/// Rendered once: the page never changes while the server runs.
static PAGE: LazyLock<String> = LazyLock::new(|| page(&document()));

fn page(document: &Value) -> String {
    let (mut navigation, mut operations) = (String::new(), String::new());
    for tag in document["tags"].as_array().into_iter().flatten() {
        let (name, about) = (text(&tag["name"]), text(&tag["description"]));
        let _ = write!(navigation, "<div data-group><h2>{name}</h2><ul>");
        let _ = write!(operations, "<h2 id=\"tag-{name}\">{name}</h2><p>{about}</p>");
        for (path, method, operation) in operations_of(document, &tag["name"]) {
            operation::link(&mut navigation, method, operation);
            operation::article(&mut operations, document, path, method, operation);
        }
        navigation.push_str("</ul></div>\n");
    }
    let mut types = String::new();
    navigation.push_str("<div data-group><h2>types</h2><ul>");
    for (name, schema) in members(&document["components"]["schemas"]) {
        // Envelopes are described above, and requests with their operations.
        if name.ends_with("Response") || schema["additionalProperties"] == false {
            continue;
        }
        let name = escaped(name);
        let _ = write!(navigation, "<li><a href=\"#type-{name}\">{name}</a></li>");
        let words = name.to_lowercase();
        let _ = write!(types, "<article id=\"type-{name}\" data-words=\"{words}\"><h3>{name}</h3>");
        fields::table(&mut types, document, schema);
        fields::example(&mut types, document, schema);
        types.push_str("</article>\n");
    }
    navigation.push_str("</ul></div>");
    include_str!("docs/page.html")
        .replace("{style}", STYLE)
        .replace("{script}", SCRIPT)
        .replace("{navigation}", &navigation)
        .replace("{operations}", &operations)
        .replace("{types}", &types)
}

/// Returns path, method and operation of each endpoint of a tag; those that others replace come last.
fn operations_of<'a>(document: &'a Value, tag: &Value) -> Vec<(&'a str, &'a str, &'a Value)> {
    let all = members(&document["paths"])
        .flat_map(|(path, item)| members(item).map(move |(method, operation)| (path, method, operation)));
    let mut found: Vec<_> = all.filter(|(.., operation)| operation["tags"][0] == *tag).collect();
    found.sort_by_key(|(.., operation)| operation["deprecated"] == true);
    found
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

/// Returns the text of a value for HTML.
fn text(value: &Value) -> String {
    escaped(value.as_str().unwrap_or_default())
}

/// Returns prose for HTML: what is between backticks is code, and it ends like a sentence.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let html: String = parts
        .map(|(number, part)| match number % 2 {
            0 => escaped(part),
            _ => format!("<code>{}</code>", escaped(part)),
        })
        .collect();
    if html.is_empty() || text.ends_with(['.', ':', '?']) { html } else { format!("{html}.") }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
