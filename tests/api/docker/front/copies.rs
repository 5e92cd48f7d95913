//! Several copies of an application: all of them answer, and no request fails while their number changes.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use launchway_testkit::{docker::docker, server::WITH_A_FRONT};
use serde_json::json;

use super::{status, wrk::Load};
use crate::{
    docker::deployments::{
        repository::{Repository, web_server},
        stage::{DEPLOY, Stage, spec, text},
    },
    wait::until,
};

const WEB: &str = "web.ada-s-team.localhost";
/// A request that must not be retried: it is lost with its container.
const SLOW: (&str, &str) = ("POST", "/cgi-bin/slow");

/// A web server that names the container that answers, at once and slowly, and prints a line when it starts.
fn commit_named(repository: &Repository, version: &str) {
    let script = |pause: &str| {
        format!("#!/bin/sh\n{pause}printf 'Content-Type: text/plain\\r\\n\\r\\n%s\\n' \"$(hostname)\"\n")
    };
    let more = "COPY who slow /www/cgi-bin/\nRUN chmod 755 /www/cgi-bin/who /www/cgi-bin/slow";
    let dockerfile = web_server(more).replace(
        r#"CMD ["httpd", "-f", "-p", "8080", "-h", "/www"]"#,
        r#"CMD echo "copy starts"; exec httpd -f -p 8080 -h /www"#,
    );
    repository.write("who", script("")).write("slow", script("sleep 0.3\n"));
    repository.write("index.html", version).write("Dockerfile", dockerfile).commit();
}

/// Returns the names of the containers that answer several requests.
fn who(stage: &Stage) -> BTreeSet<String> {
    let visitor = stage.server.visitor(WEB);
    let names = (0..30).map(|_| {
        let answer = visitor.get("/cgi-bin/who");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.text.trim_end().to_owned()
    });
    names.collect()
}

/// Deploys an application with this number of copies.
fn deploy(stage: &Stage, repository: &Repository, replicas: u16) -> (String, String) {
    commit_named(repository, "version 0");
    let mut spec = spec("web", repository);
    spec["replicas"] = json!(replicas);
    let (id, deployment) = stage.create_live(&spec);
    (id, text(&deployment["id"]))
}

/// Changes the number of copies, and waits until that many containers answer.
#[track_caller]
fn scale(stage: &Stage, id: &str, replicas: usize) {
    let changed = stage.admin.put(&format!("{DEPLOY}?id={id}"), &json!({"replicas": replicas})).success();
    assert_eq!(changed["replicas"], replicas);
    until("the right number of copies", || {
        (stage.engine.containers().len() == replicas && who(stage).len() == replicas).then_some(())
    });
}

mod on_sqlite {
    #[test]
    fn a_killed_copy_fails_no_request_and_comes_back() {
        super::a_killed_copy_fails_no_request_and_comes_back(super::Stage::on_sqlite(&[super::WITH_A_FRONT]));
    }
}

mod on_postgres {
    #[test]
    fn a_killed_copy_fails_no_request_and_comes_back() {
        super::a_killed_copy_fails_no_request_and_comes_back(super::Stage::on_postgres(&[
            super::WITH_A_FRONT,
        ]));
    }
}

