//! Metrics, and access to them.

use launchway_testkit::{
    client::Client,
    server::{ADMIN_PASSWORD, TestServer},
};
use serde_json::json;

use crate::wait::until;

#[test]
fn requests_are_counted_by_route_and_not_by_path() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for number in 0..3 {
        admin.delete(&format!("/api/v1/auth/tokens/01980000-0000-7000-8000-00000000000{number}"));
        admin.get(&format!("/made-up-{number}"));
        admin.send(&format!("MADEUP{number}"), "/health", None);
    }
    let answer = server.client().get("/metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.headers["content-type"].contains("text"), "{:?}", answer.headers);
    let plain = server.client().with_header("accept", "text/plain;version=0.0.4").get("/metrics");
    assert_eq!(plain.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert!(plain.text.contains("# TYPE launchway_http_requests_total counter"), "{}", plain.text);
    let text = &answer.text;
    let count = |labels: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with("launchway_http_requests_total{") && line.contains(labels));
        line.unwrap_or_else(|| panic!("{labels} is not in:\n{text}")).rsplit(' ').next().unwrap()
    };
    assert_eq!(count(r#"method="DELETE",route="/api/v1/auth/tokens/{id}",status="404""#), "3");
    assert_eq!(count(r#"method="GET",route="none",status="404""#), "3");
    assert_eq!(count(r#"method="other",route="/health",status="405""#), "3");
    assert_eq!(count(r#"method="POST",route="/api/v1/auth/register",status="200""#), "1");
    for made_up in ["made-up", "MADEUP", "01980000"] {
        assert!(!text.contains(made_up), "{made_up} is in:\n{text}");
    }
    for name in ["launchway_http_request_duration_seconds_bucket", "launchway_database_transactions_total"] {
        assert!(text.contains(name), "{name} is not in:\n{text}");
    }
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn remote_metrics_require_an_installation_administrator() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let program = |name: &str, permissions: Option<&[&str]>| {
        let spec = json!({"name": name, "permissions": permissions});
        let token = admin.post("/api/v1/auth/tokens", &spec).success();
        server.client().with_token(token["token"].as_str().unwrap())
    };
    let issued_for_it = program("prometheus", Some(&["metrics:read"]));
    let others = [program("ci", None), program("reader", Some(&["deploy:read", "audit:read"]))];
    let grace = server.log_in(server.other_tenant("admin").email, ADMIN_PASSWORD);
    // It is for metrics and for nothing else.
    issued_for_it.get("/api/v1/deploy/applications").failure(403, "forbidden");
    issued_for_it.get("/api/v1/audit/logs").failure(403, "forbidden");
    // Only an administrator of the installation can put it into a token; an admin of an organization
    // cannot.
    let spec = json!({"name": "prometheus", "permissions": ["metrics:read"]});
    let refused = grace.post("/api/v1/auth/tokens", &spec).failure(400, "validation_failed");
    assert!(refused.contains("`metrics:read`"), "{refused}");
    for (name, value) in [
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "for=127.0.0.1"),
        ("via", "1.1 caddy"),
        ("host", "deploy.example.com"),
    ] {
        let elsewhere = |client: &Client| client.with_header(name, value);
        let refused = elsewhere(&server.client()).get("/metrics");
        refused.failure(401, "unauthenticated");
        assert_eq!(refused.headers["www-authenticate"], "Bearer");
        elsewhere(&server.client().with_token("garbage")).get("/metrics").failure(401, "unauthenticated");
        elsewhere(&grace).get("/metrics").failure(403, "forbidden");
        for other in &others {
            let message = elsewhere(other).get("/metrics").failure(403, "forbidden");
            assert!(message.contains("`metrics:read`"), "{message}");
        }
        for allowed in [&admin, &issued_for_it] {
            let answer = elsewhere(allowed).get("/metrics");
            assert!(answer.status == 200 && answer.text.contains("launchway_"), "{answer:?}");
        }
    }
    // The token has no more permissions than its owner.
    server.execute("UPDATE users SET kind = 'app_user'");
    let elsewhere = issued_for_it.with_header("via", "1.1 caddy");
    until("the change to the user", || (elsewhere.get("/metrics").status == 403).then_some(()));
    // On the machine itself no authentication is needed.
    for local in [&server.client(), &grace, &server.client().with_token("garbage")] {
        assert_eq!(local.get("/metrics").status, 200);
    }
}
