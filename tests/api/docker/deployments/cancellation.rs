//! Cancelled deployments.

use launchway_testkit::client::Answer;
use serde_json::{Value, json};

use super::{
    repository::{Repository, web_server},
    stage::{DEPLOY, Stage, page_of, spec, text},
};

const OLD: &str = "the old page";

super::on_both_stages!(the_newest_that_waits_takes_the_place_of_the_one_before);

fn live(stage: &Stage) -> (Repository, String, Value) {
    let repository = stage.repository("shop");
    repository.commit_page(OLD);
    let (id, deployment) = stage.create_live(&spec("shop", &repository));
    (repository, id, deployment)
}

fn cancel(stage: &Stage, deployment: &str) -> Answer {
    stage.admin.post(&format!("{DEPLOY}/cancel-deployment"), &json!({"id": deployment}))
}

/// Cancels a deployment, and asserts that it ends soon and that nothing is left of it.
#[track_caller]
fn expect_cancelled(stage: &Stage, deployment: &str, old: &Value) {
    let begun = std::time::Instant::now();
    cancel(stage, deployment).success();
    let ended = stage.end_of(deployment);
    assert_eq!(ended["status"]["status"], "cancelled", "{}", stage.story_of(deployment));
    assert!(begun.elapsed().as_secs() < 10, "it took {:?}", begun.elapsed());
    let story = stage.story_of(deployment);
    assert!(story.lines().last().unwrap().to_lowercase().contains("cancelled"), "{story}");
    stage.has_containers(1);
    stage.has_no_work_left();
    assert_eq!(page_of(old), OLD);
    assert_eq!(stage.application(&text(&old["application_id"]))["status"]["status"], "running");
    let message = cancel(stage, deployment).failure(409, "conflict");
    assert!(message.contains("cancelled already"), "{message}");
}

#[test]
fn a_deployment_is_cancelled_while_it_waits() {
    let stage = Stage::on_sqlite(&[]);
    let (repository, id, old) = live(&stage);
    repository.write("Dockerfile", web_server("RUN sleep 60")).commit();
    let first = stage.redeploy(&id);
    stage.reaches(&first, "building");
    let second = stage.redeploy(&id);
    cancel(&stage, &second).success();
    assert_eq!(stage.deployment(&second)["status"]["status"], "cancelled");
    assert_eq!(stage.deployment(&first)["status"]["status"], "building");
    expect_cancelled(&stage, &first, &old);
}

fn the_newest_that_waits_takes_the_place_of_the_one_before(stage: Stage) {
    let (repository, id, _) = live(&stage);
    repository.write("Dockerfile", web_server("RUN sleep 60")).commit();
    let first = stage.redeploy(&id);
    stage.reaches(&first, "building");
    repository.commit_page("the newest page");
    let second = stage.redeploy(&id);
    let third = stage.redeploy(&id);
    assert_eq!(stage.end_of(&second)["status"]["status"], "cancelled");
    let story = stage.story_of(&second);
    assert!(story.contains(&third), "{story}");
    cancel(&stage, &first).success();
    assert_eq!(page_of(&stage.deployed(&third)), "the newest page");
    stage.has_containers(1);
}
