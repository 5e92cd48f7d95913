//! Containers that are changed by hand.

use launchway_testkit::{docker::docker, server::WITH_A_FRONT};
use serde_json::json;

use super::{Live, inspect, is_running};
use crate::docker::deployments::harness::{Harness, spec, text};

const NETWORK: &str = "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}";
const ADDRESS: &str = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
const IMAGE: &str = "{{.Image}}";

const BROKEN: &str = "error: The application is unhealthy: ";
const SERVES: &str = "info: The application is healthy again";

/// Breaks the container by `command`, and waits until everything is as before. The log must have one more
/// line with `action`.
#[track_caller]
fn survives(live: &Live, command: &[&str], action: &str) {
    let before = [action, BROKEN, SERVES].map(|words| live.count(words));
    docker(command);
    live.wait_until(&format!("recovery from docker {command:?}"), || {
        let now = [action, BROKEN, SERVES].map(|words| live.count(words));
        let is_noted = now[0] > before[0] && now[1] > before[1] && now[2] - before[2] == now[1] - before[1];
        is_noted && live.is_healthy() && live.page("/").as_deref() == Some("a page")
    });
    let application = live.harness.application(&live.id);
    let deployments = application["deployments"].as_array().unwrap();
    assert_eq!(deployments.len(), 1, "the version is the same");
    assert_eq!(text(&deployments[0]["id"]), live.deployment);
}

mod on_sqlite {
    #[test]
    fn a_container_changed_by_hand_serves_again() {
        super::a_container_changed_by_hand_serves_again(super::Harness::on_sqlite(&[super::WITH_A_FRONT]));
    }
}

mod on_postgres {
    #[test]
    fn a_container_changed_by_hand_serves_again() {
        super::a_container_changed_by_hand_serves_again(super::Harness::on_postgres(&[super::WITH_A_FRONT]));
    }
}

fn a_container_changed_by_hand_serves_again(harness: Harness) {
    let live = Live::serving_on(harness, "a page");
    let container = live.container();
    let (network, address) = (inspect(&container, NETWORK), inspect(&container, ADDRESS));
    let exited = "warn: The container exited with code 137: restarting it";
    let changes: [(&[&str], &str); 4] = [
        (&["kill", &container], exited),
        (&["stop", "--time", "0", &container], exited),
        (&["pause", &container], "warn: The container is paused: restarting it"),
        (
            &["network", "disconnect", &network, &container],
            "warn: The container is not connected to its network: restarting it",
        ),
    ];
    for (command, action) in changes {
        survives(&live, command, action);
        assert_eq!(live.container(), container, "{command:?}");
        assert_eq!(inspect(&container, ADDRESS), address, "{command:?}");
    }

    let image = inspect(&container, IMAGE);
    survives(&live, &["rm", "--force", &container], "warn: The container was removed");
    let created = live.container();
    assert_ne!(created, container);
    assert_eq!(inspect(&created, IMAGE), image);
    assert!(live.log().contains("info: Recreating the container from its image"), "{}", live.log());
    live.harness.has_containers(1);
    assert_eq!(live.harness.engine.containers(), [created]);
}

#[test]
fn a_missing_image_fails_the_application_until_redeploy() {
    let live = Live::serving("a page", &[]);
    let container = live.container();
    let (name, image) = (inspect(&container, "{{.Config.Image}}"), inspect(&container, IMAGE));
    // Its name first: the container keeps the rest of it, but no other can be made from it.
    docker(&["image", "rm", "--force", &name]);
    docker(&["rm", "--force", &container]);
    docker(&["image", "rm", "--force", &image]);
    live.wait_until("a reason that names the image", || {
        live.status() == "failed" && live.reason().is_some_and(|reason| reason.contains("image"))
    });
    let error = "error: Recovery failed: ";
    live.wait_until("a line that says so", || live.log().contains(error));
    assert!(!live.is_served("/"));
    assert!(!live.harness.engine.images().contains(&image), "nothing of the image is left");

    let second = live.harness.deployed(&live.harness.redeploy(&live.id));
    live.wait_until("a healthy application", || live.is_healthy() && live.is_served("/"));
    assert_eq!(live.page("/").as_deref(), Some("a page"));
    assert!(is_running(&text(&second["container_id"])));
    live.harness.has_containers(1);
}

#[test]
fn a_stopped_application_started_by_hand_is_stopped() {
    let harness = Harness::on_sqlite(&[WITH_A_FRONT]);
    let repository = harness.repository("web");
    repository.commit_page("a page");
    let mut spec = spec("web", &repository);
    spec["health_check_path"] = json!("");
    let live = Live::deploy(harness, &spec);
    let container = live.container();
    live.post("stop");
    let stopped = "info: Stopped";
    live.wait_until("a stopped container", || live.count(stopped) == 1 && !is_running(&container));

    docker(&["start", &container]);
    let action = "warn: Stopping the container: the application is stopped";
    live.wait_until("a container that is stopped again", || {
        live.count(action) == 1 && !is_running(&container)
    });
    assert_eq!((live.status().as_str(), live.reason()), ("stopped", None));
    assert_eq!(live.harness.server.visitor(&live.host).get("/").status, 503);
    assert_eq!(live.container(), container);

    live.post("restart");
    live.wait_until("a page after a restart", || live.is_healthy() && live.is_served("/"));
}
