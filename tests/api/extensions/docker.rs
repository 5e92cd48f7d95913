//! Extensions on a real engine: containers, volumes and names, for one organization alone.

use launchway_testkit::{
    docker::{base_image, docker},
    server::WITH_A_FRONT,
};
use serde_json::{Value, json};

use super::{EXTENSIONS, definition, end_of, forked, started, text};
use crate::{docker::deployments::harness::Harness, wait::until};

mod on_sqlite {
    use super::*;

    #[test]
    fn an_extension_installs_a_service_that_is_reached_by_its_name() {
        super::an_extension_installs_a_service_that_is_reached_by_its_name(Harness::on_sqlite(&[
            WITH_A_FRONT,
        ]));
    }

    #[test]
    fn a_failed_run_brings_back_what_it_replaced() {
        super::a_failed_run_brings_back_what_it_replaced(Harness::on_sqlite(&[]));
    }
}

mod on_postgres {
    use super::*;

    #[test]
    fn an_extension_installs_a_service_that_is_reached_by_its_name() {
        super::an_extension_installs_a_service_that_is_reached_by_its_name(Harness::on_postgres(&[
            WITH_A_FRONT,
        ]));
    }
}

/// A service that serves a page from a volume.
pub(crate) fn service(page: &str, last: Value) -> String {
    let write = format!("echo {page} > /data/index.html; exec httpd -f -p 8080 -h /data");
    let steps = json!([
        {"name": "Start", "type": "docker", "properties": {
            "action": "run", "name": "pages", "image": base_image(), "command": ["sh", "-c", write],
            "volumes": ["data:/data"], "environment": {"WHO": "{{ who }}"},
        }},
        {"name": "Name", "type": "proxy", "properties": {"action": "add", "domain": "pages.example", "container": "pages", "port": 8080}},
        last,
    ]);
    definition(&json!({"who": {"type": "string", "default": "ada"}}), &steps, &json!([]))
}

/// A step that requests the page from the same network.
pub(crate) fn check(expected: &str) -> Value {
    let ask = format!(
        "i=0; until wget -qO- http://pages:8080/ | grep {expected}; do i=$((i+1)); [ $i -lt 50 ] || exit 1; sleep 0.2; done"
    );
    json!({"name": "Check", "type": "docker", "properties": {
        "action": "run", "name": "check", "image": base_image(), "command": ["sh", "-c", ask], "detach": "false",
    }})
}

fn an_extension_installs_a_service_that_is_reached_by_its_name(harness: Harness) {
    let admin = &harness.admin;
    let key = forked(admin, &service("hello", check("hello")));
    let done = end_of(admin, &started(admin, &key, &json!({})));
    assert_eq!(done["status"], "completed", "{}", text(&done["execution_log"]));
    until("the page by its name", || {
        let answer = harness.server.visitor("pages.example").get("/");
        (answer.status == 200 && answer.text == "hello\n").then_some(())
    });
    let [container] = &harness.engine.containers()[..] else { panic!("one container is left") };
    let environment = docker(&["container", "inspect", "--format", "{{.Config.Env}}", container]);
    assert!(environment.contains("WHO=ada"), "{environment}");

    // The name is taken, for applications too.
    let spec = json!({
        "name": "shop", "repository": "registry.example/shop", "port": 80, "environment": "staging",
        "build_pack": "image", "domain": "pages.example",
    });
    admin.post("/api/v1/deploy/application", &spec).failure(409, "conflict");
    let organization = text(&admin.get("/api/v1/organizations").success()["id"]);
    admin.delete(&format!("/api/v1/organizations?id={organization}")).failure(409, "conflict");

    // Another address after the engine started it anew is noticed.
    docker(&["container", "restart", "--time", "0", container]);
    until("the page after a restart", || {
        (harness.server.visitor("pages.example").get("/").status == 200).then_some(())
    });

    // It is removed without its volume, which stays until it is removed explicitly.
    let volumes =
        || docker(&["volume", "ls", "--quiet", "--filter", &format!("label=launchway.extension={key}")]);
    assert_eq!(volumes().lines().count(), 1);
    let answer = admin.post(&format!("{EXTENSIONS}/{key}/uninstall"), &json!({}));
    assert_eq!(answer.message(), "Extension uninstall started");
    until("the end of the container", || harness.engine.containers().is_empty().then_some(()));
    until("the end of the name", || {
        (harness.server.visitor("pages.example").get("/").status == 404).then_some(())
    });
    assert_eq!(volumes().lines().count(), 1);
    admin.post(&format!("{EXTENSIONS}/{key}/uninstall"), &json!({"volumes": true})).success();
    until("the end of the volume", || volumes().is_empty().then_some(()));
}

fn a_failed_run_brings_back_what_it_replaced(harness: Harness) {
    let admin = &harness.admin;
    let last = json!({"name": "Fail", "type": "docker", "properties": {
        "action": "run", "name": "fail", "image": base_image(), "command": ["sh", "-c", "[ $WHO = ada ]"],
        "environment": {"WHO": "{{ who }}"}, "detach": "false",
    }});
    let key = forked(admin, &service("hello", last));
    let done = end_of(admin, &started(admin, &key, &json!({})));
    assert_eq!(done["status"], "completed", "{}", text(&done["execution_log"]));
    let [before] = &harness.engine.containers()[..] else { panic!("one container is left") };

    let done = end_of(admin, &started(admin, &key, &json!({"who": "eve"})));
    assert_eq!(
        (&done["status"], &done["exit_code"]),
        (&json!("failed"), &json!(1)),
        "{}",
        text(&done["execution_log"])
    );
    let [after] = &harness.engine.containers()[..] else { panic!("one container is left") };
    assert_eq!(after, before);
    assert_eq!(docker(&["container", "inspect", "--format", "{{.State.Running}}", after]), "true");
}

/// A definition whose container publishes `port`.
fn publishing(name: &str, port: &str) -> String {
    let steps = json!([{"name": "Start", "type": "docker", "properties": {
        "action": "run", "name": name, "image": base_image(), "command": ["sleep", "600"], "ports": [port],
    }}]);
    definition(&json!({}), &steps, &json!([]))
}

#[test]
fn a_run_without_a_free_host_port_is_a_conflict() {
    let harness = Harness::on_sqlite(&[("LAUNCHWAY_EXTENSION_PORTS", "23870-23870")]);
    let admin = &harness.admin;
    let first = forked(admin, &publishing("first", "0:80"));
    let done = end_of(admin, &started(admin, &first, &json!({})));
    assert_eq!(done["status"], "completed", "{}", text(&done["execution_log"]));
    for (name, port, sentence) in [
        ("any", "0:80", "no port of 23870-23870 is free on this machine: ask who runs it for a larger range"),
        (
            "same",
            "23870:80",
            "the port 23870 of this machine is published already: choose another, or 0 for any that is free",
        ),
    ] {
        let key = forked(admin, &publishing(name, port));
        let message = admin.post(&format!("{EXTENSIONS}/{key}/run"), &json!({})).failure(409, "conflict");
        assert_eq!(message, sentence);
        let runs = admin.get(&format!("{EXTENSIONS}/by-extension-id/{key}/executions")).success();
        assert_eq!(runs["executions"], json!([]), "{runs}");
    }
    // Who has the port may run again.
    let again = end_of(admin, &started(admin, &first, &json!({})));
    assert_eq!(again["status"], "completed", "{}", text(&again["execution_log"]));
}
