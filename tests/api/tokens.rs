//! API tokens: access for programs, to one organization, until it is revoked.

use std::time::{Duration, SystemTime};

use launchway_domain::clock::Timestamp;
use launchway_testkit::{
    client::Client,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::{Value, json};

use crate::{
    registration::every_permission,
    shapes::{expect_id, expect_moment},
    wait::{at_once, until},
};

const TOKENS: &str = "/api/v1/auth/tokens";

super::on_both_databases!(
    a_token_is_shown_once_and_listed_without_its_text,
    a_revoked_token_is_refused_on_the_very_next_request,
    a_name_is_free_again_once_its_token_is_revoked,
    of_equal_names_at_the_same_moment_one_wins,
    tokens_of_others_are_not_found,
);

fn a_token_is_shown_once_and_listed_without_its_text(server: TestServer) {
    let admin = server.admin();
    assert_eq!(admin.get(TOKENS).success(), json!([]));
    let end = moment(Duration::from_secs(86_400));
    let first = admin.post(
        TOKENS,
        &json!({"name": " ci ", "permissions": ["deploy:read", "audit:read"], "expires_at": end}),
    );
    let first = first.success();
    let expected = json!({
        "id": first["id"], "name": "ci", "token": first["token"],
        "permissions": ["deploy:read", "audit:read"], "expires_at": end, "created_at": first["created_at"],
    });
    assert_eq!(first, expected);
    expect_id(&first["id"]);
    expect_moment(&first["created_at"]);

    let second = admin.post(TOKENS, &json!({"name": "all"})).success();
    assert_eq!(second["permissions"], json!(every_permission()));
    assert_eq!(second["expires_at"], Value::Null);

    let answer = admin.get(TOKENS);
    let without_text = |token: &Value| {
        let mut token = token.clone();
        token.as_object_mut().unwrap().remove("token");
        token
    };
    assert_eq!(answer.success(), json!([without_text(&second), without_text(&first)]));
    for token in [&first, &second] {
        let text = token["token"].as_str().unwrap();
        assert!(!answer.text.contains(text));
        let program = server.client().with_token(text);
        assert_eq!(program.get("/api/v1/user").success(), admin.get("/api/v1/user").success());
        program.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
    }
}

fn a_revoked_token_is_refused_on_the_very_next_request(server: TestServer) {
    let admin = server.admin();
    let (id, program) = issued(&server, &admin, "ci");
    let (_, other) = issued(&server, &admin, "other");
    program.get("/api/v1/user").success();
    let answer = admin.delete(&format!("{TOKENS}/{id}"));
    assert_eq!(answer.success(), Value::Null);
    assert_eq!(answer.message(), "Token deleted successfully");
    program.get("/api/v1/user").failure(401, "unauthenticated");
    other.get("/api/v1/user").success();
    admin.delete(&format!("{TOKENS}/{id}")).failure(404, "not_found");
    assert_eq!(admin.get(TOKENS).success().as_array().unwrap().len(), 1);
}

fn a_name_is_free_again_once_its_token_is_revoked(server: TestServer) {
    let admin = server.admin();
    let (id, _) = issued(&server, &admin, "ci");
    let message = admin.post(TOKENS, &json!({"name": "ci"})).failure(409, "conflict");
    assert!(message.contains("`ci`"), "{message}");
    admin.delete(&format!("{TOKENS}/{id}")).success();
    issued(&server, &admin, "ci");
}

fn of_equal_names_at_the_same_moment_one_wins(server: TestServer) {
    let admin = server.admin();
    let answers = at_once(8, |_| admin.post(TOKENS, &json!({"name": "ci"})));
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(won.len(), 1);
    for answer in lost {
        answer.failure(409, "conflict");
    }
}

fn tokens_of_others_are_not_found(server: TestServer) {
    let admin = server.admin();
    let (id, program) = issued(&server, &admin, "ci");
    let grace = server.log_in(server.other_tenant("admin").email, ADMIN_PASSWORD);
    assert_eq!(grace.get(TOKENS).success(), json!([]));
    let foreign = grace.delete(&format!("{TOKENS}/{id}"));
    foreign.failure(404, "not_found");
    let unknown = grace.delete(&format!("{TOKENS}/01980000-0000-7000-8000-0000000000ff"));
    assert_eq!((unknown.status, &unknown.text), (foreign.status, &foreign.text));
    program.get("/api/v1/user").success();
    // Two users may use the same name.
    issued(&server, &grace, "ci");
}

/// Another process revokes them in PostgreSQL, as an offline command does.
#[test]
fn a_token_revoked_in_postgres_is_refused_at_once() {
    let server = TestServer::on_postgres();
    let admin = server.admin();
    let (id, program) = issued(&server, &admin, "ci");
    for _ in 0..3 {
        program.get("/api/v1/user").success();
    }
    server.execute(&format!("UPDATE api_tokens SET revoked_at = now() WHERE id = '{id}'"));
    program.get("/api/v1/user").failure(401, "unauthenticated");

    let session = server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    session.get("/api/v1/user").success();
    server.execute("UPDATE sessions SET ended_at = now()");
    session.get("/api/v1/user").failure(401, "unauthenticated");
}

#[test]
fn a_token_ends_by_itself() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let soon = moment(Duration::from_secs(1));
    let issued = admin.post(TOKENS, &json!({"name": "brief", "expires_at": soon})).success();
    let program = server.client().with_token(issued["token"].as_str().unwrap());
    let refusal = until("the end of the token", || {
        let answer = program.get("/api/v1/user");
        (answer.status != 200).then_some(answer)
    });
    refusal.failure(401, "unauthenticated");
}

