//! The life of a deployment, the same on every engine: each scenario is written once, and runs on the engine `docker` and on
//! the engine `swarm`.

use std::time::{Duration, Instant};

use launchway_testkit::{
    repository::{Repository, running, web_server, web_server_by},
    server::WITH_A_FRONT,
};
use serde_json::{Value, json};

use super::harness::{DEPLOY, Harness, spec, text};
use crate::wait::until;

/// The time that a deployment takes unless it is cancelled.
const SLEEP: Duration = Duration::from_secs(60);
const SERVE: &str = "echo \"serving $(echo \"$NAME\" | wc -l) lines\"; exec httpd -f -p 8080 -h /www";

/// A server on one of the engines, with a front proxy.
pub(crate) trait EngineHarness {
    fn harness(&self) -> &Harness;

    fn repository(&self, name: &str) -> Repository;

    /// Returns the body of a request that deploys one copy of [`repository`](Self::repository).
    fn spec(&self, name: &str) -> Value;

    /// Returns the number of containers, or of services, that the engine has of the installation.
    fn instances(&self) -> usize;
}

/// A server on the engine `docker`.
struct DockerHarness(Harness);

impl EngineHarness for DockerHarness {
    fn harness(&self) -> &Harness {
        &self.0
    }

    fn repository(&self, name: &str) -> Repository {
        self.0.repository(name)
    }

    fn spec(&self, name: &str) -> Value {
        let mut spec = spec(name, &self.0.repository(name));
        spec["replicas"] = json!(1);
        spec
    }

    fn instances(&self) -> usize {
        self.0.engine.containers().len()
    }
}

#[test]
fn applications_live_on_docker_as_documented() {
    run(&DockerHarness(Harness::on_sqlite(&[WITH_A_FRONT])));
}

/// Runs all scenarios, one after the other, with an application of its own for each.
pub(crate) fn run(on: &dyn EngineHarness) {
    variables_commands_and_output(on);
    stop_and_restart(on);
    rollback(on);
    failures(on);
    cancellation(on);
}

/// Returns the page of an application at the front proxy; the status if it is not 200.
fn page(on: &dyn EngineHarness, name: &str) -> Result<String, u16> {
    let answer = on.harness().server.visitor(&format!("{name}.ada-s-team.localhost")).get("/");
    if answer.status == 200 { Ok(answer.text.trim_end().to_owned()) } else { Err(answer.status) }
}

#[track_caller]
fn serves(on: &dyn EngineHarness, name: &str, expected: Result<&str, u16>) {
    let expected = expected.map(str::to_owned);
    until("the page", || (page(on, name) == expected).then_some(()));
}

#[track_caller]
fn has_instances(on: &dyn EngineHarness, count: usize) {
    until("the right number of instances", || (on.instances() == count).then_some(()));
}

/// Creates an application that serves `text`.
fn live(on: &dyn EngineHarness, name: &str, text: &str) -> (Repository, String, Value) {
    let repository = on.repository(name);
    repository.commit_page(text);
    let (id, deployment) = on.harness().create_live(&on.spec(name));
    (repository, id, deployment)
}

/// Deletes an application, and expects that nothing of it is left.
#[track_caller]
fn delete(on: &dyn EngineHarness, name: &str, id: &str) {
    on.harness().admin.delete(&format!("{DEPLOY}?id={id}")).success();
    on.harness().admin.get(&format!("{DEPLOY}?id={id}")).failure(404, "not_found");
    has_instances(on, 0);
    serves(on, name, Err(404));
    on.harness().has_no_work_left();
}

#[track_caller]
fn expect_lines(story: &str, lines: &[&str]) {
    for line in lines {
        assert!(story.contains(line), "{line:?} is not in:\n{story}");
    }
}

fn variables_commands_and_output(on: &dyn EngineHarness) {
    let (harness, repository) = (on.harness(), on.repository("web"));
    repository.write("Dockerfile", web_server_by("", SERVE)).write("index.html", "one\n").commit();
    let mut spec = on.spec("web");
    spec["environment_variables"] = json!({"NAME": "a name\nof two lines"});
    spec["pre_run_command"] = json!("echo \"prepared $(echo \"$NAME\" | wc -l) lines\"");
    spec["post_run_command"] = json!("echo \"finished $(echo \"$NAME\" | wc -l) lines\"");
    let (id, deployment) = harness.create_live(&spec);
    let deployment = text(&deployment["id"]);
    expect_lines(&harness.story_of(&deployment), &["prepared 2 lines", "finished 2 lines"]);
    assert_eq!(page(on, "web"), Ok("one".to_owned()));
    until("the output of the container", || {
        harness.story_of(&deployment).contains("serving 2 lines").then_some(())
    });
    delete(on, "web", &id);
}

