//! The OpenAPI document and its page, and the conformance of the server.

use std::{collections::BTreeSet, process::Stdio};

use launchway_testkit::server::{TestServer, command};
use serde_json::Value;

/// An operation of the document.
pub(crate) struct Documented {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) operation: Value,
}

impl Documented {
    /// Returns the path with values for its parameters, and the required query parameters.
    pub(crate) fn filled_path(&self) -> String {
        const SOMETHING: &str = "01980000-0000-7000-8000-0000000000ff";
        let mut path = self.path.clone();
        while let (Some(start), Some(end)) = (path.find('{'), path.find('}')) {
            path.replace_range(start..=end, SOMETHING);
        }
        for parameter in self.operation["parameters"].as_array().into_iter().flatten() {
            if parameter["in"] == "query" && parameter["required"] == true {
                let joint = if path.contains('?') { '&' } else { '?' };
                path.push_str(&format!("{joint}{}={SOMETHING}", parameter["name"].as_str().unwrap()));
            }
        }
        path
    }

    /// Returns method and path.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Returns whether the document has this status, and among its examples this error code.
    pub(crate) fn declares(&self, status: u16, code: &str) -> bool {
        let response = &self.operation["responses"][status.to_string()];
        let examples = &response["content"]["application/json"]["examples"];
        if status == 200 { !response.is_null() } else { !examples[code].is_null() }
    }

    /// Returns the schema that a reference leads to.
    pub(crate) fn resolved<'a>(&self, document: &'a Value, schema: &'a Value) -> &'a Value {
        let pointer = schema["$ref"].as_str().map(|reference| reference.trim_start_matches('#'));
        pointer.map_or(schema, |pointer| document.pointer(pointer).unwrap())
    }

    pub(crate) fn is_guarded(&self) -> bool {
        self.operation["security"].as_array().is_some_and(|schemes| !schemes.is_empty())
    }

    fn id(&self) -> &str {
        self.operation["operationId"].as_str().unwrap()
    }
}

/// Returns every operation of a document.
pub(crate) fn operations(document: &Value) -> Vec<Documented> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        item.as_object().unwrap().iter().map(|(method, operation)| Documented {
            method: method.to_uppercase(),
            path: path.clone(),
            operation: operation.clone(),
        })
    });
    operations.collect()
}

#[test]
fn server_and_command_line_print_the_same_document() {
    let server = TestServer::on_sqlite();
    let answer = server.client().get("/api/v1/openapi.json");
    assert_eq!((answer.status, answer.headers["content-type"].as_str()), (200, "application/json"));
    let document = answer.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."), "{}", document["openapi"]);
    assert_eq!(document, printed_document());
}

#[test]
fn operations_have_names_of_their_own_and_words_for_people() {
    let operations = operations(&printed_document());
    let ids: BTreeSet<_> = operations.iter().map(Documented::id).collect();
    assert_eq!(ids.len(), operations.len());
    for operation in &operations {
        let summary = operation.operation["summary"].as_str().unwrap_or_default();
        assert!(!summary.is_empty(), "{} {}", operation.method, operation.path);
        let responses = operation.operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("200") && responses.contains_key("503"), "{}", operation.path);
    }
}

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    let document = printed_document();
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[test]
fn the_operations_of_the_foundation_are_documented() {
    let operations = operations(&printed_document());
    let documented: BTreeSet<_> =
        operations.iter().map(|operation| format!("{} {}", operation.method, operation.path)).collect();
    for expected in [
        "GET /api/v1/auth/is-admin-registered",
        "POST /api/v1/auth/register",
        "POST /api/v1/auth/login",
        "POST /api/v1/auth/logout",
        "GET /api/v1/auth/tokens",
        "POST /api/v1/auth/tokens",
        "DELETE /api/v1/auth/tokens/{id}",
        "POST /api/v1/auth/two-factor/setup",
        "POST /api/v1/auth/two-factor/enable",
        "POST /api/v1/auth/two-factor/disable",
        "GET /api/v1/user",
        "PATCH /api/v1/user/name",
        "PATCH /api/v1/user/password",
        "GET /api/v1/user/organizations",
        "GET /api/v1/user/settings",
        "PATCH /api/v1/user/settings/auto-update",
        "PATCH /api/v1/user/settings/theme",
        "PATCH /api/v1/user/settings/font",
        "PATCH /api/v1/user/settings/language",
        "GET /health",
        "GET /api/v1/health",
        "GET /ready",
        "GET /metrics",
        "GET /docs",
        "GET /api/v1/openapi.json",
    ] {
        assert!(documented.contains(expected), "{expected} is not documented");
    }
}

