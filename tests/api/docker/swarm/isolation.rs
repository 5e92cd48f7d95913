//! Two organizations on the same machines: neither reaches the other.

use std::{env, fs, os::unix::fs::PermissionsExt as _, process::Stdio};

use launchway_testkit::{repository::web_server, swarm::SwarmLab};
use serde_json::json;

use super::harness::SwarmHarness;
use crate::docker::deployments::harness::{DEPLOY, text};

#[test]
fn two_organizations_do_not_reach_each_other() {
    let swarm = SwarmHarness::start(2);
    let harness = &swarm.harness;
    swarm.repository("web").commit_page("of the first");
    let (_, first) = harness.create_live(&swarm.spec("web", 2));
    let first_id = text(&first["id"]);

    // In its overlay, and at the ports of both nodes.
    let targets = swarm.lab.addresses_of(2, &first_id, 8080);
    assert!(targets.len() >= 8, "{targets:?}");

    let other = harness.admin.post("/api/v1/organizations", &json!({"name": "Another team"})).success();
    let organization = text(&other["id"]);
    let there = harness.admin.with_header("x-organization-id", &organization);
    swarm
        .repository("other")
        .write("Dockerfile", web_server(""))
        .write("index.html", "of the second\n")
        .commit();
    let created = there.post(DEPLOY, &swarm.spec("other", 2)).success();
    let deployment = text(&created["deployments"][0]["id"]);
    crate::wait::until("a deployment", || {
        let now = there.get(&format!("{DEPLOY}/deployments/{deployment}")).success();
        (now["status"]["status"] == "deployed").then_some(())
    });

    let own = swarm.lab.containers_of(2, &deployment);
    assert_eq!(own.len(), 2);
    for container in &own {
        // It reaches itself, so an answer would be seen.
        let itself = swarm.lab.fetch_from(container, "127.0.0.1:8080");
        assert!(itself.ends_with("of the second\n"), "{itself:?}");
        for target in &targets {
            assert_eq!(swarm.lab.fetch_from(container, target), "", "{target} answered");
        }
    }
    let report = doctor(&swarm);
    assert!(report.contains("ok    node packet filter: keeps containers from the machines in"), "{report}");
    assert!(report.contains("ok    clock: differs from that of PostgreSQL by 0."), "{report}");
    assert!(report.contains("ok    ports of nodes: 2 of other nodes answer"), "{report}");
    // Without the rule it would reach the ports of the other node.
    let container = own.iter().find(|container| container.node == 1).expect("one is on the first node");
    swarm.lab.flush_rules(1);
    let there = targets.iter().filter(|target| target.starts_with(&swarm.lab.address(2)));
    let answers: Vec<String> = there.map(|target| swarm.lab.fetch_from(container, target)).collect();
    assert!(answers.iter().any(|answer| answer.ends_with("of the first\n")), "{answers:?}");

    let report = doctor(&swarm);
    assert!(
        report.contains("FAIL  node packet filter: containers reach the ports of every machine"),
        "{report}"
    );

    // The front proxy reaches both.
    assert_eq!(swarm.page(), Ok("of the first".to_owned()));
    let second = harness.server.visitor("other.another-team.localhost").get("/");
    assert_eq!(second.text.trim(), "of the second");
}

/// Returns the report of `launchway doctor`, which sees the packet filter of the first node.
fn doctor(swarm: &SwarmHarness) -> String {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("iptables");
    let node = SwarmLab::hostname(1);
    let script = format!("#!/bin/sh\nexec nsenter --net=/run/netns/{node} /usr/sbin/iptables \"$@\"\n");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), env::var("PATH").unwrap());
    let mut command = swarm.harness.server.command(&["doctor"]);
    String::from_utf8(command.env("PATH", path).stdin(Stdio::null()).output().unwrap().stdout).unwrap()
}
