//! Failures on a Swarm: each is a sentence in the log of the deployment.

use std::process::Stdio;

use launchway_testkit::{
    server::{TestServer, command},
    swarm::SwarmLab,
};
use serde_json::json;

use super::harness::SwarmHarness;
use crate::docker::deployments::harness::text;

#[test]
fn a_failure_of_the_cluster_is_a_sentence() {
    let mut swarm = SwarmHarness::start(2);
    let repository = swarm.repository("web");
    repository.commit_page("one");
    let (id, _) = swarm.harness.create_live(&swarm.spec("web", 1));

    swarm.lab.stop_registry();
    let story = swarm.harness.failed(&swarm.harness.redeploy(&id));
    let line = "the image cannot be pushed: the registry `10.78.0.1:5005` cannot be reached";
    assert!(story.contains(line), "{line:?} is not in:\n{story}");
    assert_eq!(swarm.page(), Ok("one".to_owned()), "what runs keeps running");

    swarm.lab.start_registry();
    for node in ["lwt-node1", "lwt-node2"] {
        swarm.lab.docker(1, &["node", "update", "--label-rm", "launchway.apps", node]);
    }
    let story = swarm.harness.failed(&swarm.harness.redeploy(&id));
    let line = "no node can run the container: no suitable node";
    assert!(story.contains(line), "{line:?} is not in:\n{story}");
}

#[test]
fn a_server_starts_only_on_a_manager() {
    let lab = SwarmLab::of_separate_engines(2, 1);
    let refusal = |node: usize| {
        let database = launchway_testkit::postgres::FreshDatabase::create();
        let data = tempfile::tempdir().unwrap();
        let mut settings = lab.settings(node);
        settings.push(("LAUNCHWAY_DATABASE_URL".to_owned(), database.url()));
        let output = command(data.path(), &settings).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = refusal(1);
    assert!(told.contains("the Docker engine of this machine is in no Swarm"), "{told}");
    lab.docker(1, &["swarm", "init", "--advertise-addr", &lab.address(1)]);
    let token = lab.docker(1, &["swarm", "join-token", "--quiet", "worker"]);
    lab.docker(2, &["swarm", "join", "--token", &token, &format!("{}:2377", lab.address(1))]);
    let told = refusal(2);
    assert!(told.contains("this machine is a worker of its Swarm"), "{told}");
}

#[test]
fn a_running_composition_keeps_the_server_from_swarm() {
    let harness = crate::docker::deployments::harness::Harness::on_postgres(&[]);
    let repository = harness.repository("shop");
    repository
        .write("compose.yaml", "services:\n  web:\n    build: .\n    ports: [\"8080\"]\n")
        .commit_page("x");
    let mut spec = crate::docker::deployments::harness::spec("shop", &repository);
    spec["build_pack"] = json!("docker-compose");
    let (_, deployment) = harness.create_live(&spec);
    assert!(text(&deployment["container_image"]).ends_with("-web"));
    let mut server: TestServer = harness.server;
    server.terminate();
    let mut start = server.command(&[]);
    start.env("LAUNCHWAY_ENGINE", "swarm").env("LAUNCHWAY_REGISTRY", "127.0.0.1:5000");
    // An engine that does not answer is waited for, but the record is enough to refuse.
    start
        .env("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", "")
        .env("DOCKER_HOST", "unix:///nonexistent/docker.sock");
    let output = start.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("run without it: `shop`. Start the server with LAUNCHWAY_ENGINE=docker"), "{told}");
}
