//! Domains of applications, and the keys for code hosts.

use launchway_testkit::server::TestServer;
use serde_json::json;

use crate::{env::an_application, person::Person};

#[test]
fn a_name_is_led_to_an_application_and_away_again() {
    let server = TestServer::on_sqlite();
    an_application(&server.admin(), "web", "production");
    let ada = Person::ada(&server);
    let automatic = "web.ada-s-team.localhost";
    assert_eq!(ada.runs(&["domains", "list", "web"]).succeeded(), format!("{automatic}\n"));

    ada.runs(&["domains", "add", "web", "shop.example.com"]).succeeded();
    let listed = ada.runs(&["domains", "list", "web", "--output", "json"]).json();
    assert_eq!(listed, json!(["shop.example.com", automatic]));
    let taken = ada.runs(&["domains", "add", "web", "shop.example.com"]);
    assert!(taken.failed(5).contains("shop.example.com"), "{taken}");
    ada.runs(&["domains", "add", "web", "no name"]).failed(2);

    // There is no user to agree.
    let asked = ada.runs(&["domains", "remove", "web", "shop.example.com"]);
    assert!(asked.failed(2).contains("--yes"), "{asked}");
    ada.runs(&["domains", "remove", "web", "shop.example.com", "--yes"]).succeeded();
    assert_eq!(ada.runs(&["domains", "list", "web"]).succeeded(), format!("{automatic}\n"));
    ada.runs(&["domains", "remove", "web", "shop.example.com", "--yes"]).failed(4);
}

#[test]
fn a_webhook_secret_is_printed_with_its_address() {
    let server = TestServer::on_sqlite();
    an_application(&server.admin(), "web", "production");
    let ada = Person::ada(&server);
    let output = ada.runs(&["webhook-secret", "web"]);
    let secret = output.succeeded().trim().to_owned();
    assert!(!secret.is_empty() && !secret.contains(char::is_whitespace), "{output}");
    assert!(output.stderr.contains(&format!("{}/api/v1/webhook", server.url())), "{output}");
    assert_eq!(ada.runs(&["webhook-secret", "web"]).succeeded().trim(), secret);
    let again = ada.runs(&["webhook-secret", "web", "--output", "json"]).json();
    assert_eq!(again, json!({"secret": secret}));
    let other = ada.runs(&["webhook-secret", "web", "--rotate"]).succeeded().to_owned();
    assert_ne!(other.trim(), secret);
}

#[test]
fn a_deploy_key_is_printed_and_replaced_only_on_purpose() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    let key = ada.runs(&["deploy-key"]).succeeded().to_owned();
    assert!(key.starts_with("ssh-ed25519 ") && key.lines().count() == 1, "{key}");
    ada.runs(&["deploy-key", "--rotate"]).failed(2);
    assert_eq!(ada.runs(&["deploy-key"]).succeeded(), key);
    assert_ne!(ada.runs(&["deploy-key", "--rotate", "--yes"]).succeeded(), key);
}