#[test]
fn the_operations_of_deployments_are_documented() {
    let operations = operations(&printed_document());
    let documented: BTreeSet<_> =
        operations.iter().map(|operation| format!("{} {}", operation.method, operation.path)).collect();
    for expected in [
        "GET /api/v1/deploy/application",
        "POST /api/v1/deploy/application",
        "PUT /api/v1/deploy/application",
        "DELETE /api/v1/deploy/application",
        "GET /api/v1/deploy/applications",
        "POST /api/v1/deploy/application/redeploy",
        "POST /api/v1/deploy/application/restart",
        "POST /api/v1/deploy/application/stop",
        "POST /api/v1/deploy/application/domains",
        "DELETE /api/v1/deploy/application/domains",
        "GET /api/v1/proxy/ask",
        "POST /api/v1/deploy/application/rollback",
        "POST /api/v1/deploy/application/cancel-deployment",
        "GET /api/v1/deploy/application/deployments",
        "GET /api/v1/deploy/application/deployments/{deployment_id}",
        "GET /api/v1/deploy/application/deployments/{deployment_id}/logs",
        "GET /api/v1/deploy/application/deployments/{deployment_id}/logs/stream",
        "GET /api/v1/deploy/application/logs/{application_id}",
        "GET /api/v1/organizations/deploy-key",
        "POST /api/v1/organizations/deploy-key",
        "POST /api/v1/webhook",
        "POST /api/v1/api/v1/webhook",
        "GET /api/v1/deploy/application/webhook-secret",
        "POST /api/v1/deploy/application/webhook-secret",
    ] {
        assert!(documented.contains(expected), "{expected} is not documented");
    }
}

#[test]
fn only_these_operations_are_for_everyone() {
    let operations = operations(&printed_document());
    let open: Vec<_> = operations.iter().filter(|operation| !operation.is_guarded()).collect();
    for operation in open {
        let path = operation.path.as_str();
        let expected = [
            "/api/v1/auth/is-admin-registered",
            "/api/v1/auth/register",
            "/api/v1/auth/login",
            "/api/v1/auth/password/setup",
            "/api/v1/health",
            "/api/v1/openapi.json",
            "/api/v1/proxy/ask",
            "/api/v1/webhook",
            "/api/v1/api/v1/webhook",
            "/docs",
            "/health",
            "/metrics",
            "/ready",
        ];
        assert!(expected.contains(&path), "{} {path} is documented as open to everyone", operation.method);
    }
}

#[test]
fn authentication_is_checked_before_the_body_is_read() {
    let server = TestServer::on_sqlite();
    server.admin();
    let guarded: Vec<_> =
        operations(&printed_document()).into_iter().filter(Documented::is_guarded).collect();
    assert!(guarded.len() >= 15);
    for operation in guarded {
        let (method, path) = (&operation.method, operation.filled_path());
        for token in ["", "authorization: Bearer garbage\r\n"] {
            // A body is announced and never sent: a server that waits for it does not answer.
            let mut connection = server.connect();
            connection.send(format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{token}content-length: 100\r\n\r\n"
            ));
            let answer = connection.answer();
            answer.failure(401, "unauthenticated");
            assert_eq!(answer.headers["www-authenticate"], "Bearer", "{method} {path}");
        }
    }
}

#[test]
fn the_page_names_every_path_and_needs_nothing_from_elsewhere() {
    let server = TestServer::on_sqlite();
    let answer = server.client().get("/docs");
    assert_eq!((answer.status, answer.headers["content-type"].as_str()), (200, "text/html; charset=utf-8"));
    assert!(answer.headers["content-security-policy"].contains("default-src 'none'"));
    let html = &answer.text;
    for operation in operations(&printed_document()) {
        assert!(html.contains(&format!("<code>{}</code>", operation.path)), "{}", operation.path);
    }
    for loading in ["src=", "url(", "@import", "<link", "<iframe", "<object", "<embed", "srcset"] {
        assert!(!html.contains(loading), "the page has {loading}");
    }
    for link in html.split("href=").skip(1) {
        let target = link.trim_start_matches(['"', '\'']);
        let is_here = target.starts_with('#') || (target.starts_with('/') && !target.starts_with("//"));
        assert!(is_here, "{}", &target[..40]);
    }
}

/// Returns the output of `launchway openapi`.
pub(crate) fn printed_document() -> Value {
    let nowhere = tempfile::tempdir().unwrap();
    let output = command(nowhere.path(), &[]).arg("openapi").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(nowhere.path().read_dir().unwrap().count(), 0);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get("$ref").and_then(Value::as_str).map(str::to_owned));
            object.values().for_each(|value| collect_references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_references(value, found)),
        _ => {}
    }
}
