//! The API under the domain of its public URL.

use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer};
use serde_json::{Value, json};

use super::{Ports, issuance, pebble::Pebble};
use crate::wait::until;

const DOMAIN: &str = "deploy.example.com";

#[test]
fn the_api_gets_a_certificate_and_is_served_by_https_only() {
    let ports = Ports::free();
    let pebble = Pebble::checking(&ports, issuance::YEAR);
    let mut settings = issuance::configured(&ports, &pebble);
    settings.push(("LAUNCHWAY_PUBLIC_URL".to_owned(), format!("https://{DOMAIN}:{}", ports.tls)));
    let server = TestServer::configured(&issuance::borrowed(&settings));
    let admin = server.admin();

    let ready = || ports.curl(DOMAIN, "/ready", &["--fail"], &pebble.root()).ok();
    until("the certificate", ready);
    let location = format!("https://{DOMAIN}:{}/", ports.tls);
    assert_eq!(ports.plain(DOMAIN), (308, Some(location)));
    super::try_to_create(&admin, DOMAIN).failure(400, "validation_failed");

    // Behind the front proxy, a client has an address of its own, and cannot choose it.
    let log_in = |password: &str, forged: &str| {
        let body = json!({ "email": ADMIN_EMAIL, "password": password }).to_string();
        let header = format!("x-forwarded-for: {forged}");
        let json = "content-type: application/json";
        let arguments = ["--interface", "127.0.0.2", "--header", &header, "--header", json, "--data", &body];
        let answer = ports.curl(DOMAIN, "/api/v1/auth/login", &arguments, &pebble.root()).unwrap();
        serde_json::from_str::<Value>(&answer).unwrap()
    };
    assert_eq!(log_in(ADMIN_PASSWORD, "203.0.113.1")["status"], "success");
    for number in 0..10 {
        assert_eq!(log_in("wrong", &format!("203.0.113.{number}"))["error"], "invalid_credentials");
    }
    assert_eq!(log_in(ADMIN_PASSWORD, "203.0.113.99")["error"], "rate_limited");
    let right = json!({ "email": ADMIN_EMAIL, "password": ADMIN_PASSWORD });
    server.client().post("/api/v1/auth/login", &right).success();
}
