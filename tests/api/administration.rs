//! The operator's commands on the server's own files, when no user can log in.

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use launchway_testkit::{
    authenticator::Authenticator,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer, command},
};
use serde_json::json;

use crate::auth::credentials;

const NEW_PASSWORD: &str = "forgotten no more";

super::on_both_databases!(
    the_first_administrator_can_be_made_beside_the_api,
    a_reset_password_ends_every_session_at_once,
);

fn the_first_administrator_can_be_made_beside_the_api(mut server: TestServer) {
    let create = |server: &TestServer, password: &str| {
        let arguments = [
            "admin",
            "create",
            "--email",
            "Ada@Example.com",
            "--username",
            "ada",
            "--organization",
            "Engines",
        ];
        with_input(server.command(&arguments), password)
    };
    for weak in ["short", "password123", ""] {
        let output = create(&server, weak);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(words(&output).contains("the password must be"), "{output:?}");
    }
    let output = create(&server, ADMIN_PASSWORD);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!words(&output).contains(ADMIN_PASSWORD), "{output:?}");

    // The server that runs meanwhile knows of it, and so does the next one.
    for _ in 0..2 {
        let status = server.client().get("/api/v1/auth/is-admin-registered").success();
        assert_eq!(status["admin_registered"], true);
        let user = server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD).get("/api/v1/user").success();
        assert_eq!((&user["type"], &user["organizations"][0]["name"]), (&json!("admin"), &json!("Engines")));
        let eve = json!({"email": "eve@example.com", "username": "eve", "password": ADMIN_PASSWORD});
        server.client().post("/api/v1/auth/register", &eve).failure(403, "registration_closed");
        server.restart();
    }
    let output = create(&server, ADMIN_PASSWORD);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(words(&output).contains("registered already"), "{output:?}");
}

fn a_reset_password_ends_every_session_at_once(server: TestServer) {
    let first = server.admin();
    let second = server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    let grace = server.log_in(server.other_tenant("member").email, ADMIN_PASSWORD);
    for session in [&first, &second] {
        session.get("/api/v1/user").success();
    }
    let output = reset(&server, "ADA@example.com", NEW_PASSWORD);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for session in [&first, &second] {
        session.get("/api/v1/user").failure(401, "unauthenticated");
    }
    let old = credentials(ADMIN_EMAIL, ADMIN_PASSWORD);
    server.client().post("/api/v1/auth/login", &old).failure(401, "invalid_credentials");
    server.log_in(ADMIN_EMAIL, NEW_PASSWORD).get("/api/v1/user").success();
    grace.get("/api/v1/user").success();
}

#[test]
fn without_a_server_the_first_administrator_can_be_made_too() {
    let data = tempfile::tempdir().unwrap();
    let create = || {
        let mut create = command(data.path(), &[]);
        create.args(["admin", "create", "--email", ADMIN_EMAIL, "--username", "ada"]);
        with_input(create, ADMIN_PASSWORD)
    };
    let output = create();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(words(&output).contains(ADMIN_EMAIL), "{output:?}");
    assert_eq!(create().status.code(), Some(1));
}

#[test]
fn what_is_wrong_with_an_administrator_is_reported() {
    let data = tempfile::tempdir().unwrap();
    for (arguments, name) in [
        (["--email", "nonsense", "--username", "ada"], "--email"),
        (["--email", ADMIN_EMAIL, "--username", ""], "--username"),
    ] {
        let mut create = command(data.path(), &[]);
        create.args(["admin", "create"]).args(arguments);
        let output = with_input(create, ADMIN_PASSWORD);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(words(&output).contains(name), "{output:?}");
    }
}

#[test]
fn nobodys_password_cannot_be_reset() {
    let server = TestServer::on_sqlite();
    server.admin();
    let output = reset(&server, "nobody@example.com", NEW_PASSWORD);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(words(&output).contains("not found"), "{output:?}");
    let output = reset(&server, ADMIN_EMAIL, "short");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
}

#[test]
fn a_reset_password_leaves_the_second_factor_on() {
    let server = TestServer::on_sqlite();
    let (mut authenticator, _) = Authenticator::enabled_for(&server.admin());
    assert!(reset(&server, ADMIN_EMAIL, NEW_PASSWORD).status.success());
    let mut login = credentials(ADMIN_EMAIL, NEW_PASSWORD);
    server.client().post("/api/v1/auth/login", &login).failure(401, "two_factor_required");
    login["totp_code"] = json!(authenticator.next_code());
    server.client().post("/api/v1/auth/login", &login).success();
}

fn reset(server: &TestServer, email: &str, password: &str) -> Output {
    with_input(server.command(&["admin", "reset-password", "--email", email]), password)
}

/// Runs a command that reads a line.
pub(crate) fn with_input(mut command: Command, line: &str) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    // It may refuse its arguments before it reads.
    let _ = writeln!(process.stdin.take().unwrap(), "{line}");
    process.wait_with_output().unwrap()
}

fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_server_does_not_start_with_a_wrong_key() {
    let mut server = TestServer::on_sqlite();
    server.terminate();
    let key = server.data_dir().join("secret.key");
    let right = std::fs::read_to_string(&key).unwrap();
    let start = || server.command(&["serve"]).output().unwrap();
    std::fs::remove_file(&key).unwrap();
    let words = String::from_utf8(start().stderr).unwrap();
    assert!(words.contains("secret.key` is missing") && !key.exists(), "{words}");
    std::fs::write(&key, "0123456789abcdef".repeat(4)).unwrap();
    let output = start();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && words.contains("is not the one"), "{words}");
    std::fs::write(&key, right).unwrap();
    server.restart();
    server.client().get("/ready").success();
}

#[test]
fn what_needs_a_database_makes_none() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["audit", "verify"][..], &["admin", "reset-password", "--email", "ada@example.com"]] {
        let mut command = command(folder.path(), &[]);
        let mut process =
            command.args(arguments).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        process.stdin.as_mut().unwrap().write_all(b"another good passphrase\n").unwrap();
        let output = process.wait_with_output().unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && words.contains("there is no database"), "{arguments:?}: {words}");
        assert!(!folder.path().join("launchway.db").exists());
    }
}
