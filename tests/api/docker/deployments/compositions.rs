//! Several services by a compose file.

use launchway_testkit::docker::{base_image, docker};
use serde_json::{Value, json};

use super::{
    harness::{DEPLOY, Harness, address_of, page_at, page_of, spec, text},
    repository::Repository,
    trap::{Moment, Trap},
};
use crate::wait::until;

/// Services whose page comes from the service `db`, which stores its own in `/data`.
fn services(page: &str, more: &str) -> String {
    let base = base_image();
    format!(
        r#"
services:
  web:
    build: .
    stop_signal: SIGKILL
    depends_on: {{db: {{condition: service_healthy}}}}
    ports: ["80:8080"]
  db:
    image: {base}
    stop_signal: SIGKILL
    command: sh -c "echo ready; test -s /data/index.html || echo '{page}' > /data/index.html; exec httpd -f -p 9000 -h /data"
    tmpfs: /data
    healthcheck: {{test: [CMD, wget, -q, -O, "-", "http://127.0.0.1:9000/index.html"], interval: 1s, retries: 20}}
{more}
"#
    )
}

/// The same, with a volume for the database.
fn services_with_a_volume(page: &str) -> String {
    services(page, "volumes: {data: }").replace("tmpfs: /data", r#"volumes: ["data:/data"]"#)
}

/// The Dockerfile of `web`: a server of the page that it gets from `db`.
fn web(command: &str) -> String {
    format!("FROM {}\nRUN mkdir -p /www\nCMD {command}\n", base_image())
}

const PROXY: &str = "wget -q -O /www/index.html http://db:9000/index.html; exec httpd -f -p 8080 -h /www";

fn shop(harness: &Harness, file: &str) -> (Repository, Value) {
    let repository = harness.repository("shop");
    repository.write("Dockerfile", web(PROXY)).write("compose.yaml", file).commit();
    let mut spec = spec("shop", &repository);
    spec["build_pack"] = json!("dockerCompose");
    (repository, spec)
}

super::on_both_engines!(services_are_deployed_beside_each_other_and_go_together);

fn services_are_deployed_beside_each_other_and_go_together(harness: Harness) {
    let (repository, spec) = shop(&harness, &services("the first", ""));
    let (id, first) = harness.create_live(&spec);
    assert_eq!(page_of(&first), "the first");
    assert_eq!(harness.application(&id)["build_pack"], "docker-compose");
    let story = harness.story_of(&text(&first["id"]));
    assert!(story.contains("warn: `ports` of `web` are not published on this machine"), "{story}");
    assert!(story.contains("info: Traffic is routed to the service `web`"), "{story}");
    until("what the database printed", || {
        harness.story_of(&text(&first["id"])).contains("runtime: db | ready\n").then_some(())
    });

    repository.write("compose.yaml", services("the second", "")).commit();
    let second = harness.deployed(&harness.redeploy(&id));
    assert_eq!(page_of(&second), "the second");
    assert!(!harness.story_of(&text(&second["id"])).contains("gap"), "both versions ran side by side");
    harness.has_containers(2);

    let back = harness.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first["id"]})).success();
    assert_eq!(page_of(&harness.deployed(&text(&back["id"]))), "the first");
    harness.has_containers(2);

    harness.admin.delete(&format!("{DEPLOY}?id={id}")).success();
    harness.has_containers(0);
    until("nothing of the application", || {
        let kept = harness.server.data_dir().join("compositions").join(&id).exists();
        (harness.engine.images().is_empty() && harness.engine.networks().len() == 1 && !kept).then_some(())
    });
    harness.has_no_work_left();
}

#[test]
fn a_volume_persists_and_a_failed_recreate_is_rolled_back() {
    let harness = Harness::on_sqlite(&[("LAUNCHWAY_HEALTH_TIMEOUT", "5s")]);
    let (repository, spec) = shop(&harness, &services_with_a_volume("kept"));
    let (id, first) = harness.create_live(&spec);
    assert_eq!(page_of(&first), "kept");

    repository.write("compose.yaml", services_with_a_volume("never seen")).commit();
    let second = harness.deployed(&harness.redeploy(&id));
    assert_eq!(page_of(&second), "kept");
    let gap = "warn: With downtime: the live version is stopped before this one starts, because both use the volume `data`";
    let story = harness.story_of(&text(&second["id"]));
    assert!(story.contains(gap), "{story}");
    harness.has_containers(2);

    repository.write("Dockerfile", web("exec sleep 600")).commit();
    let third = harness.redeploy(&id);
    let story = harness.failed(&third);
    assert!(story.contains("not healthy within 5 s"), "{story}");
    until("the version before", || {
        let deployment = harness.deployment(&text(&second["id"]));
        let address = address_of(&text(&deployment["container_id"]));
        (page_at(&address, "/").as_deref() == Some("kept")).then_some(())
    });
    let story = harness.story_of(&text(&second["id"]));
    assert!(
        story.contains("info: The new version did not go live: this one runs again at http://"),
        "{story}"
    );
    harness.has_containers(2);
    assert_eq!(harness.application(&id)["status"]["status"], "running");

    harness.admin.delete(&format!("{DEPLOY}?id={id}")).success();
    until("nothing of the application", || harness.engine.volumes().is_empty().then_some(()));
    harness.has_containers(0);
}

