//! Login, logout, and valid tokens.

use std::time::{Duration, SystemTime};

use launchway_domain::clock::Timestamp;
use launchway_testkit::{
    client::Answer,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::{Value, json};

use crate::shapes::{expect_moment, expect_user_with_memberships};

const LOGIN: &str = "/api/v1/auth/login";

super::on_both_databases!(
    a_login_answers_with_a_token_and_the_user,
    an_unknown_address_and_a_wrong_password_look_the_same,
    the_case_of_an_address_does_not_matter,
    logging_out_ends_exactly_that_session,
    an_expired_session_has_ended,
    a_session_outlives_a_restart,
);

fn a_login_answers_with_a_token_and_the_user(server: TestServer) {
    let admin = server.admin();
    let answer = server.client().post(LOGIN, &credentials(ADMIN_EMAIL, ADMIN_PASSWORD));
    let data = answer.success();
    let mut fields: Vec<_> = data.as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(fields, ["access_token", "expires_at", "token_type", "user"]);
    assert_eq!(data["token_type"], "Bearer");
    expect_user_with_memberships(&data["user"]);
    assert_eq!(data["user"], admin.get("/api/v1/user").success());

    expect_moment(&data["expires_at"]);
    let expires_at: Timestamp = data["expires_at"].as_str().unwrap().parse().unwrap();
    let lasts = SystemTime::from(expires_at).duration_since(SystemTime::now()).unwrap();
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    assert!(lasts <= week && lasts > week - Duration::from_secs(60), "{lasts:?}");

    // 256 bits are 43 characters at least.
    let token = data["access_token"].as_str().unwrap();
    assert!(token.len() >= 43 && token.is_ascii(), "{token}");
}

/// The time that they take is the same because both cost one password hash; a test cannot measure
/// that reliably beside others.
fn an_unknown_address_and_a_wrong_password_look_the_same(server: TestServer) {
    server.admin();
    let wrong = server.client().post(LOGIN, &credentials(ADMIN_EMAIL, "not the password"));
    let unknown = server.client().post(LOGIN, &credentials("nobody@example.com", "not the password"));
    wrong.failure(401, "invalid_credentials");
    assert_eq!(comparable(&wrong), comparable(&unknown));
    // Not even with the password of another user.
    let of_another = server.client().post(LOGIN, &credentials("nobody@example.com", ADMIN_PASSWORD));
    assert_eq!(comparable(&wrong), comparable(&of_another));
}

fn the_case_of_an_address_does_not_matter(server: TestServer) {
    server.admin();
    for email in ["ADA@EXAMPLE.COM", "Ada@Example.com", "  ada@example.com "] {
        let user = server.log_in(email, ADMIN_PASSWORD).get("/api/v1/user").success();
        assert_eq!(user["email"], ADMIN_EMAIL);
    }
    let other_case = credentials(ADMIN_EMAIL, &ADMIN_PASSWORD.to_uppercase());
    server.client().post(LOGIN, &other_case).failure(401, "invalid_credentials");
}

fn logging_out_ends_exactly_that_session(server: TestServer) {
    let first = server.admin();
    let second = server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    let third = server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    let answer = second.post("/api/v1/auth/logout", &json!({}));
    assert_eq!(answer.success(), Value::Null);
    assert_eq!(answer.message(), "Logged out successfully");
    second.get("/api/v1/user").failure(401, "unauthenticated");
    second.post("/api/v1/auth/logout", &json!({})).failure(401, "unauthenticated");
    first.get("/api/v1/user").success();
    third.get("/api/v1/user").success();
}

fn an_expired_session_has_ended(mut server: TestServer) {
    let admin = server.admin();
    admin.get("/api/v1/user").success();
    server.kill();
    server.execute("UPDATE sessions SET expires_at = created_at");
    server.restart();
    let session = admin.at(server.url());
    session.get("/api/v1/user").failure(401, "unauthenticated");
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD).get("/api/v1/user").success();
}

