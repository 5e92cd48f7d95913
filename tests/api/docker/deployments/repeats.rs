//! Idempotent requests that are sent more than once. These tests need no engine.

use launchway_testkit::server::TestServer;
use serde_json::{Value, json};

use super::harness::{DEPLOY, text};
use crate::wait::at_once;

crate::on_both_databases!(
    a_request_with_a_key_is_carried_out_once,
    twins_at_the_same_moment_make_one_record,
    a_redeployment_with_a_key_is_carried_out_once,
);

fn spec(name: &str) -> Value {
    json!({
        "name": name, "repository": "registry.example/shop", "port": 8080, "environment": "production",
        "build_pack": "image",
    })
}

fn a_request_with_a_key_is_carried_out_once(server: TestServer) {
    let admin = server.admin();
    let keyed = admin.with_header("idempotency-key", "first");
    let first = keyed.post(DEPLOY, &spec("shop"));
    first.success();
    let again = keyed.post(DEPLOY, &spec("shop"));
    assert_eq!((again.status, &again.text), (200, &first.text));
    assert_eq!(again.headers["content-type"], "application/json");
    let other = keyed.post(DEPLOY, &spec("another"));
    assert!(other.failure(409, "conflict").to_lowercase().contains("idempotency"), "{other:?}");
    assert_eq!(count(&server), 1);

    // The key of another operation, and no key at all, are other requests.
    let id = &first.success()["id"];
    keyed.post(&format!("{DEPLOY}/redeploy"), &json!({ "id": id })).success();
    admin.post(DEPLOY, &spec("shop")).failure(409, "conflict");
    admin.post(DEPLOY, &spec("another")).success();
    assert_eq!(count(&server), 2);

    // A rejected request is not stored: a retry may succeed.
    let second = admin.with_header("idempotency-key", "second");
    second.post(DEPLOY, &json!({"name": "third"})).failure(400, "validation_failed");
    second.post(DEPLOY, &spec("third")).success();
    let long = admin.with_header("idempotency-key", &"k".repeat(256));
    assert!(long.post(DEPLOY, &spec("fourth")).failure(400, "validation_failed").contains("Idempotency-Key"));
    admin.with_header("idempotency-key", &"k".repeat(255)).post(DEPLOY, &spec("fourth")).success();
}

fn twins_at_the_same_moment_make_one_record(server: TestServer) {
    let admin = server.admin().with_header("idempotency-key", "twins");
    let answers = at_once(8, |_| admin.post(DEPLOY, &spec("shop")));
    let ids: Vec<_> = answers.iter().map(|answer| text(&answer.success()["id"])).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(count(&server), 1);
}

fn a_redeployment_with_a_key_is_carried_out_once(server: TestServer) {
    let admin = server.admin();
    let application = admin.post(DEPLOY, &spec("shop")).success();
    let body = json!({"id": application["id"]});
    let keyed = admin.with_header("idempotency-key", "again");
    let answers = at_once(4, |_| keyed.post(&format!("{DEPLOY}/redeploy"), &body));
    let ids: Vec<_> = answers.iter().map(|answer| text(&answer.success()["id"])).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let path = format!("{DEPLOY}/deployments?id={}", text(&application["id"]));
    assert_eq!(admin.get(&path).success()["pagination"]["total_count"], 2);
}

fn count(server: &TestServer) -> usize {
    server.query("SELECT name AS value FROM applications").len()
}
