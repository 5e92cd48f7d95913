//! Resources of another organization are not found. These tests need no engine.

use launchway_testkit::{
    people::join,
    server::{ADMIN_PASSWORD, TestServer},
};
use serde_json::{Value, json};

use super::harness::{DEPLOY, text};

const UNKNOWN: &str = "01980000-0000-7000-8000-0000000000ff";
const KEY: &str = "/api/v1/organizations/deploy-key";

crate::on_both_databases!(
    what_is_anothers_and_what_does_not_exist_are_refused_alike,
    an_organization_has_one_deploy_key_until_it_is_replaced,
    a_viewer_sees_no_variables,
);

fn spec() -> Value {
    json!({
        "name": "shop", "repository": "registry.example/shop", "port": 8080, "environment": "production",
        "build_pack": "image", "environment_variables": {"A": "b"}, "build_variables": {"C": "d"},
    })
}

fn what_is_anothers_and_what_does_not_exist_are_refused_alike(server: TestServer) {
    let admin = server.admin();
    let application = admin.post(DEPLOY, &spec()).success();
    let (id, deployment) = (text(&application["id"]), text(&application["deployments"][0]["id"]));
    let grace = server.log_in(server.other_tenant("admin").email, ADMIN_PASSWORD);
    for (method, path, body) in [
        ("GET", "/api/v1/deploy/application?id={application}", ""),
        ("PUT", "/api/v1/deploy/application?id={application}", r#"{"port": 80}"#),
        ("DELETE", "/api/v1/deploy/application?id={application}", ""),
        ("GET", "/api/v1/deploy/application/logs/{application}", ""),
        ("GET", "/api/v1/deploy/application/deployments?id={application}", ""),
        ("GET", "/api/v1/deploy/application/deployments/{deployment}", ""),
        ("GET", "/api/v1/deploy/application/deployments/{deployment}/logs", ""),
        ("GET", "/api/v1/deploy/application/deployments/{deployment}/logs/stream", ""),
        ("POST", "/api/v1/deploy/application/redeploy", r#"{"id": "{application}"}"#),
        ("POST", "/api/v1/deploy/application/restart", r#"{"id": "{application}"}"#),
        ("POST", "/api/v1/deploy/application/stop", r#"{"id": "{application}"}"#),
        (
            "POST",
            "/api/v1/deploy/application/domains",
            r#"{"id": "{application}", "domain": "www.example.com"}"#,
        ),
        (
            "DELETE",
            "/api/v1/deploy/application/domains",
            r#"{"id": "{application}", "domain": "www.example.com"}"#,
        ),
        ("POST", "/api/v1/deploy/application/rollback", r#"{"id": "{deployment}"}"#),
        ("POST", "/api/v1/deploy/application/cancel-deployment", r#"{"id": "{deployment}"}"#),
    ] {
        let ask = |application: &str, deployment: &str| {
            let fill =
                |text: &str| text.replace("{application}", application).replace("{deployment}", deployment);
            grace.send(method, &fill(path), (!body.is_empty()).then(|| fill(body)).as_deref())
        };
        let (foreign, missing) = (ask(&id, &deployment), ask(UNKNOWN, UNKNOWN));
        foreign.failure(404, "not_found");
        assert_eq!((foreign.status, &foreign.text), (missing.status, &missing.text), "{method} {path}");
    }
    let theirs = grace.get("/api/v1/deploy/applications").success();
    assert_eq!(theirs["applications"], json!([]));
    // A name is taken in its own organization only.
    grace.post(DEPLOY, &spec()).success();
    assert_eq!(admin.get(&format!("{DEPLOY}?id={id}")).success()["port"], 8080);
}

fn an_organization_has_one_deploy_key_until_it_is_replaced(server: TestServer) {
    let admin = server.admin();
    let answer = admin.get(KEY);
    let first = text(&answer.success()["public_key"]);
    assert_eq!(answer.success().as_object().unwrap().len(), 1);
    assert!(first.starts_with("ssh-ed25519 AAAA"), "{first}");
    assert_eq!(admin.get(KEY).text, answer.text);

    let grace = server.log_in(server.other_tenant("member").email, ADMIN_PASSWORD);
    assert_ne!(text(&grace.get(KEY).success()["public_key"]), first);
    grace.post(KEY, &json!({})).failure(403, "forbidden");

    let second = text(&admin.post(KEY, &json!({})).success()["public_key"]);
    assert_ne!(second, first);
    assert_eq!(admin.get(KEY).success()["public_key"], second);
    let entries = admin.get("/api/v1/audit/logs").success();
    let entries: Vec<_> =
        entries["activities"].as_array().unwrap().iter().map(|one| text(&one["message"])).collect();
    assert!(
        entries[0].contains("replaced the deploy key") && entries[1].contains("created the deploy key"),
        "{entries:?}"
    );
    for secret in ["PRIVATE KEY", "b3BlbnNzaC1rZXk"] {
        assert!(!server.log().contains(secret));
    }
}

fn a_viewer_sees_no_variables(server: TestServer) {
    let admin = server.admin();
    let id = text(&admin.post(DEPLOY, &spec()).success()["id"]);
    let viewer = join(&server, &admin, "viewer@example.com", "viewer").log_in();
    let member = join(&server, &admin, "member@example.com", "member").log_in();
    for (client, environment, build) in [(viewer, "{}", "{}"), (member, r#"{"A":"b"}"#, r#"{"C":"d"}"#)] {
        let one = client.get(&format!("{DEPLOY}?id={id}")).success();
        let list = client.get("/api/v1/deploy/applications").success();
        for shown in [&one, &list["applications"][0]] {
            assert_eq!(shown["environment_variables"], environment);
            assert_eq!(shown["build_variables"], build);
        }
    }
}
