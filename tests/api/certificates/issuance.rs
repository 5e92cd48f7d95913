//! Certificates that a real ACME server issues.

use launchway_testkit::server::TestServer;
use serde_json::{Value, json};

use super::{
    Ports, certificates, create,
    pebble::{Pebble, TERMS},
};
use crate::wait::until;

pub(super) const YEAR: u32 = 365 * 24 * 60 * 60;

pub(super) fn configured(ports: &Ports, pebble: &Pebble) -> Vec<(String, String)> {
    let acme = pebble.settings().map(|(name, value)| (name.to_owned(), value));
    ports.settings().into_iter().chain(acme).collect()
}

pub(super) fn borrowed(settings: &[(String, String)]) -> Vec<(&str, &str)> {
    settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn a_certificate_is_renewed_and_expires_only_in_an_outage() {
    let ports = Ports::free();
    let pebble = Pebble::checking(&ports, 40);
    let server = TestServer::configured(&borrowed(&configured(&ports, &pebble)));
    let admin = server.admin();
    let id = create(&admin, "shop.example.com");
    let served = || ports.page("shop.example.com", &pebble.root()).ok();
    until("the certificate", served);
    let location = format!("https://shop.example.com:{}/", ports.tls);
    assert_eq!(ports.plain("shop.example.com"), (308, Some(location)), "{}", pebble.log());
    let first = certificates(&admin, &id)[0].clone();
    assert_eq!((&first["domain"], &first["state"]), (&json!("shop.example.com"), &json!("valid")));

    let renewed = || {
        let now = certificates(&admin, &id)[0].clone();
        (now["not_after"] != first["not_after"]).then_some(now)
    };
    let renewed = until("the renewal", renewed);
    assert_eq!((&renewed["state"], &renewed["last_error"]), (&json!("valid"), &Value::Null));
    served().unwrap();

    pebble.disconnect();
    let failed = || {
        let now = certificates(&admin, &id)[0].clone();
        now["last_error"].is_string().then_some(now)
    };
    let failed = until("the failure of the next renewal", failed);
    let reason = failed["last_error"].as_str().unwrap();
    assert!(reason.starts_with("the ACME server cannot be reached"), "{reason}");
    let expired = || (certificates(&admin, &id)[0]["state"] == "expired").then_some(());
    until("the expiry", expired);
    ports.page("shop.example.com", &pebble.root()).unwrap_err();
    assert_eq!(ports.plain("shop.example.com").0, 503, "redirected to a certificate that has expired");

    // After the outage it goes on by itself.
    pebble.connect();
    until("the end of the outage", served);
    let shown = certificates(&admin, &id)[0].clone();
    assert_eq!((&shown["state"], &shown["last_error"]), (&json!("valid"), &Value::Null));
}

#[test]
fn a_domain_that_leads_elsewhere_gets_the_reason() {
    let (ports, elsewhere) = (Ports::free(), Ports::free());
    let pebble = Pebble::checking(&elsewhere, YEAR);
    let server = TestServer::configured(&borrowed(&configured(&ports, &pebble)));
    let admin = server.admin();
    let id = create(&admin, "shop.example.com");
    let failed = || {
        let now = certificates(&admin, &id)[0].clone();
        (now["state"] == "failed").then_some(now)
    };
    let failed = until("the failure", failed);
    let reason = failed["last_error"].as_str().unwrap();
    assert!(reason.starts_with("the ACME server refused (connection)"), "{reason}");
    assert!(reason.contains("; and by TLS-ALPN-01: the ACME server refused ("), "{reason}");
    assert_eq!(failed["not_after"], Value::Null);
    assert_eq!(ports.plain("shop.example.com").0, 503);
}

#[test]
fn an_account_is_registered_under_the_terms_that_are_named() {
    const SETTING: &str = "LAUNCHWAY_ACME_ACCEPT_TERMS";
    let ports = Ports::free();
    let pebble = Pebble::checking(&ports, YEAR);
    let mut settings = configured(&ports, &pebble);
    settings.retain(|(name, _)| name != SETTING);
    let mut server = TestServer::configured(&borrowed(&settings));
    let first = server.admin();
    let id = create(&first, "shop.example.com");
    // The last one is that of earlier versions again, now with an account.
    for (number, (terms, is_issued)) in
        [("on", false), ("https://example.com/terms", false), (TERMS, true), ("on", true)]
            .into_iter()
            .enumerate()
    {
        server.set(SETTING, terms);
        server.restart();
        let admin = first.at(server.url());
        let domain = format!("shop-{number}.example.com");
        let body = json!({"id": id, "domain": domain});
        admin.post("/api/v1/deploy/application/domains", &body).success();
        let ended = || {
            let all = certificates(&admin, &id);
            let own = all.as_array().unwrap().iter().find(|one| one["domain"] == domain.as_str());
            own.filter(|one| one["state"] != "pending").cloned()
        };
        let ended = until("the result", ended);
        let reason = ended["last_error"].as_str().unwrap_or_default();
        assert_eq!(ended["state"] == "valid", is_issued, "{terms}: {reason}");
        assert_eq!(reason.contains(TERMS) && reason.contains(SETTING), !is_issued, "{terms}: {reason}");
    }
}

#[test]
fn a_domain_without_an_address_is_not_ordered() {
    let ports = Ports::free();
    let pebble = Pebble::checking(&ports, YEAR);
    let mut settings = configured(&ports, &pebble);
    settings.retain(|(name, _)| name != "LAUNCHWAY_ACME_ADDRESSES");
    let server = TestServer::configured(&borrowed(&settings));
    let admin = server.admin();
    let id = create(&admin, "shop.invalid");
    let failed = || {
        let now = certificates(&admin, &id)[0].clone();
        (now["state"] == "failed").then_some(now)
    };
    let failed = until("the failure", failed);
    let reason = failed["last_error"].as_str().unwrap();
    assert!(reason.starts_with("shop.invalid has no address in DNS"), "{reason}");
    let log = pebble.log();
    assert!(log.contains("/sign-me-up") && !log.contains("/order-plz"), "{log}");
}

#[test]
fn without_port_80_replicas_on_postgres_answer_by_tls() {
    let (leader, other) = (Ports::free(), Ports::free());
    // It reaches only the front proxy of the replica that does not lead, and only by TLS.
    let pebble = Pebble::checking(&Ports { http: super::free_port(), tls: other.tls }, YEAR);
    let server = TestServer::configured_on_postgres(&borrowed(&configured(&leader, &pebble)));
    let admin = server.admin();
    let replica = server.replica(&borrowed(&configured(&other, &pebble)));
    let id = create(&admin.at(replica.url()), "shop.example.com");
    for ports in [&leader, &other] {
        let served = || {
            let now = certificates(&admin, &id)[0].clone();
            assert_ne!(now["state"], "failed", "{now}: {}", pebble.log());
            ports.page("shop.example.com", &pebble.root()).ok()
        };
        until("the certificate", served);
    }
    let shown = certificates(&admin, &id)[0].clone();
    assert_eq!((&shown["state"], &shown["last_error"]), (&json!("valid"), &Value::Null), "{}", pebble.log());
    replica.kill_front();
    server.kill_front();
}

#[test]
fn every_replica_on_postgres_answers_and_serves() {
    let (leader, other) = (Ports::free(), Ports::free());
    // It reaches only the front proxy of the replica that does not lead.
    let pebble = Pebble::checking(&other, YEAR);
    let server = TestServer::configured_on_postgres(&borrowed(&configured(&leader, &pebble)));
    let admin = server.admin();
    let replica = server.replica(&borrowed(&configured(&other, &pebble)));
    let there = admin.at(replica.url());
    let id = create(&there, "shop.example.com");
    for ports in [&leader, &other] {
        let served = || ports.page("shop.example.com", &pebble.root()).ok();
        until("the certificate", served);
    }
    assert_eq!(certificates(&there, &id), certificates(&admin, &id));
    replica.kill_front();
    server.kill_front();
}
