//! Domains of applications, and the keys for code hosts.

use launchway_testkit::{external::Authority, server::TestServer};
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
fn a_certificate_is_uploaded_from_files_and_deleted() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    an_application(&admin, "web", "production");
    let ada = Person::ada(&server);
    ada.runs(&["domains", "add", "web", "shop.example.com"]).succeeded();
    let identity = Authority::new().vouch_for(&["shop.example.com"]);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (chain, key) = (file("chain.pem", &identity.certificate), file("key.pem", &identity.key));
    let set = |chain: &str, key: &str| {
        ada.runs(&["domains", "set-certificate", "web", "shop.example.com", "--chain", chain, "--key", key])
    };
    let output = set(&chain, &key);
    output.succeeded();
    assert!(output.stderr.contains("Uploaded the certificate of shop.example.com"), "{output}");
    let swapped = set(&key, &chain);
    assert!(swapped.failed(2).contains("the chain has no certificate"), "{swapped}");
    set(&chain, "/nowhere/key.pem").failed(1);
    let shown =
        || admin.get("/api/v1/deploy/applications").success()["applications"][0]["certificates"].clone();
    assert_eq!(shown()[0]["state"], "valid");
    let remove = ["domains", "remove-certificate", "web", "shop.example.com", "--yes"];
    ada.runs(&remove).succeeded();
    assert_eq!(shown(), json!([]));
    ada.runs(&remove).failed(4);
}

#[test]
fn the_hsts_policy_of_a_domain_is_set_and_removed() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    an_application(&admin, "web", "production");
    let ada = Person::ada(&server);
    ada.runs(&["domains", "add", "web", "shop.example.com"]).succeeded();
    let shown = || admin.get("/api/v1/deploy/applications").success()["applications"][0]["hsts"].clone();
    let set = ["domains", "set-hsts", "web", "shop.example.com"];
    let output = ada.runs(&set);
    output.succeeded();
    assert!(output.stderr.contains("Set the HSTS policy of shop.example.com"), "{output}");
    assert_eq!(shown(), json!([{"domain": "shop.example.com", "max_age": 15_552_000}]));
    ada.runs(&[&set[..], &["--max-age", "0"]].concat()).succeeded();
    assert_eq!(shown()[0]["max_age"], 0);
    ada.runs(&[&set[..], &["--max-age", "99999999"]].concat()).failed(2);
    let remove = ["domains", "remove-hsts", "web", "shop.example.com"];
    ada.runs(&remove).succeeded();
    assert_eq!(shown(), json!([]));
    ada.runs(&remove).failed(4);
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
