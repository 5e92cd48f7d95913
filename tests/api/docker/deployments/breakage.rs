//! Failed deployments have a reason, and leave the old version unchanged.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{
    harness::{Harness, page_of, spec, text},
    repository::{Repository, running, web_server},
};

const OLD: &str = "the old page";
const SECRET: &str = "for-the-eyes-of-the-host-only";

/// An application with a live version, and its repository.
struct Live {
    harness: Harness,
    repository: Repository,
    id: String,
    deployment: Value,
}

impl Live {
    fn new(settings: &[(&str, &str)]) -> Self {
        let harness = Harness::on_sqlite(settings);
        let repository = harness.repository("shop");
        repository.commit_page(OLD);
        let (id, deployment) = harness.create_live(&spec("shop", &repository));
        Self { harness, repository, id, deployment }
    }

    /// Deploys a Dockerfile that must fail, and returns the log.
    #[track_caller]
    fn breaks_with(&self, dockerfile: &str) -> String {
        self.repository.write("Dockerfile", dockerfile).commit();
        self.breaks(&self.harness.redeploy(&self.id))
    }

    /// Asserts that a deployment fails and that nothing else changes, and returns its log.
    #[track_caller]
    fn breaks(&self, deployment: &str) -> String {
        let story = self.harness.failed(deployment);
        self.is_as_it_was();
        story
    }

    #[track_caller]
    fn is_as_it_was(&self) {
        assert_eq!(page_of(&self.deployment), OLD);
        let now = self.harness.deployment(&text(&self.deployment["id"]));
        assert_eq!(now["container_status"], "running");
        assert_eq!(self.harness.application(&self.id)["status"]["status"], "running");
        self.harness.has_containers(1);
        self.harness.has_no_work_left();
    }
}

/// Asserts that the log ends with an error that contains these words.
#[track_caller]
fn expect_reason(story: &str, words: &[&str]) {
    let last = story.lines().last().unwrap();
    assert!(last.starts_with("error: "), "{story}");
    for word in words {
        assert!(last.contains(word), "`{word}` is not in the last line of\n{story}");
    }
}

#[test]
fn a_container_that_does_not_come_up_fails_the_deployment() {
    let live = Live::new(&[("LAUNCHWAY_HEALTH_TIMEOUT", "3s")]);
    let story = live.breaks_with(&running("echo 'no such luck'; exit 7"));
    expect_reason(&story, &["exited with code 7"]);
    assert!(story.contains("runtime: no such luck"), "{story}");

    let story = live.breaks_with(&running("sleep 1000"));
    expect_reason(&story, &["not healthy within 3 s", "nothing listens"]);

    let script = r##"printf '#!/bin/sh\nprintf "Status: 500 Broken\\r\\n\\r\\n"\n' > /www/cgi-bin/broken"##;
    let making = format!("RUN mkdir /www/cgi-bin && {script} && chmod +x /www/cgi-bin/broken");
    live.repository.write("Dockerfile", web_server(&making)).commit();
    let change = json!({"health_check_path": "/cgi-bin/broken"});
    let story = live.breaks(&live.harness.change(&live.id, &change));
    expect_reason(&story, &["not healthy within 3 s", "500"]);
}

#[test]
fn a_failed_pre_run_prevents_the_switch_a_post_run_is_logged() {
    let live = Live::new(&[]);
    live.repository.commit_page("the new page");
    let broken = json!({"pre_run_command": "echo preparing; exit 3"});
    let story = live.breaks(&live.harness.change(&live.id, &broken));
    expect_reason(&story, &["the pre-run command failed", "exit code 3"]);
    assert!(story.contains("info: preparing"), "{story}");

    let mended = json!({"pre_run_command": "echo prepared", "post_run_command": "echo tidying; exit 4"});
    let deployment = live.harness.deployed(&live.harness.change(&live.id, &mended));
    assert_eq!(page_of(&deployment), "the new page");
    let story = live.harness.story_of(&text(&deployment["id"]));
    for line in ["info: prepared", "info: tidying", "error: The post-run command failed"] {
        assert!(story.contains(line), "{story}");
    }
}

#[test]
fn what_cannot_be_built_fails_the_deployment() {
    let live = Live::new(&[("LAUNCHWAY_BUILDER", "legacy"), ("LAUNCHWAY_BUILD_MEMORY", "64m")]);
    let story = live.breaks_with(&web_server("RUN echo 'it was a nice try' && false"));
    expect_reason(&story, &["the build failed", "false", "returned a non-zero code: 1"]);
    assert!(story.contains("build: it was a nice try"), "{story}");

    let hungry = web_server("RUN dd if=/dev/zero of=/dev/null bs=300M count=1");
    let story = live.breaks_with(&hungry);
    expect_reason(&story, &["the build failed", "more than 64 MiB of memory"]);

    live.repository.git(&["rm", "--quiet", "Dockerfile"]);
    live.repository.commit();
    let story = live.breaks(&live.harness.redeploy(&live.id));
    expect_reason(&story, &["Dockerfile"]);

    let story = live.breaks(&live.harness.change(&live.id, &json!({"branch": "no-such-branch"})));
    expect_reason(&story, &["no-such-branch"]);
}

#[test]
fn links_out_of_the_checkout_lead_nowhere_and_show_nothing() {
    let live = Live::new(&[]);
    let outside = live.harness.folder().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let secret = outside.join("Dockerfile");
    std::fs::write(&secret, format!("FROM scratch\n# {SECRET}\n{SECRET}\n")).unwrap();

    let root = live.repository.path();
    std::fs::remove_file(root.join("Dockerfile")).unwrap();
    symlink(&secret, root.join("Dockerfile")).unwrap();
    symlink(&outside, root.join("inside")).unwrap();
    live.repository.commit();
    let story = live.breaks(&live.harness.redeploy(&live.id));
    expect_reason(&story, &["Dockerfile"]);
    shows_nothing(&live);

    let story = live.breaks(&live.harness.change(&live.id, &json!({"base_path": "/inside"})));
    expect_reason(&story, &["inside"]);
    shows_nothing(&live);
}

/// Asserts that no line of the application's log contains the secret.
fn shows_nothing(live: &Live) {
    let path = format!("{}/logs/{}?page_size=1000", super::harness::DEPLOY, live.id);
    let log = live.harness.admin.get(&path);
    log.success();
    assert!(!log.text.contains(SECRET) && !log.text.contains("for-the-eyes"), "{}", log.text);
    assert!(!live.harness.server.log().contains(SECRET));
}
