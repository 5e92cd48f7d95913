//! Two organizations on the same machines: neither reaches the other.

use launchway_testkit::repository::web_server;
use serde_json::json;

use super::stage::SwarmStage;
use crate::deployments::stage::{DEPLOY, text};

#[test]
fn two_organizations_do_not_reach_each_other() {
    let swarm = SwarmStage::start(2);
    let stage = &swarm.stage;
    swarm.repository("web").commit_page("of the first");
    let (_, first) = stage.create_live(&swarm.spec("web", 2));
    let first_id = text(&first["id"]);

    // Every address of the first one: in its overlay, and at the ports of both nodes.
    let filter = format!("label=launchway.deployment={first_id}");
    let services = swarm.lab.docker(1, &["service", "ls", "--quiet", "--filter", &filter]);
    let mut targets = Vec::new();
    for service in services.lines() {
        let port = "{{(index .Spec.EndpointSpec.Ports 0).PublishedPort}}";
        let port = swarm.lab.docker(1, &["service", "inspect", "--format", port, service]);
        targets.extend([1, 2].map(|node| format!("{}:{port}", swarm.lab.address(node))));
    }
    for node in [1, 2] {
        let own = swarm.lab.docker(node, &["ps", "--quiet", "--filter", "name=launchway-"]);
        for container in own.lines() {
            let address = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}";
            let listed = swarm.lab.docker(node, &["inspect", "--format", address, container]);
            targets.extend(listed.split_whitespace().map(|address| format!("{address}:8080")));
            let bridge = swarm.lab.gateway_address(node, container);
            targets.push(format!("{bridge}:8080"));
        }
    }
    assert!(targets.len() >= 8, "{targets:?}");

    let other = stage.admin.post("/api/v1/organizations", &json!({"name": "Another team"})).success();
    let organization = text(&other["id"]);
    let there = stage.admin.with_header("x-organization-id", &organization);
    swarm
        .repository("other")
        .write("Dockerfile", web_server(""))
        .write("index.html", "of the second\n")
        .commit();
    let created = there.post(DEPLOY, &swarm.spec("other", 2)).success();
    let deployment = text(&created["deployments"][0]["id"]);
    crate::wait::until_within(std::time::Duration::from_secs(90), "a deployment", || {
        let now = there.get(&format!("{DEPLOY}/deployments/{deployment}")).success();
        (now["status"]["status"] == "deployed").then_some(())
    });

    let fetch = |node: usize, container: &str, target: &str| {
        let line = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {}", target.replace(':', " "));
        let output = swarm.lab.try_docker(node, &["exec", container, "sh", "-c", &line]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mut tried = 0;
    for node in [1, 2] {
        let filter = format!("name=launchway-{deployment}");
        let own = swarm.lab.docker(node, &["ps", "--quiet", "--filter", &filter]);
        for container in own.lines() {
            // It reaches itself, so an answer would be seen.
            let itself = fetch(node, container, "127.0.0.1:8080");
            assert!(itself.ends_with("of the second\n"), "{itself:?}");
            for target in &targets {
                assert_eq!(fetch(node, container, target), "", "{target} answered");
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 2 * targets.len());
    // Without the rule it would reach the ports of the other node.
    let filter = format!("name=launchway-{deployment}");
    let container = swarm.lab.docker(1, &["ps", "--quiet", "--filter", &filter]);
    swarm.lab.flush_rules(1);
    let there = targets.iter().filter(|target| target.starts_with(&swarm.lab.address(2)));
    let answers: Vec<String> = there.map(|target| fetch(1, &container, target)).collect();
    assert!(answers.iter().any(|answer| answer.ends_with("of the first\n")), "{answers:?}");

    // The front proxy reaches both.
    assert_eq!(swarm.page(), Ok("of the first".to_owned()));
    let second = stage.server.visitor("other.another-team.localhost").get("/");
    assert_eq!(second.text.trim(), "of the second");
}
