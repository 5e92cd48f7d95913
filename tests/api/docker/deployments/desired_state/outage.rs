//! An engine that does not answer: what needs it waits, everything else continues.

use std::{thread, time::Duration};

use launchway_testkit::{docker::EngineForwarder, server::WITH_A_FRONT};
use serde_json::{Value, json};

use crate::{
    docker::deployments::harness::{Harness, spec, text},
    docker::front::{page, site},
    wait::until,
};

const WAITING: &str = "warn: Waiting for the Docker engine: ";
/// Jobs that wait for the engine are tried again every three seconds.
const SEVERAL_ATTEMPTS: Duration = Duration::from_secs(10);

/// A server whose engine is behind a forwarder that is closed.
fn harness_without_engine(settings: &[(&str, &str)]) -> (Harness, EngineForwarder) {
    let forwarder = EngineForwarder::closed();
    let host = forwarder.host();
    let harness = Harness::on_sqlite(&[&[WITH_A_FRONT, ("DOCKER_HOST", host.as_str())], settings].concat());
    (harness, forwarder)
}

/// Requests a deployment of a container, and returns its id.
fn request_container(harness: &Harness) -> String {
    let repository = harness.repository("web");
    repository.commit_page("a container");
    harness.create(&spec("web", &repository)).1
}

#[track_caller]
fn wait_for_ready(harness: &Harness, status: &str) -> Value {
    until(&format!("/ready with {status}"), || {
        let ready = harness.server.client().get("/ready").success();
        (ready["status"] == status).then_some(ready)
    })
}

fn engine_up(harness: &Harness) -> String {
    let metrics = harness.server.client().get("/metrics").text;
    let line = metrics.lines().find(|line| line.starts_with("launchway_engine_up "));
    line.unwrap_or_else(|| panic!("no launchway_engine_up in {metrics}")).to_owned()
}

#[test]
fn a_deployment_waits_for_the_engine_and_goes_live() {
    let (harness, forwarder) = harness_without_engine(&[]);
    let ready = wait_for_ready(&harness, "degraded");
    assert!(text(&ready["reason"]).contains("the Docker engine does not answer since "), "{ready}");
    assert!(text(&ready["reason"]).contains("engine.sock"), "{ready}");
    assert_eq!(engine_up(&harness), "launchway_engine_up 0");

    let repository = harness.repository("site");
    repository.write("index.html", "a site").commit();
    let deployment = request_container(&harness);
    harness.create_live(&site("site", &repository));
    assert_eq!(page(&harness, "site.ada-s-team.localhost"), "a site");

    until("a line about the engine", || harness.story_of(&deployment).contains(WAITING).then_some(()));
    thread::sleep(SEVERAL_ATTEMPTS);
    let story = harness.story_of(&deployment);
    assert_eq!(story.matches("Waiting for the Docker engine").count(), 1, "{story}");
    assert_eq!(harness.deployment(&deployment)["status"]["status"], "queued", "{story}");

    forwarder.open();
    harness.deployed(&deployment);
    assert_eq!(page(&harness, "web.ada-s-team.localhost"), "a container");
    let ready = wait_for_ready(&harness, "ok");
    assert_eq!(ready.get("reason"), None, "{ready}");
    assert_eq!(engine_up(&harness), "launchway_engine_up 1");
    let story = harness.story_of(&deployment);
    assert_eq!(story.matches("Waiting for the Docker engine").count(), 1, "{story}");
}

#[test]
fn a_deployment_fails_when_the_engine_stays_away() {
    let (harness, _forwarder) = harness_without_engine(&[("LAUNCHWAY_ENGINE_TIMEOUT", "1s")]);
    wait_for_ready(&harness, "degraded");
    let story = harness.failed(&request_container(&harness));
    let last = story.lines().last().unwrap();
    assert!(last.starts_with("error: ") && last.contains("the Docker engine did not answer"), "{story}");
    assert!(last.contains("1 s"), "the time that it was waited for: {story}");
}

#[test]
fn applications_survive_an_engine_that_goes_and_comes() {
    let (harness, forwarder) = harness_without_engine(&[]);
    forwarder.open();
    wait_for_ready(&harness, "ok");
    let first = request_container(&harness);
    harness.deployed(&first);
    let host = "web.ada-s-team.localhost";
    assert_eq!(page(&harness, host), "a container");

    forwarder.close();
    wait_for_ready(&harness, "degraded");
    assert_eq!(page(&harness, host), "a container", "its container still runs");
    let application = harness.admin.get("/api/v1/deploy/applications").success()["applications"][0].clone();
    assert_eq!(application["status"]["status"], "running", "a missing engine is no break-down");
    assert_eq!(application["status_detail"], json!(null));
    let second = harness.redeploy(&text(&application["id"]));
    until("a line about the engine", || harness.story_of(&second).contains(WAITING).then_some(()));

    forwarder.open();
    harness.deployed(&second);
    wait_for_ready(&harness, "ok");
    assert_eq!(page(&harness, host), "a container");
    harness.has_containers(1);
}
