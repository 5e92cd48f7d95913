//! The HTML of fields, and examples of their values.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::{escaped, members, prose, resolved};

/// The depth from which examples have empty relations, as responses do.
const RELATIONS: usize = 2;
/// The depth at which examples end.
const DEEPEST: usize = 4;
/// The length up to which the value of a rule is shown.
const LONGEST_SHOWN: usize = 60;

/// Writes a table of the fields of `schema`, if it has any; required ones come first.
pub(super) fn table(html: &mut String, document: &Value, schema: &Value) {
    let mut fields = fields(document, schema);
    if fields.is_empty() {
        return;
    }
    fields.sort_by_key(|(.., is_required)| !is_required);
    html.push_str("<div class=\"scroll\"><table><tr><th>field</th><th>type</th><th></th></tr>");
    for (name, field, is_required) in fields {
        let note = if is_required { "" } else { "Optional. " };
        let _ = write!(
            html,
            "<tr><td><code>{}</code></td><td>{}</td><td>{note}{}{}</td></tr>",
            escaped(name),
            linked_type(document, field),
            prose(field["description"].as_str().unwrap_or_default()),
            limits(field)
        );
    }
    html.push_str("</table></div>");
}

/// Writes an example of a value.
pub(super) fn example(html: &mut String, document: &Value, schema: &Value) {
    let sample = serde_json::to_string_pretty(&sample(document, schema, 0)).unwrap_or_default();
    let _ = write!(
        html,
        "<details><summary>Example</summary><pre><code>{}</code></pre></details>",
        escaped(&sample)
    );
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

/// Returns an example of a value of `schema`.
pub(super) fn sample(document: &Value, schema: &Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    for given in [&schema["example"], &schema["examples"][0], &schema["enum"][0]] {
        if !given.is_null() {
            return given.clone();
        }
    }
    if schema["$ref"].is_string() {
        return sample(document, resolved(document, schema), depth);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        if depth >= RELATIONS {
            return Value::Null;
        }
        let choice = choices.iter().find(|choice| choice["type"] != "null");
        return choice.map_or(Value::Null, |choice| sample(document, choice, depth + 1));
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or_default();
    match (kind, schema["format"].as_str()) {
        ("object", _) | ("", _) => {
            let fields = fields(document, schema).into_iter();
            let fields: Map<_, _> = fields
                .map(|(name, field, _)| (name.to_owned(), sample(document, field, depth + 1)))
                .collect();
            Value::Object(fields)
        }
        ("array", _) if depth >= RELATIONS && schema["items"]["$ref"].is_string() => json!([]),
        ("array", _) => json!([sample(document, &schema["items"], depth + 1)]),
        ("boolean", _) => json!(true),
        ("integer" | "number", _) => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        ("string", Some("uuid")) => json!("01980000-0000-7000-8000-000000000000"),
        ("string", Some("date-time")) => json!("2030-01-31T12:00:00Z"),
        ("string", Some("password")) => json!("correct horse battery"),
        ("string", _) => json!("…"),
        _ => Value::Null,
    }
}

/// Describes the constraints of a field beyond its type.
pub(super) fn limits(field: &Value) -> String {
    let names = field["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names: Vec<_> = names.map(|name| format!("<code>{}</code>", escaped(name))).collect();
    let one_of = if names.is_empty() { String::new() } else { format!(" One of {}.", names.join(", ")) };
    let rules = [
        ("minimum", "At least"),
        ("maximum", "At most"),
        ("minLength", "Characters: at least"),
        ("maxLength", "Characters: at most"),
        ("maxItems", "Items: at most"),
        ("pattern", "Of the form"),
    ];
    let value = |key: &str| field[key].as_str().map_or_else(|| field[key].to_string(), str::to_owned);
    // A long pattern explains nothing to people: the error message states the rule.
    let is_shown = |key: &str| !field[key].is_null() && value(key).len() <= LONGEST_SHOWN;
    let rules = rules
        .into_iter()
        .filter(|(key, _)| is_shown(key))
        .map(|(key, words)| format!(" {words} <code>{}</code>.", escaped(&value(key))));
    one_of + &rules.collect::<String>()
}

/// Returns the type of a field, with a link if the page describes it.
pub(super) fn linked_type(document: &Value, field: &Value) -> String {
    let name = escaped(&type_of(document, field));
    match name.rsplit(' ').next() {
        Some(last) if document["components"]["schemas"][last].is_object() => {
            name.replace(last, &format!("<a href=\"#type-{last}\">{last}</a>"))
        }
        _ => name,
    }
}

/// Returns the type of a field in words.
pub(super) fn type_of(document: &Value, field: &Value) -> String {
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
        Value::String(kind) => field["format"].as_str().unwrap_or(kind).to_owned(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    }
}
