//! No secret is stored in plain text, neither in the database nor in the log.

use std::path::{Path, PathBuf};

use launchway_testkit::{
    authenticator::Authenticator,
    client::Client,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::json;

use crate::{auth::credentials, wait::until};

const NEW_PASSWORD: &str = "canary in a coal mine";
const WRONG_PASSWORD: &str = "canary that flew away";
const HOOK: &str = "T0CANARY/B0CANARY/XyZCanaryOfAHook";
const MAIL_PASSWORD: &str = "canary in a letter";

#[test]
fn the_files_and_the_log_on_sqlite_hold_no_secret() {
    let mut server = TestServer::configured(&[("LAUNCHWAY_LOG", "trace")]);
    let secrets = use_secrets(&server);
    expect_none_in_files(server.data_dir(), &secrets);
    // Once more after the write-ahead log went into the database.
    assert!(server.terminate().success());
    expect_none_in_files(server.data_dir(), &secrets);
}

#[test]
fn the_tables_and_the_log_on_postgres_hold_no_secret() {
    let server = TestServer::on_postgres();
    let secrets = use_secrets(&server);
    expect_none_in_files(server.data_dir(), &secrets);
    let [tables] = &server.query("SELECT database_to_xml(true, false, '')::text AS value")[..] else {
        panic!("one text was asked for");
    };
    assert!(tables.contains(ADMIN_EMAIL));
    for (name, secret) in &secrets {
        assert!(!tables.contains(secret), "the {name} is in the tables");
    }
}

/// Does everything that involves a secret, and returns the secrets.
fn use_secrets(server: &TestServer) -> Vec<(&'static str, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let body = json!({"email": ADMIN_EMAIL, "username": "ada", "password": ADMIN_PASSWORD});
    let session = text(&server.client().post("/api/v1/auth/register", &body).success()["access_token"]);
    let admin = server.client().with_token(&session);
    let token = text(&admin.post("/api/v1/auth/tokens", &json!({"name": "ci"})).success()["token"]);
    let (mut authenticator, codes) = Authenticator::enabled_for(&admin);
    server.client().with_token(&token).get("/api/v1/user").success();

    let mut login = credentials(ADMIN_EMAIL, ADMIN_PASSWORD);
    login["totp_code"] = json!(authenticator.next_code());
    let second = text(&server.client().post("/api/v1/auth/login", &login).success()["access_token"]);
    login["totp_code"] = json!(codes[0]);
    server.client().post("/api/v1/auth/login", &login).success();
    let wrong = credentials(ADMIN_EMAIL, WRONG_PASSWORD);
    server.client().post("/api/v1/auth/login", &wrong).failure(401, "invalid_credentials");
    provoke(&admin, &token);
    let webhook = webhook_secret(&admin);
    let signing = use_channels(server, &admin);
    let change = json!({"current_password": ADMIN_PASSWORD, "new_password": NEW_PASSWORD});
    admin.patch("/api/v1/user/password", &change).success();

    let mut secrets = vec![
        ("password", ADMIN_PASSWORD.to_owned()),
        ("new password", NEW_PASSWORD.to_owned()),
        ("wrong password", WRONG_PASSWORD.to_owned()),
        ("session token", session),
        ("second session token", second),
        ("API token", token),
        ("two-factor secret", authenticator.secret),
        ("webhook secret", webhook),
        ("signing secret", signing.trim_start_matches("whsec_").to_owned()),
        ("address of a webhook", HOOK.to_owned()),
        ("password of a mail server", MAIL_PASSWORD.to_owned()),
    ];
    secrets.extend(codes.iter().map(|code| ("recovery code", code.clone())));
    secrets.extend(codes.iter().map(|code| ("recovery code", code.replace('-', ""))));
    secrets
}

/// Returns the secret of a webhook, after a delivery of GitLab with it.
fn webhook_secret(admin: &Client) -> String {
    let spec = json!({
        "name": "site", "repository": "https://git.example.com/site.git", "branch": "main", "port": 80,
        "environment": "production", "build_pack": "static",
    });
    let site = admin.post("/api/v1/deploy/application", &spec).success();
    let path = format!("/api/v1/deploy/application/webhook-secret?id={}", site["id"].as_str().unwrap());
    let secret = admin.get(&path).success()["secret"].as_str().unwrap().to_owned();
    let host = admin.with_header("x-gitlab-event", "Push Hook").with_header("x-gitlab-token", &secret);
    let push = json!({
        "ref": "refs/heads/main", "after": "a".repeat(40),
        "project": {"git_http_url": "https://git.example.com/site.git"},
    });
    host.post("/api/v1/webhook", &push).success();
    secret
}

/// Sends notifications by every channel, which fail. Returns the signing secret.
fn use_channels(server: &TestServer, admin: &Client) -> String {
    let channel = |path: &str, body: serde_json::Value| {
        admin.post(&format!("/api/v1/notification/{path}"), &body).success()
    };
    let url = format!("https://hooks.example.com/services/{HOOK}");
    channel("webhook", json!({"type": "slack", "webhook_url": url}));
    channel("webhook", json!({"type": "generic", "webhook_url": url}));
    channel(
        "smtp",
        json!({
            "host": "smtp.example.com", "username": "launchway", "password": MAIL_PASSWORD,
            "from_email": "launchway@example.com",
        }),
    );
    let secret = channel("webhook/generic/secret", json!({}))["secret"].as_str().unwrap().to_owned();
    let member = json!({"email": "grace@example.com", "role": "viewer"});
    admin.post("/api/v1/organizations/users", &member).success();
    for kind in ["slack", "generic", "smtp"] {
        assert_eq!(channel("test", json!({"channel": kind}))["delivered"], false);
    }
    until("an attempt by each", || {
        let attempts = "SELECT CAST(COUNT(*) AS TEXT) AS value FROM delivery_attempts";
        (server.query(attempts) >= vec!["3".to_owned()]).then_some(())
    });
    secret
}

/// Sends requests that fail while they contain a secret.
fn provoke(admin: &Client, token: &str) {
    let body = format!("{{\"password\": \"{ADMIN_PASSWORD}\", \"setup_token\": \"{token}\"");
    admin.send("POST", "/api/v1/auth/login", Some(&body)).failure(400, "invalid_json");
    let body = json!({"current_password": ADMIN_PASSWORD, "new_password": NEW_PASSWORD, "more": token});
    admin.patch("/api/v1/user/password", &body).failure(400, "unknown_field");
    let body =
        json!({"email": ADMIN_EMAIL, "username": "ada", "password": NEW_PASSWORD, "setup_token": token});
    admin.post("/api/v1/auth/register", &body).failure(403, "registration_closed");
}

fn expect_none_in_files(folder: &Path, secrets: &[(&str, String)]) {
    let mut files = 0;
    for path in files_below(folder) {
        let bytes = std::fs::read(&path).unwrap();
        files += 1;
        for (name, secret) in secrets {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "the {name} is in {}", path.display());
        }
    }
    assert!(files >= 3, "{files} files");
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