#[test]
fn a_server_killed_during_a_recreate_continues_without_loss() {
    let trap = Trap::new();
    let mut harness = Harness::on_sqlite(&[("PATH", &trap.path())]);
    let (_repository, spec) = shop(&harness, &services_with_a_volume("kept"));
    let (id, first) = harness.create_live(&spec);
    trap.set(harness.server.process_id(), Moment::After, "docker", "stop *");
    let body = json!({ "id": id }).to_string();
    let second = harness.admin.try_send("POST", &format!("{DEPLOY}/redeploy"), Some(&body)).unwrap();
    let second = text(&second.success()["id"]);
    harness.server.wait();
    assert!(trap.is_sprung());

    harness.server.restart();
    harness.reconnect();
    let story = harness.story_of(&text(&first["id"]));
    let second = harness.deployed(&second);
    assert_eq!(page_of(&second), "kept", "{story}");
    let story = harness.story_of(&text(&first["id"]));
    // By the attempt that clears up, or by the reconciler.
    let is_back = story.contains("this one runs again") || story.contains("info: Running at http://");
    assert!(is_back, "the old version came back meanwhile: {story}");
    harness.has_containers(2);
    assert_eq!(harness.engine.volumes().len(), 1);
}

#[test]
fn invalid_compose_files_fail_and_start_nothing() {
    let harness = Harness::on_sqlite(&[]);
    let base = base_image();
    let two = format!(
        "services:\n  one: {{image: {base}, expose: [8080]}}\n  two: {{image: {base}, ports: ['80:8080']}}\n"
    );
    let (repository, spec) = shop(&harness, &two);
    let (application, first) = harness.create(&spec);
    let story = harness.failed(&first);
    let expected = "the compose file `compose.yaml`: the services `one`, `two` all expose or publish the port 8080: only one can get the traffic";
    assert!(story.contains(expected), "{story}");

    for (line, expected) in [
        ("privileged: true", "the service `one` may not have `privileged`"),
        (
            "volumes: ['/:/host']",
            "`volumes` of the service `one` may not mount a folder or file of this machine",
        ),
        ("env_file: /etc/passwd", "the file `/etc/passwd` is a link to a path outside the repository"),
        ("command: ${HOME:?is of the server}", "the variable `HOME` is not set: is of the server"),
    ] {
        let file = format!("services:\n  one:\n    image: {base}\n    expose: [8080]\n    {line}\n");
        repository.write("compose.yaml", file).commit();
        let story = harness.failed(&harness.redeploy(&text(&application["id"])));
        assert!(story.contains(expected) && !story.contains("root:"), "{line}: {story}");
    }
    harness.has_containers(0);
    assert!(harness.engine.images().is_empty() && harness.engine.networks().is_empty());
}

#[test]
fn services_follow_their_application_and_commands_reach_them() {
    let harness = Harness::on_sqlite(&[]);
    let (_repository, mut spec) = shop(&harness, &services("reached", ""));
    // The other service was started, and may not listen yet.
    let reach = "until wget -q -O - http://db:9000/index.html; do sleep 0.2; done; echo before $SAID";
    spec["pre_run_command"] = json!(reach);
    spec["environment_variables"] = json!({"SAID": "it-is-said"});
    let (id, first) = harness.create_live(&spec);
    let story = harness.story_of(&text(&first["id"]));
    assert!(story.contains("info: reached\n") && story.contains("info: before [secret]\n"), "{story}");

    let running = || {
        let ids = harness.engine.containers();
        ids.iter().filter(|id| docker(&["inspect", "--format", "{{.State.Running}}", id]) == "true").count()
    };
    assert_eq!(running(), 2);
    harness.admin.post(&format!("{DEPLOY}/stop"), &json!({"id": id})).success();
    until("services that stand still", || (running() == 0).then_some(()));
    harness.admin.post(&format!("{DEPLOY}/restart"), &json!({"id": id})).success();
    until("services that run again", || (running() == 2).then_some(()));
    until("the page", || {
        let deployment = harness.deployment(&text(&first["id"]));
        let address = address_of(&text(&deployment["container_id"]));
        (page_at(&address, "/").as_deref() == Some("reached")).then_some(())
    });
}
