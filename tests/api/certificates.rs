//! Certificates of domains: issued by an ACME server, or uploaded.

mod api_domain;
mod gate;
mod hsts;
mod issuance;
mod pebble;

use std::{path::Path, process::Command};

use launchway_testkit::{
    client::{Answer, Client},
    external::{Authority, Identity},
    ports::free_port,
    server::TestServer,
};
use serde_json::{Value, json};

use crate::wait::until;

const APPLICATION: &str = "/api/v1/deploy/application";
const CERTIFICATES: &str = "/api/v1/deploy/application/certificates";

super::on_both_databases!(
    an_uploaded_certificate_is_served_at_once,
    a_certificate_that_cannot_be_served_is_refused,
    certificates_of_others_are_not_found,
);

/// The addresses of a server with TLS.
struct Ports {
    http: u16,
    tls: u16,
}

impl Ports {
    fn free() -> Self {
        Self { http: free_port(), tls: free_port() }
    }

    /// Returns the settings of a front proxy with TLS at these ports.
    fn settings(&self) -> [(String, String); 2] {
        [
            ("LAUNCHWAY_PROXY_BIND".to_owned(), format!("127.0.0.1:{}", self.http)),
            ("LAUNCHWAY_PROXY_TLS_BIND".to_owned(), format!("127.0.0.1:{}", self.tls)),
        ]
    }

    /// Starts the server again with TLS at these ports.
    fn give_to(&self, server: &mut TestServer) {
        for (name, value) in self.settings() {
            server.set(&name, &value);
        }
        server.restart();
    }

    /// Returns the body at a host over TLS, if its certificate is valid by the authorities in `file`.
    fn page(&self, host: &str, file: &Path) -> Result<String, String> {
        self.curl(host, "/", &[], file)
    }

    /// Returns the body at a path of a host in the same way, with further arguments of curl.
    fn curl(&self, host: &str, path: &str, arguments: &[&str], file: &Path) -> Result<String, String> {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "20", "--cacert"])
            .arg(file)
            .args(["--resolve", &format!("{host}:{}:127.0.0.1", self.tls)])
            .args(arguments)
            .arg(format!("https://{host}:{}{path}", self.tls))
            .output()
            .unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Returns the status and the location of the response at a host over HTTP.
    fn plain(&self, host: &str) -> (u16, Option<String>) {
        let client = Client::new(&format!("http://127.0.0.1:{}", self.http)).with_header("host", host);
        let answer = client.get("/");
        (answer.status, answer.headers.get("location").cloned())
    }
}

/// Creates an application with a domain, and returns its id.
fn create(admin: &Client, domain: &str) -> String {
    try_to_create(admin, domain).success()["id"].as_str().unwrap().to_owned()
}

fn try_to_create(admin: &Client, domain: &str) -> Answer {
    let body = json!({
        "name": "shop", "environment": "production", "repository": "registry.invalid/shop",
        "build_pack": "image", "port": 80, "domain": domain,
    });
    admin.post(APPLICATION, &body)
}

/// Returns the certificates of an application.
fn certificates(admin: &Client, id: &str) -> Value {
    admin.get(&format!("{APPLICATION}?id={id}")).success()["certificates"].clone()
}

fn upload(admin: &Client, id: &str, domain: &str, identity: &Identity) -> Answer {
    let body = json!({
        "id": id, "domain": domain,
        "certificate": identity.certificate, "private_key": identity.key,
    });
    admin.put(CERTIFICATES, &body)
}

