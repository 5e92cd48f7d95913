//! Remote registration requires the token that only the operator of the server can read.

use std::os::unix::fs::PermissionsExt as _;

use launchway_testkit::{
    client::Client,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::{Value, json};

use crate::{backups::succeed, docker::installation::database_of};

super::on_both_databases!(
    the_token_stays_the_same_until_it_is_used,
    the_file_of_an_earlier_version_becomes_the_token,
    a_key_rotation_keeps_the_token,
);

const REGISTER: &str = "/api/v1/auth/register";

#[test]
fn the_token_is_in_the_announcement_and_a_private_file() {
    let server = TestServer::on_sqlite();
    let token = token_in_file(&server);
    // 256 bits are 43 characters at least.
    assert!(token.len() >= 43, "{token}");
    assert!(server.announcement().contains(&token), "{}", server.announcement());
    let mode = std::fs::metadata(server.data_dir().join("setup-token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn from_elsewhere_nobody_registers_without_the_token() {
    let server = TestServer::on_sqlite();
    let elsewhere = [
        ("host", "deploy.example.com"),
        ("host", "127.0.0.1.example.com"),
        ("host", "localhost.example.com:8080"),
        ("host", "192.0.2.1:8080"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "localhost"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "for=127.0.0.1"),
        ("via", "1.1 caddy"),
        ("x-real-ip", "203.0.113.9"),
    ];
    for (name, value) in elsewhere {
        let caller = server.client().with_header(name, value);
        for token in
            [Value::Null, json!(""), json!("lwi_guessed"), json!(token_in_file(&server).to_uppercase())]
        {
            caller.post(REGISTER, &ada(&token)).failure(403, "forbidden");
        }
    }
    let status = server.client().get("/api/v1/auth/is-admin-registered").success();
    assert_eq!(status["admin_registered"], false);
}

#[test]
fn a_proxy_that_says_nothing_of_itself_is_known_by_its_old_http() {
    let server = TestServer::on_sqlite();
    let body = ada(&Value::Null).to_string();
    let head =
        format!("POST {REGISTER} HTTP/1.0\r\nHost: 127.0.0.1:8080\r\nContent-Length: {}\r\n\r\n", body.len());
    let answer = server.connect().send(head + &body).answer();
    answer.failure(403, "forbidden");
}

#[test]
fn from_elsewhere_the_token_opens_the_door_once() {
    let mut server = TestServer::on_sqlite();
    let token = json!(token_in_file(&server));
    let elsewhere = |server: &TestServer| -> Client {
        server
            .client()
            .with_header("host", "deploy.example.com")
            .with_header("x-forwarded-for", "203.0.113.9")
    };
    elsewhere(&server).post(REGISTER, &ada(&token)).success();
    elsewhere(&server).post(REGISTER, &ada(&token)).failure(403, "registration_closed");

    server.restart();
    assert!(!server.data_dir().join("setup-token").exists());
    assert!(!server.announcement().contains("setup_token"), "{}", server.announcement());
    elsewhere(&server).post(REGISTER, &ada(&token)).failure(403, "registration_closed");
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
}

fn the_token_stays_the_same_until_it_is_used(mut server: TestServer) {
    let token = token_in_file(&server);
    server.restart();
    assert_eq!(token_in_file(&server), token);
    let elsewhere = server.client().with_header("via", "1.1 proxy");
    elsewhere.post(REGISTER, &ada(&json!(token))).success();
    assert!(stored(&server).is_empty(), "the registration deletes it");
}

fn the_file_of_an_earlier_version_becomes_the_token(mut server: TestServer) {
    server.terminate();
    server.execute("DELETE FROM setup_token");
    std::fs::write(server.data_dir().join("setup-token"), "lwi_of-an-earlier-version\n").unwrap();
    server.restart();
    assert!(server.announcement().contains("lwi_of-an-earlier-version"), "{}", server.announcement());
    assert!(stored(&server).concat().starts_with("v1:"), "sealed");
}

fn a_key_rotation_keeps_the_token(mut server: TestServer) {
    let (token, before) = (token_in_file(&server), stored(&server));
    server.terminate();
    succeed(&server, &["key", "rotate"]);
    assert_ne!(stored(&server), before);
    std::fs::remove_file(server.data_dir().join("setup-token")).unwrap();
    server.restart();
    assert_eq!(token_in_file(&server), token);
}

#[test]
fn every_server_on_postgres_has_the_same_token() {
    let mut first = TestServer::on_postgres();
    let token = token_in_file(&first);
    first.terminate();
    let key = first.data_dir().join("secret.key");
    let settings = [
        ("LAUNCHWAY_DATABASE_URL", &*database_of(&first)),
        ("LAUNCHWAY_SECRET_KEY_FILE", key.to_str().unwrap()),
    ];
    let mut second = TestServer::configured(&settings);
    assert_eq!(token_in_file(&second), token);
    assert!(second.announcement().contains(&token), "{}", second.announcement());
    let elsewhere = second.client().with_header("via", "1.1 proxy");
    elsewhere.post(REGISTER, &ada(&json!(token))).success();
    second.terminate();

    first.restart();
    assert!(!first.data_dir().join("setup-token").exists());
    assert!(!first.announcement().contains(&token), "{}", first.announcement());
}

#[test]
fn a_trusted_proxy_does_not_make_its_clients_local() {
    let server = TestServer::configured(&[("LAUNCHWAY_TRUSTED_PROXIES", "127.0.0.1")]);
    let caller = server.client().with_header("x-forwarded-for", "127.0.0.1");
    caller.post(REGISTER, &ada(&Value::Null)).failure(403, "forbidden");
}

#[test]
fn a_request_that_names_no_host_is_not_local() {
    let server = TestServer::on_sqlite();
    let body = ada(&Value::Null).to_string();
    let mut connection = server.connect();
    connection.send(format!("POST {REGISTER} HTTP/1.0\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
    connection.answer().failure(403, "forbidden");
}

fn ada(setup_token: &Value) -> Value {
    json!({
        "email": ADMIN_EMAIL, "username": "ada", "password": ADMIN_PASSWORD, "setup_token": setup_token,
    })
}

/// Returns the sealed token in the database, if there is one.
fn stored(server: &TestServer) -> Vec<String> {
    server.query("SELECT sealed AS value FROM setup_token")
}

fn token_in_file(server: &TestServer) -> String {
    std::fs::read_to_string(server.data_dir().join("setup-token")).unwrap().trim().to_owned()
}
