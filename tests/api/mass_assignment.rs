//! Requests cannot change what they have no field for.

use launchway_testkit::server::TestServer;
use serde_json::{Value, json};

use crate::openapi::{Documented, operations, printed_document};

#[test]
fn no_write_takes_a_field_that_is_not_its_own() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let before = [admin.get("/api/v1/user").success(), admin.get("/api/v1/user/settings").success()];
    let document = printed_document();
    let forbidden = [
        ("id", json!("01980000-0000-7000-8000-0000000000ff")),
        ("organization_id", json!("01980000-0000-7000-8000-0000000000ff")),
        ("user_id", json!("01980000-0000-7000-8000-0000000000ff")),
        ("role", json!("admin")),
        ("roles", json!(["admin"])),
        ("type", json!("admin")),
        ("is_verified", json!(true)),
        ("two_factor_enabled", json!(false)),
        ("two_factor_secret", json!("")),
        ("status", json!("running")),
        ("created_at", json!("2020-01-01T00:00:00.000000Z")),
        ("deleted_at", Value::Null),
        ("__proto__", json!({"type": "admin"})),
    ];
    let mut tried = 0;
    for operation in operations(&document).iter().filter(|operation| operation.method != "GET") {
        let Some(own) = fields(&document, operation) else { continue };
        for (name, value) in forbidden.iter().filter(|(name, _)| !own.contains(&(*name).to_owned())) {
            let mut body = json!({});
            body[*name] = value.clone();
            let answer = admin.send(&operation.method, &operation.filled_path(), Some(&body.to_string()));
            let message = answer.failure(400, "unknown_field");
            assert!(message.contains(&format!("{name} is not a field of this request")), "{message}");
            tried += 1;
        }
    }
    assert!(tried >= 10 * forbidden.len(), "only {tried} were tried");
    let after = [admin.get("/api/v1/user").success(), admin.get("/api/v1/user/settings").success()];
    assert_eq!(after, before);
}

#[test]
fn what_is_documented_as_required_is_and_nothing_else() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let document = printed_document();
    let (mut missing, mut optional) = (0, 0);
    for operation in operations(&document).iter().filter(|operation| operation.method != "GET") {
        let Some(own) = fields(&document, operation) else { continue };
        let required = required(&document, operation);
        let answer = admin.send(&operation.method, &operation.filled_path(), Some("{}"));
        let message = answer.message();
        for name in own {
            let is_missed = message.split("; ").any(|problem| problem == format!("{name} is required"));
            assert_eq!(
                is_missed,
                required.contains(&name),
                "{} {}: {message}",
                operation.method,
                operation.path
            );
            if is_missed { missing += 1 } else { optional += 1 }
        }
    }
    assert!(missing >= 20 && optional >= 20, "{missing} required, {optional} optional");
}

#[test]
fn a_field_too_many_spoils_an_otherwise_good_request() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let body = json!({"name": "eve", "type": "admin", "email": "eve@example.com"});
    admin.patch("/api/v1/user/name", &body).failure(400, "unknown_field");
    let user = admin.get("/api/v1/user").success();
    assert_eq!((&user["username"], &user["email"]), (&json!("ada"), &json!("ada@example.com")));
    let body = json!({"name": "ci", "organization_id": "01980000-0000-7000-8000-0000000000ff"});
    admin.post("/api/v1/auth/tokens", &body).failure(400, "unknown_field");
    assert_eq!(admin.get("/api/v1/auth/tokens").success(), json!([]));
}

/// Returns the names of the fields of an operation's body; `None` if it has no body.
fn fields(document: &Value, operation: &Documented) -> Option<Vec<String>> {
    let schema = &operation.operation["requestBody"]["content"]["application/json"]["schema"];
    let mut names = Vec::new();
    collect_fields(document, schema, &mut names);
    (!names.is_empty()).then_some(names)
}

/// Returns the required ones, by the document.
fn required(document: &Value, operation: &Documented) -> Vec<String> {
    let schema = &operation.operation["requestBody"]["content"]["application/json"]["schema"];
    let mut names = Vec::new();
    collect_required(document, schema, &mut names);
    names
}

fn collect_required(document: &Value, schema: &Value, names: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        collect_required(document, document.pointer(reference.trim_start_matches('#')).unwrap(), names);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        collect_required(document, part, names);
    }
    let own = schema["required"].as_array().into_iter().flatten();
    names.extend(own.map(|name| name.as_str().unwrap().to_owned()));
}

fn collect_fields(document: &Value, schema: &Value, names: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        collect_fields(document, document.pointer(reference.trim_start_matches('#')).unwrap(), names);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        collect_fields(document, part, names);
    }
    names.extend(schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys().cloned()));
}
