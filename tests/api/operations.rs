//! Endpoints for the operator's tools.

use std::process::Stdio;

use launchway_testkit::server::TestServer;
use serde_json::{Value, json};

super::on_both_databases!(
    a_server_says_that_it_is_alive_and_ready,
    one_server_at_a_time_has_a_data_directory
);

fn a_server_says_that_it_is_alive_and_ready(server: TestServer) {
    for path in ["/health", "/api/v1/health"] {
        let answer = server.client().get(path);
        let expected =
            json!({"data": {"status": "ok"}, "message": "Launchway is alive", "status": "success"});
        assert_eq!((answer.status, answer.json()), (200, expected), "{path}");
    }
    let answer = server.client().get("/ready");
    let expected = json!({"data": {"status": "ok"}, "message": "Launchway is ready", "status": "success"});
    assert_eq!((answer.status, answer.json()), (200, expected));
    // With an invalid token, too: it is not checked here.
    server.client().with_token("garbage").get("/ready").success();
}

fn one_server_at_a_time_has_a_data_directory(server: TestServer) {
    for verb in [&["serve"][..], &[], &["migrate"]] {
        let output = server.command(verb).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(words.contains("another Launchway is running on the data directory"), "{words}");
    }
    server.client().get("/ready").success();
}

#[test]
fn a_port_that_is_taken_is_reported() {
    let server = TestServer::on_sqlite();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut second = server.command(&["serve"]);
    second.env("LAUNCHWAY_DATA_DIR", elsewhere.path()).env("LAUNCHWAY_BIND", server.address());
    let output = second.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("LAUNCHWAY_BIND") && words.contains(server.address()), "{words}");
}

#[test]
fn log_lines_can_be_had_as_json() {
    let mut server = TestServer::configured(&[("LAUNCHWAY_LOG_FORMAT", "json"), ("LAUNCHWAY_LOG", "debug")]);
    server.admin().get("/api/v1/user").success();
    assert!(server.terminate().success());
    let log = server.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty());
    for line in &lines {
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
    let said = |words: &str| lines.iter().any(|line| line["fields"]["message"] == words);
    assert!(said("database migrated") && said("server stopped"), "{log}");
}

#[test]
fn log_lines_are_plain_text_otherwise() {
    let mut server = TestServer::on_sqlite();
    assert!(server.terminate().success());
    let log = server.log();
    assert!(log.contains("INFO") && log.contains("stopped"), "{log}");
    assert!(!log.contains('\u{1b}'), "colours are for terminals:\n{log}");
}

#[test]
fn the_files_of_an_installation_are_its_owners_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = TestServer::on_sqlite();
    server.admin();
    for entry in server.data_dir().read_dir().unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() == "test.log" {
            continue;
        }
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} has the mode {mode:o}", entry.path().display());
    }
}