fn an_uploaded_certificate_is_served_at_once(mut server: TestServer) {
    let ports = Ports::free();
    ports.give_to(&mut server);
    let (admin, authority) = (server.admin(), Authority::new());
    let id = create(&admin, "shop.example.com");
    assert_eq!(certificates(&admin, &id), json!([]));
    let folder = tempfile::tempdir().unwrap();
    let roots = folder.path().join("roots.pem");
    std::fs::write(&roots, authority.pem()).unwrap();
    ports.page("shop.example.com", &roots).unwrap_err();

    let shown =
        upload(&admin, &id, "shop.example.com", &authority.vouch_for(&["shop.example.com"])).success();
    let [shown] = shown["certificates"].as_array().unwrap().as_slice() else { panic!("{shown}") };
    assert_eq!(shown["domain"], "shop.example.com");
    assert_eq!((&shown["state"], &shown["last_error"]), (&json!("valid"), &Value::Null));
    assert!(shown["not_after"].is_string(), "{shown}");
    ports.page("shop.example.com", &roots).unwrap();
    let location = format!("https://shop.example.com:{}/", ports.tls);
    assert_eq!(ports.plain("shop.example.com"), (308, Some(location)));
    let list = admin.get("/api/v1/deploy/applications").success();
    assert_eq!(list["applications"][0]["certificates"][0]["state"], "valid");

    // The front proxy serves it without the server, and after a restart of itself.
    server.kill_front();
    server.restart();
    let admin = admin.at(server.url());
    ports.page("shop.example.com", &roots).unwrap();
    let entries = admin.get("/api/v1/audit/logs?page_size=100").success().to_string();
    assert!(entries.contains("uploaded a certificate for shop.example.com"), "{entries}");
    assert!(!entries.contains("PRIVATE KEY") && !server.log().contains("PRIVATE KEY"));

    let gone = json!({"id": id, "domain": "shop.example.com"});
    let shown = admin.send_json("DELETE", CERTIFICATES, &gone).success();
    assert_eq!(shown["certificates"], json!([]));
    ports.page("shop.example.com", &roots).unwrap_err();
    assert_eq!(ports.plain("shop.example.com").0, 503);
    assert_eq!(admin.send_json("DELETE", CERTIFICATES, &gone).status, 404);

    // With its domain, a certificate goes.
    upload(&admin, &id, "shop.example.com", &authority.vouch_for(&["shop.example.com"])).success();
    admin.send_json("DELETE", "/api/v1/deploy/application/domains", &gone).success();
    until("the end of the certificate", || ports.page("shop.example.com", &roots).is_err().then_some(()));
}

fn a_certificate_that_cannot_be_served_is_refused(server: TestServer) {
    let (admin, authority) = (server.admin(), Authority::new());
    let id = create(&admin, "shop.example.com");
    let own = authority.vouch_for(&["shop.example.com"]);
    let other = authority.vouch_for(&["other.example.com"]);
    let mixed = Identity { certificate: own.certificate.clone(), key: other.key.clone() };
    let expired = authority.vouched_for(&["shop.example.com"]);
    for (identity, expected) in [
        (&other, "the certificate is not for `shop.example.com`"),
        (&mixed, "the private key is not that of the certificate"),
        (&expired, "the certificate has expired on 2002-01-01"),
    ] {
        let answer = upload(&admin, &id, "shop.example.com", identity);
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.text.contains(expected), "{answer:?}");
        assert!(!answer.text.contains("PRIVATE KEY"), "{answer:?}");
    }
    assert_eq!(upload(&admin, &id, "other.example.com", &other).status, 404);
    assert_eq!(certificates(&admin, &id), json!([]));
}

fn certificates_of_others_are_not_found(server: TestServer) {
    let (admin, authority) = (server.admin(), Authority::new());
    let id = create(&admin, "shop.example.com");
    let own = authority.vouch_for(&["shop.example.com"]);
    upload(&admin, &id, "shop.example.com", &own).success();
    let organization = admin.post("/api/v1/organizations", &json!({"name": "Others", "description": ""}));
    let organization = organization.success()["id"].as_str().unwrap().to_owned();
    let other = admin.with_header("x-organization-id", &organization);
    let missing = "00000000-0000-7000-8000-000000000000";
    for id in [id.as_str(), missing] {
        let answer = upload(&other, id, "shop.example.com", &own);
        assert_eq!((answer.status, answer.text.contains("the application was not found")), (404, true));
        let body = json!({"id": id, "domain": "shop.example.com"});
        assert_eq!(other.send_json("DELETE", CERTIFICATES, &body).status, 404);
    }
    assert_eq!(certificates(&admin, &id)[0]["state"], "valid");
}
