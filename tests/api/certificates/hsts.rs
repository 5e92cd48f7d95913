//! The HSTS policies of domains.

use launchway_testkit::{client::Client, external::Authority, server::TestServer};
use serde_json::json;

use super::{Ports, create, upload};

const HSTS: &str = "/api/v1/deploy/application/hsts";

crate::on_both_databases!(
    a_policy_is_sent_over_https_for_its_domain,
    invalid_and_foreign_policies_are_refused,
);

/// Returns the value of the header at `https://shop.example.com`.
fn header(ports: &Ports, roots: &std::path::Path) -> Option<String> {
    let head = ports.curl("shop.example.com", "/", &["--head"], roots).unwrap();
    let value = head.lines().find_map(|line| line.strip_prefix("strict-transport-security: "));
    value.map(str::to_owned)
}

fn set(admin: &Client, id: &str, seconds: i64) -> launchway_testkit::client::Answer {
    let body = json!({"id": id, "domain": "shop.example.com", "max_age": seconds});
    admin.send_json("PUT", HSTS, &body)
}

fn a_policy_is_sent_over_https_for_its_domain(mut server: TestServer) {
    let (ports, authority) = (Ports::free(), Authority::new());
    ports.give_to(&mut server);
    let admin = server.admin();
    let folder = tempfile::tempdir().unwrap();
    let roots = folder.path().join("roots.pem");
    std::fs::write(&roots, authority.pem()).unwrap();
    let id = create(&admin, "shop.example.com");
    let of_domain = json!({"id": id, "domain": "shop.example.com"});

    // It waits for a certificate.
    let shown = admin.send_json("PUT", HSTS, &of_domain).success();
    assert_eq!(shown["hsts"], json!([{"domain": "shop.example.com", "max_age": 15_552_000}]));
    upload(&admin, &id, "shop.example.com", &authority.vouch_for(&["shop.example.com"])).success();
    assert_eq!(header(&ports, &roots).as_deref(), Some("max-age=15552000"));
    set(&admin, &id, 300).success();
    assert_eq!(header(&ports, &roots).as_deref(), Some("max-age=300"));

    server.kill_front();
    server.restart();
    let admin = admin.at(server.url());
    assert_eq!(header(&ports, &roots).as_deref(), Some("max-age=300"));
    let list = admin.get("/api/v1/deploy/applications").success();
    assert_eq!(list["applications"][0]["hsts"], json!([{"domain": "shop.example.com", "max_age": 300}]));
    let entries = admin.get("/api/v1/audit/logs?page_size=100").success().to_string();
    assert!(entries.contains("set the HSTS policy of shop.example.com"), "{entries}");

    let shown = admin.send_json("DELETE", HSTS, &of_domain).success();
    assert_eq!(shown["hsts"], json!([]));
    assert_eq!(header(&ports, &roots), None);
    assert_eq!(admin.send_json("DELETE", HSTS, &of_domain).status, 404);

    // With its domain, a policy goes.
    set(&admin, &id, 300).success();
    admin.send_json("DELETE", "/api/v1/deploy/application/domains", &of_domain).success();
    let shown = admin.send_json("POST", "/api/v1/deploy/application/domains", &of_domain).success();
    assert_eq!(shown["hsts"], json!([]));
    assert_eq!(set(&admin, &id, 300).status, 200);
}

fn invalid_and_foreign_policies_are_refused(server: TestServer) {
    let admin = server.admin();
    let id = create(&admin, "shop.example.com");
    for seconds in [-1, 63_072_001] {
        let answer = set(&admin, &id, seconds);
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.text.contains("between 0 and 63072000 seconds"), "{answer:?}");
    }
    let other = json!({"id": id, "domain": "other.example.com"});
    assert_eq!(admin.send_json("PUT", HSTS, &other).status, 404);
    let organization = admin.post("/api/v1/organizations", &json!({"name": "Others", "description": ""}));
    let organization = organization.success()["id"].as_str().unwrap().to_owned();
    let stranger = admin.with_header("x-organization-id", &organization);
    for id in [id.as_str(), "00000000-0000-7000-8000-000000000000"] {
        let answer = set(&stranger, id, 300);
        assert_eq!((answer.status, answer.text.contains("the application was not found")), (404, true));
    }
}