fn a_session_outlives_a_restart(mut server: TestServer) {
    let admin = server.admin();
    let user = admin.get("/api/v1/user").success();
    server.kill();
    server.restart();
    assert_eq!(admin.at(server.url()).get("/api/v1/user").success(), user);
}

#[test]
fn whatever_is_no_valid_bearer_token_is_refused() {
    let server = TestServer::on_sqlite();
    let answer = server.client().post(
        "/api/v1/auth/register",
        &json!({"email": ADMIN_EMAIL, "username": "ada", "password": ADMIN_PASSWORD}),
    );
    let token = answer.success()["access_token"].as_str().unwrap().to_owned();
    let changed = format!("{}{}", &token[..token.len() - 1], if token.ends_with('A') { 'B' } else { 'A' });
    let headers = [
        String::new(),
        token.clone(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer garbage".to_owned(),
        "Bearer null".to_owned(),
        format!("Bearer {changed}"),
        format!("Bearer {}", token.to_lowercase()),
        format!("Bearer {token} {token}"),
        format!("Bearer {}", "x".repeat(10_000)),
        format!("Basic {token}"),
        format!("Token {token}"),
        format!("Bearer{token}"),
        "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.".to_owned(),
        "Bearer ' OR 1=1 --".to_owned(),
    ];
    for header in headers {
        let answer = server.client().with_header("authorization", &header).get("/api/v1/user");
        answer.failure(401, "unauthenticated");
        assert_eq!(answer.headers["www-authenticate"], "Bearer", "{header}");
    }
    for path in ["/api/v1/user", &format!("/api/v1/user?access_token={token}&token={token}")] {
        let answer = server.client().get(path);
        answer.failure(401, "unauthenticated");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
    server
        .client()
        .with_header("cookie", &format!("token={token}"))
        .get("/api/v1/user")
        .failure(401, "unauthenticated");
    for header in [format!("Bearer {token}"), format!("bearer {token}"), format!("BEARER  {token} ")] {
        server.client().with_header("authorization", &header).get("/api/v1/user").success();
    }
}

#[test]
fn a_login_is_refused_for_its_form_before_it_is_tried() {
    let server = TestServer::on_sqlite();
    server.admin();
    // More often than wrong passwords would be allowed.
    for _ in 0..12 {
        let message = server.client().post(LOGIN, &json!({"password": 1})).failure(400, "validation_failed");
        assert_eq!(message, "email is required; password must be a string, got a number");
    }
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
}

#[test]
fn a_refused_login_opens_no_session() {
    let server = TestServer::on_sqlite();
    server.admin();
    server
        .client()
        .post(LOGIN, &credentials(ADMIN_EMAIL, "not the password"))
        .failure(401, "invalid_credentials");
    assert_eq!(server.query("SELECT CAST(count(*) AS TEXT) AS value FROM sessions"), ["1"]);
}

#[test]
fn a_session_in_use_is_extended_at_most_once_an_hour() {
    let mut server = TestServer::on_sqlite();
    let admin = server.admin();
    let ends = |server: &TestServer| -> i64 {
        server.query("SELECT CAST(expires_at AS TEXT) AS value FROM sessions")[0].parse().unwrap()
    };
    let first = ends(&server);
    admin.get("/api/v1/user").success();
    assert_eq!(ends(&server), first);

    server.kill();
    let hour = 3_600_000_000_i64;
    server.execute(&format!(
        "UPDATE sessions SET extended_at = extended_at - {hour}, expires_at = expires_at - {hour}"
    ));
    server.restart();
    let admin = admin.at(server.url());
    admin.get("/api/v1/user").success();
    let extended = ends(&server);
    assert!(extended > first, "{extended} is not after {first}");
    admin.get("/api/v1/user").success();
    assert_eq!(ends(&server), extended);
}

pub(crate) fn credentials(email: &str, password: &str) -> Value {
    json!({"email": email, "password": password})
}

/// A response without the fields that differ between any two.
fn comparable(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    let headers = answer.headers.clone().into_iter();
    let headers = headers.filter(|(name, _)| name != "x-request-id" && name != "date").collect();
    (answer.status, headers, answer.text.clone())
}
