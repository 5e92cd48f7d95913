//! API tokens that may write and not read: a write answers with its result, and nothing else can be read.

use serde_json::json;

use super::harness::{DEPLOY, Harness, spec, text};

#[test]
fn a_write_answers_even_if_nothing_else_can_be_read() {
    let harness = Harness::on_sqlite(&[]);
    let only = |permission: &str| {
        let body = json!({"name": permission, "permissions": [permission]});
        let token = text(&harness.admin.post("/api/v1/auth/tokens", &body).success()["token"]);
        harness.admin.with_token(&token)
    };
    let (creator, updater) = (only("deploy:create"), only("deploy:update"));
    let repository = harness.repository("shop");
    repository.write("index.html", "a page").commit();
    let mut site = spec("shop", &repository);
    site["build_pack"] = json!("static");
    site["health_check_path"] = json!("");

    let once = creator.with_header("idempotency-key", "one");
    let created = once.post(DEPLOY, &site).success();
    assert_eq!(once.post(DEPLOY, &site).success()["id"], created["id"]);
    let (id, first) = (text(&created["id"]), text(&created["deployments"][0]["id"]));
    harness.deployed(&first);

    let once = creator.with_header("idempotency-key", "two");
    let redeployed = once.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id})).success();
    assert_eq!(
        once.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id})).success()["id"],
        redeployed["id"]
    );
    harness.deployed(&text(&redeployed["id"]));
    let back = creator.post(&format!("{DEPLOY}/rollback"), &json!({"id": first})).success();
    harness.deployed(&text(&back["id"]));

    let changed = updater.put(&format!("{DEPLOY}?id={id}&redeploy=false"), &json!({"labels": ["a"]}));
    assert_eq!(changed.success()["labels"], json!(["a"]));
    let domain = json!({"id": id, "domain": "shop.example"});
    updater.post(&format!("{DEPLOY}/domains"), &domain).success();
    updater.send_json("DELETE", &format!("{DEPLOY}/domains"), &domain).success();
    let stopped = updater.post(&format!("{DEPLOY}/stop"), &json!({"id": id})).success();
    assert_eq!(stopped["status"]["status"], "stopped");

    for token in [&creator, &updater] {
        token.get(&format!("{DEPLOY}?id={id}")).failure(403, "forbidden");
        token.get(&format!("{DEPLOY}/deployments/{first}")).failure(403, "forbidden");
    }
}
