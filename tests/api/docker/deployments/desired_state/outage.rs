//! An engine that does not answer: what needs it waits, everything else continues.

use std::{thread, time::Duration};

use launchway_testkit::{docker::EngineForwarder, server::WITH_A_FRONT};
use serde_json::{Value, json};

use crate::{
    docker::deployments::stage::{Stage, spec, text},
    docker::front::{page, site},
    wait::until,
};

const WAITING: &str = "warn: Waiting for the Docker engine: ";
/// Jobs that wait for the engine are tried again every three seconds.
const SEVERAL_ATTEMPTS: Duration = Duration::from_secs(10);

/// A server whose engine is behind a forwarder that is closed.
fn stage_without_engine(settings: &[(&str, &str)]) -> (Stage, EngineForwarder) {
    let forwarder = EngineForwarder::closed();
    let host = forwarder.host();
    let stage = Stage::on_sqlite(&[&[WITH_A_FRONT, ("DOCKER_HOST", host.as_str())], settings].concat());
    (stage, forwarder)
}

/// Requests a deployment of a container, and returns its id.
fn request_container(stage: &Stage) -> String {
    let repository = stage.repository("web");
    repository.commit_page("a container");
    stage.create(&spec("web", &repository)).1
}

#[track_caller]
fn wait_for_ready(stage: &Stage, status: &str) -> Value {
    until(&format!("/ready with {status}"), || {
        let ready = stage.server.client().get("/ready").success();
        (ready["status"] == status).then_some(ready)
    })
}

fn engine_up(stage: &Stage) -> String {
    let metrics = stage.server.client().get("/metrics").text;
    let line = metrics.lines().find(|line| line.starts_with("launchway_engine_up "));
    line.unwrap_or_else(|| panic!("no launchway_engine_up in {metrics}")).to_owned()
}

#[test]
fn a_deployment_waits_for_the_engine_and_goes_live() {
    let (stage, forwarder) = stage_without_engine(&[]);
    let ready = wait_for_ready(&stage, "degraded");
    assert!(text(&ready["reason"]).contains("the Docker engine does not answer since "), "{ready}");
    assert!(text(&ready["reason"]).contains("engine.sock"), "{ready}");
    assert_eq!(engine_up(&stage), "launchway_engine_up 0");

    let repository = stage.repository("site");
    repository.write("index.html", "a site").commit();
    let deployment = request_container(&stage);
    stage.create_live(&site("site", &repository));
    assert_eq!(page(&stage, "site.ada-s-team.localhost"), "a site");

    until("a line about the engine", || stage.story_of(&deployment).contains(WAITING).then_some(()));
    thread::sleep(SEVERAL_ATTEMPTS);
    let story = stage.story_of(&deployment);
    assert_eq!(story.matches("Waiting for the Docker engine").count(), 1, "{story}");
    assert_eq!(stage.deployment(&deployment)["status"]["status"], "queued", "{story}");

    forwarder.open();
    stage.deployed(&deployment);
    assert_eq!(page(&stage, "web.ada-s-team.localhost"), "a container");
    let ready = wait_for_ready(&stage, "ok");
    assert_eq!(ready.get("reason"), None, "{ready}");
    assert_eq!(engine_up(&stage), "launchway_engine_up 1");
    let story = stage.story_of(&deployment);
    assert_eq!(story.matches("Waiting for the Docker engine").count(), 1, "{story}");
}

#[test]
fn a_deployment_fails_when_the_engine_stays_away() {
    let (stage, _forwarder) = stage_without_engine(&[("LAUNCHWAY_ENGINE_TIMEOUT", "1s")]);
    wait_for_ready(&stage, "degraded");
    let story = stage.failed(&request_container(&stage));
    let last = story.lines().last().unwrap();
    assert!(last.starts_with("error: ") && last.contains("the Docker engine did not answer"), "{story}");
    assert!(last.contains("1 s"), "the time that it was waited for: {story}");
}

#[test]
fn applications_survive_an_engine_that_goes_and_comes() {
    let (stage, forwarder) = stage_without_engine(&[]);
    forwarder.open();
    wait_for_ready(&stage, "ok");
    let first = request_container(&stage);
    stage.deployed(&first);
    let host = "web.ada-s-team.localhost";
    assert_eq!(page(&stage, host), "a container");

    forwarder.close();
    wait_for_ready(&stage, "degraded");
    assert_eq!(page(&stage, host), "a container", "its container still runs");
    let application = stage.admin.get("/api/v1/deploy/applications").success()["applications"][0].clone();
    assert_eq!(application["status"]["status"], "running", "a missing engine is no break-down");
    assert_eq!(application["status_detail"], json!(null));
    let second = stage.redeploy(&text(&application["id"]));
    until("a line about the engine", || stage.story_of(&second).contains(WAITING).then_some(()));

    forwarder.open();
    stage.deployed(&second);
    wait_for_ready(&stage, "ok");
    assert_eq!(page(&stage, host), "a container");
    stage.has_containers(1);
}
