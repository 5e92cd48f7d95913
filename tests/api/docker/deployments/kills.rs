//! The server is killed at every point of a deployment, started again, and keeps its guarantees.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use launchway_testkit::{client::Client, docker::docker};
use serde_json::{Value, json};

use super::{
    harness::{DEPLOY, Harness, page_of, spec, text},
    repository::{Repository, web_server, web_server_by},
    trap::{Moment, Trap},
};
use crate::wait::until;

const OLD: &str = "the old page";
const NEW: &str = "the new page";

/// The point at which the server is killed: in the call of a program, and whether the old version still
/// exists.
struct Point {
    moment: Moment,
    program: &'static str,
    pattern: &'static str,
    old_answers: bool,
}

const fn point(moment: Moment, program: &'static str, pattern: &'static str) -> Point {
    Point { moment, program, pattern, old_answers: true }
}

const BUILD: &str = "build *--tag *";
/// The container is created and started by one call.
const RUN: &str = "run --detach *";
/// The post-run command runs between the switch and the end of the deployment.
const POST_RUN: &str = "start --attach *";

/// Generates a test of each point on each database.
macro_rules! kills {
    ($($name:ident: $point:expr;)*) => {
        mod on_sqlite {
            use super::*;
            $(#[test] fn $name() { survives(Harness::on_sqlite, &$point); })*
        }
        mod on_postgres {
            use super::*;
            $(#[test] fn $name() { survives(Harness::on_postgres, &$point); })*
        }
    };
}

kills! {
    before_the_clone: point(Moment::Before, "git", "*fetch --quiet*");
    after_the_clone: point(Moment::After, "git", "*fetch --quiet*");
    in_the_middle_of_the_build: point(Moment::During, "docker", BUILD);
    after_the_build: point(Moment::After, "docker", BUILD);
    before_the_container_is_made: point(Moment::Before, "docker", RUN);
    after_the_start: point(Moment::After, "docker", RUN);
    before_the_new_version_is_kept: point(Moment::Before, "docker", "update --restart *");
    after_the_new_version_was_kept: point(Moment::After, "docker", "update --restart *");
    after_the_switch_and_before_the_end: point(Moment::During, "docker", POST_RUN);
    before_the_old_version_is_retired: point(Moment::Before, "docker", "stop -t *");
    after_the_old_version_was_removed:
        Point { old_answers: false, ..point(Moment::After, "docker", "rm --force *") };
    while_the_new_version_is_asked_whether_it_is_well: PROBE;
}

/// While the new container does not answer yet. No call is specific to this phase, so the test itself
/// kills.
const PROBE: Point = point(Moment::During, "", "");

#[track_caller]
fn is_kept(container: &str) {
    until("a container that the engine starts again", || {
        let policy = docker(&["inspect", "--format", "{{.HostConfig.RestartPolicy.Name}}", container]);
        (policy == "unless-stopped").then_some(())
    });
}

fn survives(start: fn(&[(&str, &str)]) -> Harness, point: &Point) {
    let trap = Trap::new();
    let mut harness = start(&[("PATH", &trap.path())]);
    let repository = harness.repository("shop");
    repository.commit_page(OLD);
    let mut spec = spec("shop", &repository);
    if point.pattern == POST_RUN {
        spec["post_run_command"] = json!("echo tidying; sleep 1");
    }
    let (id, first) = harness.create_live(&spec);
    // Behind the end of its deployment, and not the call that is waited for.
    is_kept(&text(&first["container_id"]));
    let ledger = kill(&mut harness, &trap, &repository, &id, point);
    if point.old_answers {
        assert_eq!(page_of(&first), OLD, "the old version answers without a server, too");
    }

    harness.server.restart();
    harness.reconnect();
    let list = harness.admin.get(&format!("{DEPLOY}/deployments?id={id}")).success();
    let deployments: Vec<_> =
        list["deployments"].as_array().unwrap().iter().map(|one| text(&one["id"])).collect();
    assert_eq!(deployments.len(), 2);
    let second = harness.deployed(&deployments[0]);
    assert_eq!(page_of(&second), NEW, "{}", harness.story_of(&deployments[0]));
    harness.has_containers(1);
    let container = text(&second["container_id"]);
    assert_eq!(harness.engine.containers(), [container.as_str()]);
    is_kept(&container);
    harness.has_no_work_left();
    until("the end of the old version", || {
        (harness.deployment(&text(&first["id"]))["container_status"] == "removed").then_some(())
    });
    assert_eq!(harness.application(&id)["status"]["status"], "running");
    assert_eq!(harness.engine.images().len(), 2, "the images of both versions, and no other");
    expect_kept(&harness, &id, &ledger);
}

/// Deploys a new version, during which the server is killed. Returns the log lines that were seen.
fn kill(
    harness: &mut Harness,
    trap: &Trap,
    repository: &Repository,
    id: &str,
    point: &Point,
) -> BTreeMap<String, String> {
    let is_probe = point.program.is_empty();
    match point.pattern {
        "" => {
            let late = web_server_by("", "sleep 2; exec httpd -f -p 8080 -h /www");
            repository.write("Dockerfile", late).write("index.html", NEW).commit();
        }
        BUILD => {
            let slow = web_server("RUN echo it begins && sleep 2");
            repository.write("Dockerfile", slow).write("index.html", NEW).commit();
        }
        _ => drop(repository.commit_page(NEW)),
    }
    if !is_probe {
        trap.set(harness.server.process_id(), point.moment, point.program, point.pattern);
    }
    let (admin, is_over) = (harness.admin.clone(), AtomicBool::new(false));
    // Read once before anything can happen: the server may be gone before it is read again.
    let seen = lines_in(&admin.get(&log_of(id)).success()).into_iter().collect();
    let ledger = std::thread::scope(|scope| {
        let ledger = scope.spawn(|| watch(&admin, id, seen, &is_over));
        // The server may be gone before it has answered.
        let body = json!({ "id": id }).to_string();
        let answer = admin.try_send("POST", &format!("{DEPLOY}/redeploy"), Some(&body));
        if is_probe {
            let deployment = text(&answer.unwrap().success()["id"]);
            until("the question to the new version", || {
                harness.story_of(&deployment).contains("Waiting for http").then_some(())
            });
            harness.server.kill();
        } else {
            harness.server.wait();
            assert!(trap.is_sprung());
        }
        is_over.store(true, Ordering::Relaxed);
        ledger.join().unwrap()
    });
    assert!(!ledger.is_empty());
    ledger
}

fn log_of(id: &str) -> String {
    format!("{DEPLOY}/logs/{id}?page_size=1000&embed=none")
}

/// Polls the log of an application until the server is down.
fn watch(
    admin: &Client,
    id: &str,
    mut seen: BTreeMap<String, String>,
    is_over: &AtomicBool,
) -> BTreeMap<String, String> {
    while let Ok(answer) = admin.try_send("GET", &log_of(id), None) {
        seen.extend(lines_in(&answer.success()));
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    seen
}

fn lines_in(data: &Value) -> Vec<(String, String)> {
    let lines = data["logs"].as_array().unwrap().iter();
    lines.map(|line| (text(&line["id"]), text(&line["log"]))).collect()
}

/// Asserts that every line that was seen still exists, and that none is missing between others.
fn expect_kept(harness: &Harness, id: &str, ledger: &BTreeMap<String, String>) {
    let data = harness.admin.get(&log_of(id)).success();
    let kept: BTreeMap<String, String> = lines_in(&data).into_iter().collect();
    for (line, text) in ledger {
        assert_eq!(kept.get(line), Some(text), "the line {line} is not as it was");
    }
    let numbers =
        harness.server.query("SELECT CAST(number AS TEXT) AS value FROM application_logs ORDER BY number");
    let expected: Vec<String> = (1..=numbers.len()).map(|number| number.to_string()).collect();
    assert_eq!(numbers, expected);
}
