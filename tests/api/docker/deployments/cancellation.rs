//! Cancelled deployments.

use launchway_testkit::client::Answer;
use serde_json::{Value, json};

use super::{
    harness::{DEPLOY, Harness, page_of, spec, text},
    repository::{Repository, web_server},
};

const OLD: &str = "the old page";

super::on_both_engines!(the_newest_that_waits_takes_the_place_of_the_one_before);

fn live(harness: &Harness) -> (Repository, String, Value) {
    let repository = harness.repository("shop");
    repository.commit_page(OLD);
    let (id, deployment) = harness.create_live(&spec("shop", &repository));
    (repository, id, deployment)
}

fn cancel(harness: &Harness, deployment: &str) -> Answer {
    harness.admin.post(&format!("{DEPLOY}/cancel-deployment"), &json!({"id": deployment}))
}

/// Cancels a deployment, and asserts that it ends soon and that nothing is left of it.
#[track_caller]
fn expect_cancelled(harness: &Harness, deployment: &str, old: &Value) {
    let begun = std::time::Instant::now();
    cancel(harness, deployment).success();
    let ended = harness.end_of(deployment);
    assert_eq!(ended["status"]["status"], "cancelled", "{}", harness.story_of(deployment));
    assert!(begun.elapsed().as_secs() < 10, "it took {:?}", begun.elapsed());
    let story = harness.story_of(deployment);
    assert!(story.lines().last().unwrap().to_lowercase().contains("cancelled"), "{story}");
    harness.has_containers(1);
    harness.has_no_work_left();
    assert_eq!(page_of(old), OLD);
    assert_eq!(harness.application(&text(&old["application_id"]))["status"]["status"], "running");
    let message = cancel(harness, deployment).failure(409, "conflict");
    assert!(message.contains("cancelled already"), "{message}");
}

#[test]
fn a_deployment_is_cancelled_while_it_waits() {
    let harness = Harness::on_sqlite(&[]);
    let (repository, id, old) = live(&harness);
    repository.write("Dockerfile", web_server("RUN sleep 60")).commit();
    let first = harness.redeploy(&id);
    harness.reaches(&first, "building");
    let second = harness.redeploy(&id);
    cancel(&harness, &second).success();
    assert_eq!(harness.deployment(&second)["status"]["status"], "cancelled");
    assert_eq!(harness.deployment(&first)["status"]["status"], "building");
    expect_cancelled(&harness, &first, &old);
}

fn the_newest_that_waits_takes_the_place_of_the_one_before(harness: Harness) {
    let (repository, id, _) = live(&harness);
    repository.write("Dockerfile", web_server("RUN sleep 60")).commit();
    let first = harness.redeploy(&id);
    harness.reaches(&first, "building");
    repository.commit_page("the newest page");
    let second = harness.redeploy(&id);
    let third = harness.redeploy(&id);
    assert_eq!(harness.end_of(&second)["status"]["status"], "cancelled");
    let story = harness.story_of(&second);
    assert!(story.contains(&third), "{story}");
    cancel(&harness, &first).success();
    assert_eq!(page_of(&harness.deployed(&third)), "the newest page");
    harness.has_containers(1);
}
