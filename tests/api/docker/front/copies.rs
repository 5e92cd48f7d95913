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
        harness::{DEPLOY, Harness, spec, text},
        repository::{Repository, web_server},
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
fn who(harness: &Harness) -> BTreeSet<String> {
    let visitor = harness.server.visitor(WEB);
    let names = (0..30).map(|_| {
        let answer = visitor.get("/cgi-bin/who");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.text.trim_end().to_owned()
    });
    names.collect()
}

/// Deploys an application with this number of copies.
fn deploy(harness: &Harness, repository: &Repository, replicas: u16) -> (String, String) {
    commit_named(repository, "version 0");
    let mut spec = spec("web", repository);
    spec["replicas"] = json!(replicas);
    let (id, deployment) = harness.create_live(&spec);
    (id, text(&deployment["id"]))
}

/// Changes the number of copies, and waits until that many containers answer.
#[track_caller]
fn scale(harness: &Harness, id: &str, replicas: usize) {
    let changed = harness.admin.put(&format!("{DEPLOY}?id={id}"), &json!({"replicas": replicas})).success();
    assert_eq!(changed["replicas"], replicas);
    until("the right number of copies", || {
        (harness.engine.containers().len() == replicas && who(harness).len() == replicas).then_some(())
    });
}

mod on_sqlite {
    #[test]
    fn a_killed_copy_fails_no_request_and_comes_back() {
        super::a_killed_copy_fails_no_request_and_comes_back(super::Harness::on_sqlite(&[
            super::WITH_A_FRONT,
        ]));
    }
}

mod on_postgres {
    #[test]
    fn a_killed_copy_fails_no_request_and_comes_back() {
        super::a_killed_copy_fails_no_request_and_comes_back(super::Harness::on_postgres(&[
            super::WITH_A_FRONT,
        ]));
    }
}

fn a_killed_copy_fails_no_request_and_comes_back(harness: Harness) {
    let repository = harness.repository("web");
    let (id, deployment) = deploy(&harness, &repository, 3);
    let all = who(&harness);
    assert_eq!(all.len(), 3, "{}", harness.story_of(&deployment));
    let containers = harness.engine.containers();
    assert_eq!(containers.len(), 3);

    let loads = [true, false].map(|is_kept| Load::on(harness.server.front(), WEB, ("GET", "/"), is_kept));
    docker(&["kill", &containers[1]]);
    let killed = Instant::now();
    until("a copy that is back", || (who(&harness) == all).then_some(()));
    assert!(killed.elapsed() < Duration::from_secs(45), "{:?}", killed.elapsed());
    docker(&["rm", "--force", &containers[2]]);
    until("another copy", || {
        let now = who(&harness);
        (now.len() == 3 && now != all).then_some(())
    });
    let all_results = loads.map(Load::stop);
    // Each of the eight connections of a load may have had a request in flight, twice.
    assert!(
        all_results.iter().all(|wrk_results| wrk_results.requests > 20 && wrk_results.failed <= 16),
        "{all_results:?}"
    );

    until("a healthy application", || {
        let application = harness.application(&id);
        (application["status"]["status"] == "running" && application["status_detail"].is_null()).then_some(())
    });
    until("the lines of every copy", || {
        let log = harness.story_of(&deployment);
        let has = |copy: u8| log.contains(&format!("runtime: copy {copy} | copy starts"));
        (has(1) && has(2) && has(3)).then_some(())
    });
    assert_eq!(harness.application(&id)["deployments"].as_array().unwrap().len(), 1);
    harness.has_containers(3);
}

#[test]
fn scaling_under_load_fails_no_request() {
    let harness = Harness::on_sqlite(&[WITH_A_FRONT]);
    let repository = harness.repository("web");
    let (id, deployment) = deploy(&harness, &repository, 1);
    let loads = [true, false].map(|is_kept| Load::on(harness.server.front(), WEB, SLOW, is_kept));
    scale(&harness, &id, 3);
    scale(&harness, &id, 1);
    scale(&harness, &id, 2);
    let all_results = loads.map(Load::stop);
    assert!(
        all_results.iter().all(|wrk_results| wrk_results.requests > 20 && wrk_results.failed == 0),
        "{all_results:?}"
    );
    assert_eq!(harness.application(&id)["deployments"].as_array().unwrap().len(), 1, "nothing was deployed");
    let log = harness.story_of(&deployment);
    for step in ["Scaling from 1 to 3 copies", "Scaling from 3 to 1 copies", "Scaling from 1 to 2 copies"] {
        assert!(log.contains(step), "{log}");
    }
}

#[test]
fn deployments_of_three_copies_fail_no_request() {
    let mut harness = Harness::on_sqlite(&[WITH_A_FRONT]);
    let repository = harness.repository("web");
    let (id, first) = deploy(&harness, &repository, 3);
    let loads = [true, false].map(|is_kept| Load::on(harness.server.front(), WEB, SLOW, is_kept));
    commit_named(&repository, "version 1");
    harness.deployed(&harness.redeploy(&id));
    harness.has_containers(3);
    harness.server.terminate();
    harness.server.restart();
    harness.reconnect();
    // A few requests beside the load may all go to two of the copies.
    let before = until("all copies", || Some(who(&harness)).filter(|found| found.len() == 3));
    harness.admin.post(&format!("{DEPLOY}/restart"), &json!({"id": id})).success();
    until("a restart", || {
        let now = who(&harness);
        (now.len() == 3 && now.is_disjoint(&before)).then_some(())
    });
    let back = harness.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first})).success();
    harness.deployed(&text(&back["id"]));
    harness.has_containers(3);
    let all_results = loads.map(Load::stop);
    assert!(
        all_results.iter().all(|wrk_results| wrk_results.requests > 20 && wrk_results.failed == 0),
        "{all_results:?}"
    );

    harness.admin.post(&format!("{DEPLOY}/stop"), &json!({"id": id})).success();
    until("stopped copies", || {
        let running = docker(&["ps", "--quiet", "--no-trunc"]);
        let is_stopped = harness.engine.containers().iter().all(|container| !running.contains(container));
        (is_stopped && status(&harness, WEB) == 503).then_some(())
    });
    harness.admin.post(&format!("{DEPLOY}/restart"), &json!({"id": id})).success();
    until("all copies", || (status(&harness, WEB) == 200 && who(&harness).len() == 3).then_some(()));
    harness.has_containers(3);
    harness.admin.delete(&format!("{DEPLOY}?id={id}")).success();
    harness.has_containers(0);
}