fn stop_and_restart(on: &dyn EngineHarness) {
    let harness = on.harness();
    let (_, id, deployment) = live(on, "stops", "a page");
    let (by_id, deployment) = (json!({"id": id}), text(&deployment["id"]));
    let becomes = |state: &str| {
        until(state, || (harness.application(&id)["status"]["status"] == state).then_some(()));
    };
    let stopped = harness.admin.post(&format!("{DEPLOY}/stop"), &by_id);
    assert_eq!(stopped.success()["status"]["status"], "stopped");
    until("the end of the container", || {
        (harness.deployment(&deployment)["container_status"] == "exited").then_some(())
    });
    serves(on, "stops", Err(503));
    becomes("stopped");
    let mut instances = Vec::new();
    for restarts in 1..=2 {
        harness.admin.post(&format!("{DEPLOY}/restart"), &by_id).success();
        until("the restart", || {
            (harness.story_of(&deployment).matches("Restarted").count() == restarts).then_some(())
        });
        becomes("running");
        until("a container that runs", || {
            (harness.deployment(&deployment)["container_status"] == "running").then_some(())
        });
        serves(on, "stops", Ok("a page"));
        instances.push(harness.deployment(&deployment)["container_id"].clone());
    }
    assert_ne!(instances[0], instances[1], "one that serves is restarted beside itself");
    harness.admin.post(&format!("{DEPLOY}/stop"), &by_id).success();
    becomes("stopped");
    harness.deployed(&harness.redeploy(&id));
    becomes("running");
    serves(on, "stops", Ok("a page"));
    has_instances(on, 1);
    delete(on, "stops", &id);
}

fn rollback(on: &dyn EngineHarness) {
    let harness = on.harness();
    let (repository, id, first) = live(on, "back", "one");
    repository.commit_page("two");
    harness.deployed(&harness.redeploy(&id));
    assert_eq!(page(on, "back"), Ok("two".to_owned()));
    has_instances(on, 1);
    let back = harness.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first["id"]})).success();
    let third = harness.deployed(&text(&back["id"]));
    assert_eq!(third["commit_hash"], first["commit_hash"]);
    assert_eq!(page(on, "back"), Ok("one".to_owned()));
    has_instances(on, 1);
    delete(on, "back", &id);
}

fn failures(on: &dyn EngineHarness) {
    let harness = on.harness();
    let (repository, id, _) = live(on, "fails", "one");
    let fails = || harness.failed(&harness.redeploy(&id));
    repository.write("Dockerfile", running("echo \"I give up\"; exit 3")).commit();
    expect_lines(&fails(), &["the container exited with code 3 before it was healthy", "I give up"]);
    repository.write("Dockerfile", running("[\"/no/such/program\"]")).commit();
    expect_lines(&fails(), &["exec: \"/no/such/program\": "]);
    repository.write("Dockerfile", web_server_by("", "exec httpd -f -p 8081 -h /www")).commit();
    expect_lines(&fails(), &["Waiting for", "not healthy within 20 s"]);
    let broken = json!({"pre_run_command": "echo before; exit 4"});
    harness.admin.put(&format!("{DEPLOY}?id={id}&redeploy=false"), &broken).success();
    repository.commit_page("two");
    expect_lines(&fails(), &["before", "the command ended with exit code 4"]);
    assert_eq!(page(on, "fails"), Ok("one".to_owned()), "what runs keeps running");
    has_instances(on, 1);
    delete(on, "fails", &id);
}

fn cancellation(on: &dyn EngineHarness) {
    let harness = on.harness();
    let (repository, id, _) = live(on, "cancels", "one");
    let after = |dockerfile: String, line: &str| {
        repository.write("Dockerfile", dockerfile).commit();
        let deployment = harness.redeploy(&id);
        until(line, || harness.story_of(&deployment).contains(line).then_some(()));
        let cancel =
            || harness.admin.post(&format!("{DEPLOY}/cancel-deployment"), &json!({"id": deployment}));
        let begun = Instant::now();
        cancel().success();
        let ended = harness.end_of(&deployment);
        assert!(begun.elapsed() < SLEEP / 2, "it took {:?}", begun.elapsed());
        let story = harness.story_of(&deployment);
        assert_eq!(ended["status"]["status"], "cancelled", "{story}");
        assert!(story.lines().last().unwrap().to_lowercase().contains("cancelled"), "{story}");
        has_instances(on, 1);
        harness.has_no_work_left();
        assert_eq!(page(on, "cancels"), Ok("one".to_owned()));
        assert_eq!(harness.application(&id)["status"]["status"], "running");
        let message = cancel().failure(409, "conflict");
        assert!(message.contains("cancelled already"), "{message}");
    };
    let sleep = format!("sleep {}", SLEEP.as_secs());
    after(web_server(&format!("RUN echo a long sleep && {sleep}")), "build: a long sleep");
    after(running(&sleep), "Waiting for");
    delete(on, "cancels", &id);
}
