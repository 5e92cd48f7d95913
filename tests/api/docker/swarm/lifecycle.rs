//! From a repository to copies on two machines, and back.

use launchway_testkit::repository::web_server_by;
use serde_json::json;

use super::harness::SwarmHarness;
use crate::{
    docker::deployments::harness::{DEPLOY, text},
    wait::until,
};

/// The build log has the line itself, so it prints something else.
const SERVE: &str = "echo \"serving $((1 + 1)) copies\"; exec httpd -f -p 8080 -h /www";

#[test]
fn an_application_lives_on_two_machines() {
    let swarm = SwarmHarness::start(2);
    let (harness, repository) = (&swarm.harness, swarm.repository("web"));
    repository.write("Dockerfile", web_server_by("", SERVE)).write("index.html", "one\n").commit();
    let (id, first) = harness.create_live(&swarm.spec("web", 2));
    let first_id = text(&first["id"]);
    assert_eq!(swarm.lab.running_on(&first_id), ["lwt-node1", "lwt-node2"]);
    assert!(text(&first["container_image"]).contains("@sha256:"), "{first}");
    let story = harness.story_of(&first_id);
    for line in ["Pushing the image to 10.78.0.1:5005", "http://10.78.0.11:", "http://10.78.0.12:"] {
        assert!(story.contains(line), "{line:?} is not in:\n{story}");
    }
    assert_eq!(swarm.page(), Ok("one".to_owned()));
    until("the output of both copies", || {
        (harness.story_of(&first_id).matches("serving 2 copies").count() == 2).then_some(())
    });

    // Another version replaces it, and the first one comes back by its digest.
    repository.write("index.html", "two\n").commit();
    let second = harness.deployed(&harness.redeploy(&id));
    assert_eq!(swarm.page(), Ok("two".to_owned()));
    until("the end of the first version", || (swarm.services().len() == 2).then_some(()));
    let back = harness.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first_id})).success();
    let third = harness.deployed(&text(&back["id"]));
    assert_eq!(swarm.page(), Ok("one".to_owned()));
    let digest = |image: &serde_json::Value| text(image).split_once('@').unwrap().1.to_owned();
    assert_eq!(digest(&third["container_image"]), digest(&first["container_image"]));
    assert_ne!(digest(&third["container_image"]), digest(&second["container_image"]));

    // It gets another number of copies.
    harness.admin.put(&format!("{DEPLOY}?id={id}&redeploy=false"), &json!({"replicas": 1})).success();
    until("one copy", || (swarm.services().len() == 1).then_some(()));
    assert_eq!(swarm.page(), Ok("one".to_owned()));

    harness.admin.delete(&format!("{DEPLOY}?id={id}")).success();
    until("the end of everything", || swarm.services().is_empty().then_some(()));
    assert_eq!(swarm.page(), Err(404));
}

#[test]
fn a_copy_that_ends_is_started_again() {
    let swarm = SwarmHarness::start(2);
    let (harness, repository) = (&swarm.harness, swarm.repository("web"));
    repository.commit_page("one");
    let (id, deployment) = harness.create_live(&swarm.spec("web", 1));
    let deployment = text(&deployment["id"]);
    let on = swarm.lab.running_on(&deployment);
    let node = if on == ["lwt-node1"] { 1 } else { 2 };
    let containers_of = |node| swarm.lab.docker(node, &["ps", "--quiet", "--filter", "name=launchway-"]);
    let before = containers_of(node);
    swarm.lab.docker(node, &["kill", &before]);
    until("another container", || {
        // The swarm chooses the node anew.
        let now = [1, 2].map(containers_of).concat();
        (!now.is_empty() && now != before && swarm.page() == Ok("one".to_owned())).then_some(())
    });
    // A service that somebody removed is created anew.
    let ids = || swarm.lab.docker(1, &["service", "ls", "--quiet"]);
    let removed = ids();
    swarm.lab.docker(1, &["service", "rm", &removed]);
    until("another service", || {
        let now = ids();
        (!now.is_empty() && now != removed && swarm.page() == Ok("one".to_owned())).then_some(())
    });
    until("a running application", || {
        (harness.application(&id)["status"]["status"] == "running").then_some(())
    });
}
