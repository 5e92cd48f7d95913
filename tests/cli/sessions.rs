//! Login, logout, the current user, and remembered servers.

use std::{fs, os::unix::fs::PermissionsExt as _};

use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer};

use crate::person::Person;

#[test]
fn who_logs_in_is_remembered_until_they_log_out() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    let shown = ada.runs(&["whoami"]);
    assert!(shown.succeeded().starts_with(&format!("ada <{ADMIN_EMAIL}>, administrator")), "{shown}");
    assert_eq!(ada.runs(&["whoami", "--output", "json"]).json()["email"], ADMIN_EMAIL);
    let mode = fs::metadata(ada.contexts_file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    ada.runs(&["logout"]).succeeded();
    let refused = ada.runs(&["whoami"]);
    assert!(refused.failed(3).contains("launchway login"), "{refused}");
    assert!(!fs::read_to_string(ada.contexts_file()).unwrap().contains("lws_"));
}

#[test]
fn a_wrong_password_is_refused_and_nothing_is_remembered() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::new();
    ada.runs_with(&["login", server.url(), "--email", ADMIN_EMAIL], "wrong\n").failed(3);
    assert!(!ada.contexts_file().exists());
    let nobody = ada.runs(&["apps"]);
    assert!(nobody.failed(3).contains("hint: run `launchway login"), "{nobody}");
}

#[test]
fn several_servers_are_distinguished_by_their_names() {
    let (one, other) = (TestServer::on_sqlite(), TestServer::on_sqlite());
    one.admin();
    other.admin();
    let ada = Person::ada(&one);
    let login = ["login", other.url(), "--email", ADMIN_EMAIL, "--context", "staging"];
    ada.runs_with(&login, &format!("{ADMIN_PASSWORD}\n")).succeeded();

    let listed = ada.runs(&["context", "list", "--output", "json"]).json();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "staging"]);
    assert_eq!(listed[1]["is_current"], true);
    assert!(ada.runs(&["whoami"]).succeeded().contains(other.url()));
    assert!(ada.runs(&["whoami", "--context", "default"]).succeeded().contains(one.url()));
    ada.runs(&["context", "use", "default"]).succeeded();
    assert!(ada.runs(&["whoami"]).succeeded().contains(one.url()));

    ada.runs(&["context", "delete", "default"]).succeeded();
    let missing = ada.runs(&["whoami", "--context", "default"]);
    assert!(missing.failed(4).contains("staging"), "{missing}");
}

#[test]
fn a_script_needs_nothing_but_two_variables() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let spec = serde_json::json!({"name": "ci"});
    let token = admin.post("/api/v1/auth/tokens", &spec).success()["token"].as_str().unwrap().to_owned();
    let script = Person::new().with("LAUNCHWAY_URL", server.url()).with("LAUNCHWAY_TOKEN", &token);
    assert_eq!(script.runs(&["apps", "--output", "json"]).json()["applications"], serde_json::json!([]));
    assert!(!script.contexts_file().exists());
    let half = Person::new().with("LAUNCHWAY_URL", server.url());
    assert!(half.runs(&["apps"]).failed(2).contains("LAUNCHWAY_TOKEN"));
    // The same token by a pipe is remembered.
    let ada = Person::new();
    ada.runs_with(&["login", server.url(), "--with-token"], &format!("{token}\n")).succeeded();
    ada.runs(&["apps"]).succeeded();
}

#[test]
fn a_server_that_is_not_there_is_said_to_be_away() {
    let mut server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    server.kill();
    let output = ada.runs(&["apps"]);
    assert!(output.failed(6).contains("does not answer"), "{output}");
}