fn a_killed_copy_fails_no_request_and_comes_back(stage: Stage) {
    let repository = stage.repository("web");
    let (id, deployment) = deploy(&stage, &repository, 3);
    let all = who(&stage);
    assert_eq!(all.len(), 3, "{}", stage.story_of(&deployment));
    let containers = stage.engine.containers();
    assert_eq!(containers.len(), 3);

    let loads = [true, false].map(|is_kept| Load::on(stage.server.front(), WEB, ("GET", "/"), is_kept));
    docker(&["kill", &containers[1]]);
    let killed = Instant::now();
    until("a copy that is back", || (who(&stage) == all).then_some(()));
    assert!(killed.elapsed() < Duration::from_secs(45), "{:?}", killed.elapsed());
    docker(&["rm", "--force", &containers[2]]);
    until("another copy", || {
        let now = who(&stage);
        (now.len() == 3 && now != all).then_some(())
    });
    let all_results = loads.map(Load::stop);
    // Each of the eight connections of a load may have had a request in flight, twice.
    assert!(
        all_results.iter().all(|wrk_results| wrk_results.requests > 20 && wrk_results.failed <= 16),
        "{all_results:?}"
    );

    until("a healthy application", || {
        let application = stage.application(&id);
        (application["status"]["status"] == "running" && application["status_detail"].is_null()).then_some(())
    });
    until("the lines of every copy", || {
        let log = stage.story_of(&deployment);
        let has = |copy: u8| log.contains(&format!("runtime: copy {copy} | copy starts"));
        (has(1) && has(2) && has(3)).then_some(())
    });
    assert_eq!(stage.application(&id)["deployments"].as_array().unwrap().len(), 1);
    stage.has_containers(3);
}

#[test]
fn scaling_under_load_fails_no_request() {
    let stage = Stage::on_sqlite(&[WITH_A_FRONT]);
    let repository = stage.repository("web");
    let (id, deployment) = deploy(&stage, &repository, 1);
    let loads = [true, false].map(|is_kept| Load::on(stage.server.front(), WEB, SLOW, is_kept));
    scale(&stage, &id, 3);
    scale(&stage, &id, 1);
    scale(&stage, &id, 2);
    let all_results = loads.map(Load::stop);
    assert!(
        all_results.iter().all(|wrk_results| wrk_results.requests > 20 && wrk_results.failed == 0),
        "{all_results:?}"
    );
    assert_eq!(stage.application(&id)["deployments"].as_array().unwrap().len(), 1, "nothing was deployed");
    let log = stage.story_of(&deployment);
    for step in ["Scaling from 1 to 3 copies", "Scaling from 3 to 1 copies", "Scaling from 1 to 2 copies"] {
        assert!(log.contains(step), "{log}");
    }
}

#[test]
fn deployments_of_three_copies_fail_no_request() {
    let mut stage = Stage::on_sqlite(&[WITH_A_FRONT]);
    let repository = stage.repository("web");
    let (id, first) = deploy(&stage, &repository, 3);
    let loads = [true, false].map(|is_kept| Load::on(stage.server.front(), WEB, SLOW, is_kept));
    commit_named(&repository, "version 1");
    stage.deployed(&stage.redeploy(&id));
    stage.has_containers(3);
    stage.server.terminate();
    stage.server.restart();
    stage.reconnect();
    // A few requests beside the load may all go to two of the copies.
    let before = until("all copies", || Some(who(&stage)).filter(|found| found.len() == 3));
    stage.admin.post(&format!("{DEPLOY}/restart"), &json!({"id": id})).success();
    until("a restart", || {
        let now = who(&stage);
        (now.len() == 3 && now.is_disjoint(&before)).then_some(())
    });
    let back = stage.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first})).success();
    stage.deployed(&text(&back["id"]));
    stage.has_containers(3);
    let all_results = loads.map(Load::stop);
    assert!(
        all_results.iter().all(|wrk_results| wrk_results.requests > 20 && wrk_results.failed == 0),
        "{all_results:?}"
    );

    stage.admin.post(&format!("{DEPLOY}/stop"), &json!({"id": id})).success();
    until("stopped copies", || {
        let running = docker(&["ps", "--quiet", "--no-trunc"]);
        let is_stopped = stage.engine.containers().iter().all(|container| !running.contains(container));
        (is_stopped && status(&stage, WEB) == 503).then_some(())
    });
    stage.admin.post(&format!("{DEPLOY}/restart"), &json!({"id": id})).success();
    until("all copies", || (status(&stage, WEB) == 200 && who(&stage).len() == 3).then_some(()));
    stage.has_containers(3);
    stage.admin.delete(&format!("{DEPLOY}?id={id}")).success();
    stage.has_containers(0);
}
