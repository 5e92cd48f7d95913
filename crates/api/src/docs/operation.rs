//! The HTML of an operation.

use std::fmt::Write;

use serde_json::Value;

use super::{escaped, fields, members, prose, resolved, text};

/// Writes the link of the navigation.
pub(super) fn link(html: &mut String, method: &str, operation: &Value) {
    let _ = write!(
        html,
        "<li><a href=\"#{}\"><span class=\"method {method}\">{}</span><span>{}</span></a></li>",
        text(&operation["operationId"]),
        method.to_uppercase(),
        text(&operation["summary"]),
    );
}

/// Writes the article.
pub(super) fn article(html: &mut String, document: &Value, path: &str, method: &str, operation: &Value) {
    let (id, summary) = (text(&operation["operationId"]), text(&operation["summary"]));
    let command = operation["x-cli"].as_str().unwrap_or_default();
    let words = escaped(&format!("{method} {path} {id} {summary} {command}").to_lowercase());
    let class = if operation["deprecated"] == true { " class=\"deprecated\"" } else { "" };
    let _ = write!(
        html,
        "<article id=\"{id}\" data-words=\"{words}\"{class}><h3><span class=\"method {method}\">{}</span> \
         <code>{}</code> <a class=\"anchor\" href=\"#{id}\" aria-label=\"Link to {summary}\">#</a></h3>\
         <p><b>{summary}</b></p>",
        method.to_uppercase(),
        escaped(path),
    );
    if operation["deprecated"] == true {
        html.push_str("<p><span class=\"note\">deprecated</span></p>");
    }
    for paragraph in operation["description"].as_str().unwrap_or_default().split("\n\n") {
        let _ = write!(html, "<p>{}</p>", prose(paragraph));
    }
    let body = resolved(document, &operation["requestBody"]["content"]["application/json"]["schema"]);
    parameters(html, document, &operation["parameters"]);
    if body["properties"].as_object().is_some_and(|fields| !fields.is_empty()) {
        html.push_str("<h4>Body</h4>");
        fields::table(html, document, body);
    }
    let example = fields::sample(document, body, 0);
    let has_body = body["properties"].is_object();
    let _ = write!(
        html,
        "<h4>Example</h4><pre><code>{}</code></pre>",
        escaped(&curl(path, method, operation, has_body.then_some(&example)))
    );
    if !command.is_empty() {
        let _ = write!(html, "<p>With the client:</p><pre><code>{}</code></pre>", escaped(command));
    }
    answer(html, document, operation);
    failures(html, operation);
    form(html, path, method, operation, has_body.then_some(&example));
    html.push_str("</article>\n");
}

/// Writes a table of the path, query and header parameters, if there are any; required ones come first.
fn parameters(html: &mut String, document: &Value, parameters: &Value) {
    let Some(parameters) = parameters.as_array().filter(|parameters| !parameters.is_empty()) else { return };
    html.push_str("<h4>Parameters</h4><div class=\"scroll\"><table><tr><th>name</th><th>in</th><th>type</th><th></th></tr>");
    let mut parameters: Vec<_> = parameters.iter().collect();
    parameters.sort_by_key(|parameter| parameter["required"] != true);
    for parameter in parameters {
        let note = if parameter["required"] == true { "" } else { "Optional. " };
        let _ = write!(
            html,
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{note}{}{}</td></tr>",
            text(&parameter["name"]),
            text(&parameter["in"]),
            escaped(&fields::type_of(document, &parameter["schema"])),
            prose(parameter["description"].as_str().unwrap_or_default()),
            fields::limits(&parameter["schema"]),
        );
    }
    html.push_str("</table></div>");
}

/// Returns the command that sends the request.
fn curl(path: &str, method: &str, operation: &Value, body: Option<&Value>) -> String {
    let mut command = match method {
        "get" => format!("curl -s \"$LAUNCHWAY{path}"),
        _ => format!("curl -s -X {} \"$LAUNCHWAY{path}", method.to_uppercase()),
    };
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let required = parameters.filter(|parameter| parameter["in"] == "query" && parameter["required"] == true);
    for (number, parameter) in required.enumerate() {
        let (joint, name) =
            (if number == 0 { '?' } else { '&' }, parameter["name"].as_str().unwrap_or_default());
        let _ = write!(command, "{joint}{name}=…");
    }
    command.push('"');
    if operation["security"].as_array().is_some_and(|schemes| !schemes.is_empty()) {
        command.push_str(" \\\n  -H \"Authorization: Bearer $TOKEN\"");
    }
    if let Some(body) = body.filter(|body| body.as_object().is_some_and(|fields| !fields.is_empty())) {
        let _ = write!(command, " \\\n  -d '{body}'");
    }
    command
}

/// Writes the payload of a success.
fn answer(html: &mut String, document: &Value, operation: &Value) {
    for (content_type, content) in members(&operation["responses"]["200"]["content"]) {
        let schema = resolved(document, &content["schema"]);
        let _ = write!(html, "<h4>Response</h4><p><code>200</code> {}", escaped(content_type));
        let data =
            if schema["properties"]["data"].is_object() { &schema["properties"]["data"] } else { schema };
        let _ = write!(html, ", data: {}</p>", fields::linked_type(document, data));
        if content_type == "application/json" {
            fields::example(html, document, schema);
        }
    }
}

/// Writes the error codes.
fn failures(html: &mut String, operation: &Value) {
    html.push_str("<details><summary>Errors</summary><div class=\"scroll\"><table><tr><th>status</th><th>code</th><th>such as</th></tr>");
    for (status, response) in members(&operation["responses"]) {
        for (code, example) in members(&response["content"]["application/json"]["examples"]) {
            let message = text(&example["value"]["message"]);
            let _ = write!(html, "<tr><td>{status}</td><td><code>{code}</code></td><td>{message}</td></tr>");
        }
    }
    html.push_str("</table></div></details>");
}

/// Writes the form that sends the request.
fn form(html: &mut String, path: &str, method: &str, operation: &Value, body: Option<&Value>) {
    let id = text(&operation["operationId"]);
    let _ = write!(
        html,
        "<details><summary>Send a request</summary><form data-path=\"{}\" data-method=\"{}\">",
        escaped(path),
        method.to_uppercase(),
    );
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        if parameter["in"] == "header" {
            continue;
        }
        let (name, place) = (text(&parameter["name"]), text(&parameter["in"]));
        let _ = write!(
            html,
            "<label for=\"{id}-{name}\">{name}</label>\
             <input id=\"{id}-{name}\" name=\"{name}\" data-in=\"{place}\" autocomplete=\"off\">",
        );
    }
    if let Some(body) = body {
        let body = serde_json::to_string_pretty(body).unwrap_or_default();
        let _ = write!(
            html,
            "<label for=\"{id}-body\">Body</label><textarea id=\"{id}-body\" name=\"body\" spellcheck=\"false\">{}</textarea>",
            escaped(&body)
        );
    }
    html.push_str(
        "<p><button>Send</button></p><pre hidden tabindex=\"0\" role=\"status\"></pre></form></details>",
    );
}
