//! Every response contains the id of its request.

use std::collections::BTreeSet;

use launchway_testkit::{client::Answer, server::TestServer};
use serde_json::json;

#[test]
fn a_name_that_the_caller_gave_is_kept() {
    let server = TestServer::on_sqlite();
    for name in ["a", "01H8XGJWBWBAQ4", "Deploy_42.retry-1", &"x".repeat(128)] {
        let caller = server.client().with_header("x-request-id", name);
        assert_eq!(caller.get("/health").headers["x-request-id"], name);
        assert_eq!(caller.get("/nothing").headers["x-request-id"], name);
        assert_eq!(caller.get("/api/v1/user").headers["x-request-id"], name);
    }
}

#[test]
fn a_name_that_could_do_harm_is_replaced() {
    let server = TestServer::on_sqlite();
    for name in ["", "a b", "a/b", "a;b", "<script>", "${jndi:ldap}", "ä", "a\"b", "%0d%0a", &"x".repeat(129)]
    {
        let answer = server.client().with_header("x-request-id", name).get("/health");
        let given = &answer.headers["x-request-id"];
        assert!(given != name && is_name(given), "{name:?} became {given:?}");
    }
}

#[test]
fn every_answer_has_a_name_of_its_own() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let stranger = server.client();
    let answers = [
        stranger.get("/health"),
        stranger.get("/ready"),
        stranger.get("/metrics"),
        stranger.get("/docs"),
        stranger.get("/api/v1/openapi.json"),
        stranger.get("/nothing"),
        stranger.get("/api/v1/user"),
        stranger.get("/api/v1/auth/login"),
        stranger.send("HEAD", "/health", None),
        stranger.send("OPTIONS", "/api/v1/user", None),
        stranger.send("POST", "/api/v1/auth/login", Some("{")),
        stranger.with_header("origin", "https://evil.example").post("/api/v1/auth/login", &json!({})),
        admin.get("/api/v1/user"),
        admin.with_header("x-organization-id", "x").get("/api/v1/user"),
        too_large(&server),
    ];
    let names: BTreeSet<_> = answers.iter().map(|answer| &answer.headers["x-request-id"]).collect();
    assert_eq!(names.len(), answers.len());
    assert!(names.iter().all(|name| is_name(name)), "{names:?}");
}

#[test]
fn names_do_not_repeat_after_a_restart() {
    let mut server = TestServer::on_sqlite();
    let mut names = BTreeSet::new();
    for _ in 0..2 {
        for _ in 0..5 {
            names.insert(server.client().get("/health").headers["x-request-id"].clone());
        }
        server.restart();
    }
    assert_eq!(names.len(), 10);
}

fn too_large(server: &TestServer) -> Answer {
    let mut connection = server.connect();
    connection.send("POST /api/v1/auth/login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999999\r\n\r\n");
    let answer = connection.answer();
    answer.failure(413, "payload_too_large");
    answer
}

fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
