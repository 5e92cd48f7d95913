//! Branch polling: branches are compared with the deployed commits, because a push may get lost.

use std::{thread::sleep, time::Duration};

use serde_json::json;

use super::{
    super::{AFTER, DEPLOY, Host, deployments, secret_of},
    deployments::{becomes, push, push_of, site},
};
use crate::{
    docker::deployments::harness::{Harness, text},
    wait::until,
};

/// A short interval, so that a test does not wait for minutes.
const OFTEN: (&str, &str) = ("LAUNCHWAY_BRANCH_CHECK", "300ms");
/// Several intervals.
const A_WHILE: Duration = Duration::from_secs(3);

#[test]
fn deploys_a_missed_push_at_the_next_start_on_sqlite() {
    a_push_that_was_missed_is_deployed_at_the_next_start(Harness::on_sqlite(&[]));
}

#[test]
fn deploys_a_missed_push_at_the_next_start_on_postgres() {
    a_push_that_was_missed_is_deployed_at_the_next_start(Harness::on_postgres(&[]));
}

fn a_push_that_was_missed_is_deployed_at_the_next_start(mut harness: Harness) {
    let repository = harness.repository("site");
    repository.write("index.html", "one").commit();
    let (id, _) = harness.create_live(&site("site", &repository));
    let secret = secret_of(&harness.admin, &id);
    let second = repository.write("index.html", "two").commit();
    push(&harness, &repository, &secret, "A change");
    becomes(&harness, &id, &second);

    assert!(harness.server.terminate().success());
    let third = repository.write("index.html", "three").commit();
    harness.server.restart();
    harness.reconnect();
    let caught_up = becomes(&harness, &id, &third);
    let story = harness.story_of(&text(&caught_up["id"]));
    let line = format!("Deployment requested because main is at {} and no push was received", &third[..7]);
    assert!(story.contains(&line), "{story}");
    let audit_log =
        harness.admin.get("/api/v1/audit/logs?resource_type=deployment&actor=launchway").success();
    let entries = audit_log["activities"].as_array().unwrap().iter().map(|entry| text(&entry["message"]));
    let expected = format!(
        "launchway requested a deployment of the application `site` (production), because `main` is at {} and no push was received",
        &third[..7]
    );
    assert!(entries.into_iter().any(|message| message == expected), "{audit_log}");

    // Another start finds nothing to do.
    assert!(harness.server.terminate().success());
    harness.server.restart();
    harness.reconnect();
    sleep(Duration::from_secs(1));
    assert_eq!(deployments(&harness.admin, &id).len(), 3);
}

#[test]
fn nothing_is_compared_before_a_push_was_verified() {
    let harness = Harness::on_sqlite(&[OFTEN]);
    let repository = harness.repository("site");
    repository.write("index.html", "one").commit();
    let (id, _) = harness.create_live(&site("site", &repository));
    let secret = secret_of(&harness.admin, &id);
    repository.write("index.html", "two").commit();
    sleep(A_WHILE);
    assert_eq!(deployments(&harness.admin, &id).len(), 1);

    // A push of any branch proves that the code host delivers webhooks.
    let address = format!("file://{}", repository.path().display());
    let other = Host::GitHub.push_from(&address, "refs/heads/other", AFTER, "Elsewhere");
    other.send(&harness.server.client(), &secret).success();
    becomes(&harness, &id, &repository.git(&["rev-parse", "main"]));
}

#[test]
fn a_rollback_a_stop_and_words_that_skip_are_not_undone() {
    let harness = Harness::on_sqlite(&[OFTEN]);
    let repository = harness.repository("site");
    let first = repository.write("index.html", "one").commit();
    let [back, stopped, follower] =
        ["back", "stopped", "follower"].map(|name| harness.create_live(&site(name, &repository)));
    let secret = secret_of(&harness.admin, &follower.0);
    let second = repository.write("index.html", "two").commit();
    push(&harness, &repository, &secret, "A change");
    for (id, _) in [&back, &stopped, &follower] {
        becomes(&harness, id, &second);
    }

    let rolled = harness.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": back.1["id"]})).success();
    assert_eq!(harness.deployed(&text(&rolled["id"]))["commit_hash"], first.as_str());
    harness.admin.post(&format!("{DEPLOY}/stop"), &json!({"id": stopped.0})).success();
    // The one that follows shows that branches were compared.
    let third = repository.write("index.html", "three").commit();
    becomes(&harness, &follower.0, &third);
    sleep(A_WHILE);
    let counts = || [&back, &stopped, &follower].map(|(id, _)| deployments(&harness.admin, id).len());
    assert_eq!(counts(), [3, 2, 3]);
    assert_eq!(harness.application(&stopped.0)["status"]["status"], "stopped");
    // Nor does starting it again undo a stop.
    harness.admin.post(&format!("{DEPLOY}/restart"), &json!({"id": stopped.0})).success();
    until("the restart", || (harness.application(&stopped.0)["status"]["status"] == "running").then_some(()));
    sleep(A_WHILE);
    assert_eq!(counts(), [3, 2, 3]);

    // The next push is for all of them again.
    assert_eq!(push(&harness, &repository, &secret, "A change"), "Webhook handled successfully");
    for (id, _) in [&back, &stopped] {
        becomes(&harness, id, &third);
    }
    assert_eq!(counts(), [4, 3, 3]);

    // A commit that asks not to be deployed is skipped, by the push and afterwards.
    // The branch is moved after the push, or else polling might see it first.
    repository.git(&["checkout", "--quiet", "-b", "draft"]);
    let skipped = repository.write("index.html", "four").commit();
    let message = push_of(&harness, &repository, &secret, (&skipped, "A change [skip deploy]"));
    repository.git(&["checkout", "--quiet", "-B", "main"]);
    assert_eq!(message, format!("Ignored commit {}: its message contains `[skip deploy]`", &skipped[..7]));
    sleep(A_WHILE);
    assert_eq!(counts(), [4, 3, 3]);
    let fifth = repository.write("index.html", "five").commit();
    for (id, _) in [&back, &stopped, &follower] {
        becomes(&harness, id, &fifth);
    }
}

#[test]
fn an_unreachable_repository_blocks_no_other_and_is_logged_once() {
    let harness = Harness::on_sqlite(&[OFTEN]);
    let (gone, site_repository) = (harness.repository("gone"), harness.repository("site"));
    gone.write("index.html", "one").commit();
    site_repository.write("index.html", "one").commit();
    let [lost, found] = [("lost", &gone), ("found", &site_repository)].map(|(name, repository)| {
        let (id, _) = harness.create_live(&site(name, repository));
        let secret = secret_of(&harness.admin, &id);
        let commit = repository.write("index.html", "two").commit();
        push(&harness, repository, &secret, "A change");
        becomes(&harness, &id, &commit);
        id
    });
    let away = gone.path().with_extension("away");
    std::fs::rename(gone.path(), &away).unwrap();
    sleep(A_WHILE);
    let third = site_repository.write("index.html", "three").commit();
    becomes(&harness, &found, &third);
    let log = harness.server.log();
    let reported = log.lines().filter(|line| line.contains("branch comparison failed"));
    assert_eq!(reported.filter(|line| line.contains(&lost)).count(), 1, "{log}");

    // Once it is there again, it is compared again.
    std::fs::rename(&away, gone.path()).unwrap();
    let third = gone.write("index.html", "three").commit();
    becomes(&harness, &lost, &third);
}
