//! Variables are passed unchanged, and are shown to no one else.

use std::fs;

use data_encoding::BASE64;
use serde_json::json;

use super::{
    harness::{DEPLOY, Harness, address_of, page_at, spec, text},
    repository::web_server_by,
};

const WILD: &str = "one\ntwo $HOME ${PATH} `id` a=b \"quoted\" 'too' \\n ünïcode 🦀 #not a comment  ";
const SECRET: &str = "correct-horse-battery-staple";

#[test]
fn variables_are_passed_unchanged_to_container_and_build() {
    let harness = Harness::on_sqlite(&[]);
    let repository = harness.repository("shop");
    let serving = web_server_by(
        "ARG WILD\nARG PLAIN\nRUN printf '%s' \"$WILD\" > /www/built && printf '%s' \"$PLAIN\" > /www/plain",
        // What a container's first process was given, before any shell has seen it.
        "cat /proc/1/environ > /www/environ; printf '%s' \"$WILD\" > /www/wild; exec httpd -f -p 8080 -h /www",
    );
    repository.write("Dockerfile", serving).write("index.html", "a page").commit();
    let mut spec = spec("shop", &repository);
    spec["environment_variables"] = json!({"WILD": WILD, "EMPTY": "", "PLAIN": "plain", "_": "underscore"});
    spec["build_variables"] = json!({"WILD": WILD, "PLAIN": "built plain"});
    let (id, deployment) = harness.create_live(&spec);

    let address = address_of(&text(&deployment["container_id"]));
    // The page's last line break is the test client's to lose, so each value is compared without it.
    let shown = |path: &str| page_at(&address, path).unwrap();
    assert_eq!(shown("/wild"), WILD.trim_end());
    assert_eq!(shown("/built"), WILD.trim_end());
    assert_eq!(shown("/plain"), "built plain");
    let environ = shown("/environ");
    let environ: Vec<&str> = environ.split('\0').collect();
    for expected in [format!("WILD={WILD}"), "EMPTY=".to_owned(), "PLAIN=plain".to_owned()] {
        assert!(environ.contains(&expected.as_str()), "{expected:?} is not in {environ:?}");
    }

    let application = harness.application(&id);
    let variables: serde_json::Value =
        serde_json::from_str(application["environment_variables"].as_str().unwrap()).unwrap();
    assert_eq!(variables["WILD"], WILD);
}

#[test]
fn values_are_masked_in_the_log_and_are_in_no_command_line() {
    let harness = Harness::on_sqlite(&[]);
    let repository = harness.repository("shop");
    let leaking =
        "ARG TOKEN\nRUN echo \"the token is $TOKEN.\" && printf '%s' \"$TOKEN\" | base64 && sleep 2";
    let dockerfile = web_server_by(leaking, "echo \"serving with $PASSWORD\"; exec httpd -f -p 8080 -h /www");
    repository.write("Dockerfile", dockerfile).write("index.html", "a page").commit();
    let mut spec = spec("shop", &repository);
    spec["build_variables"] = json!({"TOKEN": SECRET});
    spec["environment_variables"] = json!({"PASSWORD": format!("{SECRET}-too")});
    spec["pre_run_command"] = json!("echo \"preparing with $PASSWORD\"");
    let (application, deployment) = harness.create(&spec);
    while !["deployed", "failed"]
        .contains(&text(&harness.deployment(&deployment)["status"]["status"]).as_str())
    {
        in_no_command_line();
    }
    harness.deployed(&deployment);
    crate::wait::until("what the container prints", || {
        harness.story_of(&deployment).contains("runtime: serving with").then_some(())
    });

    let story = harness.story_of(&deployment);
    for line in ["build: the token is", "info: preparing with", "runtime: serving with"] {
        assert!(story.contains(line), "{story}");
    }
    let path = format!("{DEPLOY}/logs/{}?page_size=1000", text(&application["id"]));
    let log = harness.admin.get(&path).text + &harness.server.log();
    for form in [SECRET.to_owned(), BASE64.encode(SECRET.as_bytes())] {
        assert!(!log.contains(&form), "{form} is in\n{story}");
    }
}

#[test]
fn masks_a_replaced_secret_in_the_output_of_the_old_version() {
    let harness = Harness::on_sqlite(&[]);
    let repository = harness.repository("shop");
    let dockerfile = web_server_by(
        "",
        "httpd -p 8080 -h /www; n=0; while true; do n=$((n+1)); echo \"$n with $PASSWORD\"; sleep 0.5; done",
    );
    repository.write("Dockerfile", dockerfile).write("index.html", "a page").commit();
    let mut spec = spec("shop", &repository);
    spec["environment_variables"] = json!({"PASSWORD": SECRET});
    let (id, deployment) = harness.create_live(&spec);
    let change = json!({"environment_variables": {"PASSWORD": "another-one-altogether"}});
    harness.admin.put(&format!("{DEPLOY}?id={id}&redeploy=false"), &change).success();

    let deployment = text(&deployment["id"]);
    let lines = |story: &str| story.matches("runtime: ").count();
    let before = lines(&harness.story_of(&deployment));
    let story = crate::wait::until("what it prints afterwards", || {
        let story = harness.story_of(&deployment);
        (lines(&story) >= before + 4).then_some(story)
    });
    assert!(story.contains(" with [secret]") && !story.contains(SECRET), "{story}");
}

/// Asserts that no process of this machine has the secret among its arguments. The build's own
/// processes have it only in their environment.
fn in_no_command_line() {
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        assert!(!line.contains(SECRET), "{line}");
    }
}