#[test]
fn an_end_that_is_no_moment_to_come_is_refused() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for end in
        ["2020-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "tomorrow", "2030-01-01", "2030-13-01T00:00:00Z"]
    {
        let answer = admin.post(TOKENS, &json!({"name": "ci", "expires_at": end}));
        let message = answer.failure(400, "validation_failed");
        assert!(message.starts_with("expires_at must be"), "{end}: {message}");
    }
    admin.post(TOKENS, &json!({"name": "ci", "expires_at": 1_893_456_000})).failure(400, "validation_failed");
    // Other offsets are understood, and shown in UTC.
    let token =
        admin.post(TOKENS, &json!({"name": "ci", "expires_at": "2999-01-01T02:00:00.5+02:00"})).success();
    assert_eq!(token["expires_at"], "2999-01-01T00:00:00.500000Z");
}

#[test]
fn a_name_has_1_to_50_characters() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for name in ["n", &"ñ".repeat(50)] {
        assert_eq!(admin.post(TOKENS, &json!({"name": name})).success()["name"], name);
    }
    for name in [json!(""), json!("  "), json!("n".repeat(51)), json!("a\tb"), json!(null), json!(3)] {
        let message = admin.post(TOKENS, &json!({"name": name})).failure(400, "validation_failed");
        assert!(message.starts_with("name "), "{message}");
    }
}

#[test]
fn a_permission_that_does_not_exist_is_refused_by_name() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for name in ["deploy:fly", "deploy", "*:read", "Deploy:Read", ""] {
        let body = json!({"name": "ci", "permissions": ["deploy:read", name]});
        let message = admin.post(TOKENS, &body).failure(400, "validation_failed");
        assert!(message.starts_with("permissions") && message.contains(&format!("`{name}`")), "{message}");
    }
    for permissions in [json!("deploy:read"), json!([1]), json!({"deploy": "read"})] {
        let body = json!({"name": "ci", "permissions": permissions});
        let message = admin.post(TOKENS, &body).failure(400, "validation_failed");
        assert!(message.starts_with("permissions must be an array of strings"), "{message}");
    }
    assert_eq!(admin.get(TOKENS).success(), json!([]));
}

#[test]
fn nobody_gives_a_token_more_than_they_have() {
    let server = TestServer::on_sqlite();
    server.admin();
    let viewer = server.log_in(server.other_tenant("viewer").email, ADMIN_PASSWORD);
    let body = json!({"name": "ci", "permissions": ["deploy:read", "deploy:create", "audit:read"]});
    let message = viewer.post(TOKENS, &body).failure(400, "validation_failed");
    assert!(message.contains("`deploy:create`, `audit:read`"), "{message}");
    assert!(!message.contains("`deploy:read`"), "{message}");
    let token = viewer.post(TOKENS, &json!({"name": "ci"})).success();
    let expected =
        ["user", "organization", "deploy", "extension", "notification"].map(|of| format!("{of}:read"));
    assert_eq!(token["permissions"], json!(expected));
}

#[test]
fn an_invalid_id_is_distinguished_from_an_unknown_one() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for id in ["ci", "123", "01980000-0000-7000-8000-00000000000", "%00"] {
        admin.delete(&format!("{TOKENS}/{id}")).failure(400, "invalid_id");
    }
    admin.delete(&format!("{TOKENS}/01980000-0000-7000-8000-0000000000ff")).failure(404, "not_found");
}

#[test]
fn every_unknown_permission_is_named_at_once() {
    let server = TestServer::on_sqlite();
    let spec = json!({"name": "ci", "permissions": ["deploy:write", "deploy:read", "all"]});
    let message = server.admin().post(TOKENS, &spec).failure(400, "validation_failed");
    assert!(message.ends_with("unknown: `deploy:write`, `all`"), "{message}");
}

#[test]
fn a_token_cannot_manage_tokens_passwords_or_second_factors() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let (id, program) = issued(&server, &admin, "ci");
    program.get(TOKENS).failure(403, "forbidden");
    program.delete(&format!("{TOKENS}/{id}")).failure(403, "forbidden");
    for path in [
        TOKENS,
        "/api/v1/auth/logout",
        "/api/v1/auth/two-factor/setup",
        "/api/v1/auth/two-factor/enable",
        "/api/v1/auth/two-factor/disable",
    ] {
        // Whatever the body is: it is not even read.
        for body in ["{}", "{", r#"{"name": "x", "code": "123456"}"#] {
            program.send("POST", path, Some(body)).failure(403, "forbidden");
        }
    }
    let change = json!({"current_password": ADMIN_PASSWORD, "new_password": "another good one"});
    program.patch("/api/v1/user/password", &change).failure(403, "forbidden");
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
}

#[test]
fn a_token_works_in_its_own_organization_only() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let (_, program) = issued(&server, &admin, "ci");
    let own = admin.get("/api/v1/user").success()["organizations"][0]["id"].as_str().unwrap().to_owned();
    program.with_header("x-organization-id", &own).get("/api/v1/user").success();
    let other = server.other_tenant("admin").organization_id;
    let refused = program.with_header("x-organization-id", other).get("/api/v1/user");
    refused.failure(403, "forbidden");
    let unknown = "01980000-0000-7000-8000-0000000000ff";
    assert_eq!(program.with_header("x-organization-id", unknown).get("/api/v1/user").text, refused.text);
}

/// Returns the id of a new token, and a client with it.
fn issued(server: &TestServer, owner: &Client, name: &str) -> (String, Client) {
    let token = owner.post(TOKENS, &json!({"name": name})).success();
    let program = server.client().with_token(token["token"].as_str().unwrap());
    (token["id"].as_str().unwrap().to_owned(), program)
}

/// A future timestamp, in the format of the API.
fn moment(from_now: Duration) -> String {
    let moment = Timestamp::from(SystemTime::now() + from_now);
    moment.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
