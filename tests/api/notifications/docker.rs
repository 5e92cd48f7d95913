//! Notifications about finished deployments, by the quickest kinds that are real.

use launchway_testkit::{external::TestReceiver, server::TestServer};
use serde_json::{Value, json};

use super::{Fixture, Start, WEBHOOK, allowing, body, from_both_databases, only, settled, text};
use crate::{
    docker::deployments::{
        harness::{DEPLOY, Harness, spec},
        repository::web_server_by,
    },
    wait::until,
};

from_both_databases!(who_cancels_a_deployment_or_replaces_one_is_named);

fn image(name: &str) -> Value {
    json!({
        "name": name, "repository": "registry.example/shop", "port": 80, "environment": "production",
        "build_pack": "image",
    })
}

/// There is no engine, so that deployments wait.
fn who_cancels_a_deployment_or_replaces_one_is_named(start: Start) {
    let fixture = Fixture::new(start);
    fixture.add_channel("generic");
    let shop = fixture.admin.post(DEPLOY, &image("shop")).success();
    let first = text(&shop["deployments"][0]["id"]);
    fixture.admin.post(&format!("{DEPLOY}/cancel-deployment"), &json!({"id": first})).success();
    let message = only(&fixture.receiver.wait_for(1), "deployment.cancelled");
    let data = &message["data"];
    assert_eq!((&data["application"], &data["environment"]), (&json!("shop"), &json!("production")));
    assert_eq!((&data["deployment_id"], &data["application_id"]), (&json!(first), &shop["id"]));
    assert_eq!(data["requested_by"], "ada");

    let by_id = json!({"id": shop["id"]});
    let second = text(&fixture.admin.post(&format!("{DEPLOY}/redeploy"), &by_id).success()["id"]);
    let third = text(&fixture.admin.post(&format!("{DEPLOY}/redeploy"), &by_id).success()["id"]);
    until("the end of the one that was replaced", || {
        let path = format!("{DEPLOY}/deployments/{second}");
        (fixture.admin.get(&path).success()["status"]["status"] == "cancelled").then_some(())
    });
    let replaced = body(&fixture.receiver.wait_for(2)[1]);
    assert_eq!(replaced["type"], "deployment.cancelled");
    assert_eq!(replaced["data"]["deployment_id"], second.as_str());
    assert!(text(&replaced["data"]["reason"]).contains(&third), "{replaced}");
    settled(&fixture.admin, "delivered", 2);
}

mod with_an_engine {
    use super::*;

    #[test]
    fn on_sqlite() {
        what_is_published_and_what_fails_is_announced(Harness::on_sqlite);
    }

    #[test]
    fn on_postgres() {
        what_is_published_and_what_fails_is_announced(Harness::on_postgres);
    }
}

fn what_is_published_and_what_fails_is_announced(start: fn(&[(&str, &str)]) -> Harness) {
    let receiver = TestReceiver::taking();
    let allowed = allowing(&receiver);
    let harness = start(&[
        ("LAUNCHWAY_OUTBOUND_ALLOW", &allowed),
        ("LAUNCHWAY_PUBLIC_URL", "https://launchway.example.com"),
    ]);
    super::add_channel(&harness.admin, "generic", &receiver.url());
    let site = harness.repository("site");
    let commit = site.write("index.html", "a page").commit();
    let mut spec = spec("site", &site);
    (spec["build_pack"], spec["health_check_path"]) = (json!("static"), json!(""));
    let (id, first) = harness.create_live(&spec);
    let message = only(&receiver.wait_for(1), "deployment.succeeded");
    let data = &message["data"];
    assert_eq!((&data["application_id"], &data["deployment_id"]), (&json!(id), &first["id"]));
    assert_eq!((&data["branch"], &data["commit_hash"]), (&json!("main"), &json!(commit)));
    assert_eq!((&data["requested_by"], &data["organization"]), (&json!("ada"), &json!("ada's Team")));
    assert!(data["duration_seconds"].is_number(), "{data}");
    let url =
        format!("https://launchway.example.com/api/v1/deploy/application/deployments/{}", text(&first["id"]));
    assert_eq!(data["url"], url.as_str());
    assert!(data.get("last_lines").is_none() && data.get("reason").is_none(), "{data}");

    let second = harness.change(&id, &json!({"branch": "nowhere"}));
    harness.failed(&second);
    let message = only(&receiver.wait_for(2), "deployment.failed");
    let data = &message["data"];
    assert_eq!(data["deployment_id"], second.as_str());
    assert!(!text(&data["reason"]).is_empty(), "{data}");
    let lines: Vec<String> = data["last_lines"].as_array().unwrap().iter().map(text).collect();
    let story = harness.story_of(&second);
    assert!(!lines.is_empty() && lines.len() <= 15);
    assert!(lines.iter().all(|line| story.contains(line.as_str())), "{lines:?} of {story}");

    site.write("index.html", "a newer page").commit();
    harness.deployed(&harness.change(&id, &json!({"branch": "main"})));
    let back = harness.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first["id"]})).success();
    harness.deployed(&text(&back["id"]));
    let message: Vec<Value> = receiver.wait_for(4).iter().map(body).collect();
    let back = message.iter().find(|message| message["data"]["deployment_id"] == back["id"]).unwrap();
    assert_eq!((&back["type"], &back["data"]["rollback_to"]), (&json!("deployment.succeeded"), &first["id"]));
    settled(&harness.admin, "delivered", 4);
}

#[test]
fn a_version_that_does_not_stay_up_is_reported_once() {
    let receiver = TestReceiver::taking();
    let allowed = allowing(&receiver);
    let harness = Harness::on_sqlite(&[("LAUNCHWAY_OUTBOUND_ALLOW", &allowed)]);
    harness.admin.post(WEBHOOK, &json!({"type": "generic", "webhook_url": receiver.url()})).success();
    let repository = harness.repository("shop");
    let dying = web_server_by("", "httpd -p 8080 -h /www; echo alive; sleep 2; exit 1");
    repository.write("Dockerfile", dying).write("index.html", "a page").commit();
    let (id, deployment) = harness.create_live(&spec("shop", &repository));
    only(&receiver.wait_for(1), "deployment.succeeded");
    until("the failure", || (harness.application(&id)["status"]["status"] == "failed").then_some(()));
    let message = only(&receiver.wait_for(2), "deployment.failed");
    assert_eq!(message["data"]["deployment_id"], deployment["id"]);
    assert!(text(&message["data"]["reason"]).contains("keeps restarting"), "{message}");
    settled(&harness.admin, "delivered", 2);
}

#[test]
fn who_wants_no_messages_costs_nothing() {
    let fixture = Fixture::new(TestServer::configured);
    super::add(&fixture.admin, "grace@example.com");
    let count =
        |table: &str| fixture.server.query(&format!("SELECT CAST(COUNT(*) AS TEXT) AS value FROM {table}"));
    assert_eq!((count("events"), count("deliveries")), (vec!["0".to_owned()], vec!["0".to_owned()]));
    assert_eq!(fixture.receiver.connections(), 0);
}
