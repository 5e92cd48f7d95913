//! Creating and securing an account.

use std::{
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use data_encoding::BASE32_NOPAD;
use launchway_domain::auth::TotpSecret;
use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer};
use serde_json::json;

use crate::person::Person;

const NEW_PASSWORD: &str = "another horse battery";

#[test]
fn a_newcomer_needs_nothing_but_the_command_line() {
    let server = TestServer::on_sqlite();
    let ada = Person::new();
    let login = ["login", server.url(), "--email", ADMIN_EMAIL];
    let output = ada.runs_with(&login, &format!("{ADMIN_PASSWORD}\n"));
    assert!(output.failed(3).contains(&format!("`launchway register {}`", server.url())), "{output}");

    let register =
        ["register", server.url(), "--email", ADMIN_EMAIL, "--username", "ada", "--team", "Engines"];
    let weak = ada.runs_with(&register, "short\n");
    assert!(weak.failed(2).contains("password"), "{weak}");
    let done = ada.runs_with(&register, &format!("{ADMIN_PASSWORD}\n"));
    done.succeeded();
    assert!(!done.stderr.contains(ADMIN_PASSWORD), "{done}");
    assert!(ada.runs(&["whoami"]).succeeded().contains("in Engines"));

    let grace = Person::new();
    let late = grace.runs_with(
        &["register", server.url(), "--email", "grace@example.com", "--username", "grace"],
        &format!("{NEW_PASSWORD}\n"),
    );
    assert!(late.failed(3).contains("launchway join"), "{late}");
    let token = ada.runs(&["members", "add", "grace@example.com", "--role", "member"]).succeeded().to_owned();
    assert!(token.starts_with("lwp_") && token.lines().count() == 1, "{token}");
    let join = ["join", server.url(), "--email", "grace@example.com"];
    grace.runs_with(&join, &format!("lwp_wrong\n{NEW_PASSWORD}\n")).failed(3);
    grace.runs_with(&join, &format!("{token}{NEW_PASSWORD}\n")).succeeded();
    assert!(grace.runs(&["whoami"]).succeeded().contains("grace@example.com"));
}

#[test]
fn from_elsewhere_the_setup_token_is_needed() {
    let server = TestServer::on_sqlite();
    // An address that does not count as local, although it reaches the same machine.
    let elsewhere = server.url().replace("127.0.0.1", "0.0.0.0");
    let token = fs::read_to_string(server.data_dir().join("setup-token")).unwrap();
    let ada = Person::new();
    let register = ["register", &elsewhere, "--email", ADMIN_EMAIL, "--username", "ada"];
    let output = ada.runs_with(&register, &format!("{ADMIN_PASSWORD}\n"));
    assert!(output.failed(3).contains("--setup-token"), "{output}");
    assert!(output.stderr.contains("is not encrypted"), "{output}");
    let with_token: Vec<&str> = register.iter().copied().chain(["--setup-token"]).collect();
    ada.runs_with(&with_token, &format!("lwi_wrong\n{ADMIN_PASSWORD}\n")).failed(3);
    ada.runs_with(&with_token, &format!("{}\n{ADMIN_PASSWORD}\n", token.trim())).succeeded();
}

#[test]
fn a_password_is_changed_by_who_knows_it() {
    let server = TestServer::on_sqlite();
    server.admin();
    let (ada, elsewhere) = (Person::ada(&server), Person::ada(&server));
    ada.runs_with(&["password"], &format!("wrong\n{NEW_PASSWORD}\n")).failed(3);
    ada.runs_with(&["password"], &format!("{ADMIN_PASSWORD}\nshort\n")).failed(2);
    ada.runs_with(&["password"], &format!("{ADMIN_PASSWORD}\n")).failed(2);
    ada.runs_with(&["password"], &format!("{ADMIN_PASSWORD}\n{NEW_PASSWORD}\n")).succeeded();
    ada.runs(&["whoami"]).succeeded();
    elsewhere.runs(&["whoami"]).failed(3);
    server.log_in(ADMIN_EMAIL, NEW_PASSWORD);
}

/// A code that is valid `later` steps from now.
pub(crate) fn code(secret: &str, later: i64) -> String {
    let bytes = BASE32_NOPAD.decode(secret.as_bytes()).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    TotpSecret::from_bytes(&bytes).unwrap().code_at(i64::try_from(now / 30).unwrap() + later)
}

#[test]
fn a_second_factor_is_set_up_used_and_turned_off() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    let setup = ada.runs(&["two-factor", "setup"]);
    let text = setup.succeeded();
    assert!(text.starts_with("otpauth://totp/Launchway:ada%40example.com?secret="), "{setup}");
    // A picture is for a terminal only.
    assert!(!text.contains('█') && setup.stderr.contains("two-factor enable"), "{setup}");
    let secret = text.trim().rsplit(' ').next().unwrap();

    let wrong = if code(secret, 0) == "000000" { "000001" } else { "000000" };
    ada.runs(&["two-factor", "enable", "--code", wrong]).failed(3);
    let enabled = ada.runs_with(&["two-factor", "enable"], &format!("{}\n", code(secret, 0)));
    let codes: Vec<&str> = enabled.succeeded().lines().collect();
    assert_eq!(codes.len(), 10, "{enabled}");

    let login = ["login", server.url(), "--email", ADMIN_EMAIL];
    let refused = ada.runs_with(&login, &format!("{ADMIN_PASSWORD}\n"));
    assert!(refused.failed(3).contains("--code"), "{refused}");
    let with_code: Vec<&str> = login.iter().copied().chain(["--code", codes[0]]).collect();
    ada.runs_with(&with_code, &format!("{ADMIN_PASSWORD}\n")).succeeded();
    ada.runs(&["two-factor", "setup"]).failed(5);
    ada.runs(&["two-factor", "disable", "--code", codes[0]]).failed(3);
    ada.runs(&["two-factor", "disable", "--code", codes[1]]).succeeded();
    ada.runs_with(&login, &format!("{ADMIN_PASSWORD}\n")).succeeded();
}

#[test]
fn programs_get_what_the_api_says_of_a_second_factor() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    let setup = ada.runs(&["two-factor", "setup", "--output", "json"]).json();
    let secret = setup["secret"].as_str().unwrap();
    let enable = ["two-factor", "enable", "--code", &code(secret, 0), "--output", "json"];
    let enabled = ada.runs(&enable);
    assert_eq!(enabled.json()["recovery_codes"].as_array().unwrap().len(), 10);
    assert_eq!(enabled.stderr, "");
    assert_eq!(ada.runs(&["whoami", "--output", "json"]).json()["two_factor_enabled"], json!(true));
}
