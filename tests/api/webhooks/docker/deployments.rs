//! From a push to a live version, without another call.

use launchway_testkit::server::WITH_A_FRONT;
use serde_json::Value;

use super::super::{self as webhooks, DEPLOY, code_hosts::Host, deliveries::handled, deployments, secret_of};
use crate::{
    docker::deployments::{
        harness::{Harness, text},
        repository::Repository,
    },
    wait::until,
};

/// The body of a request that publishes a repository's files.
pub(super) fn site(name: &str, repository: &Repository) -> Value {
    webhooks::site(name, repository.path().to_str().unwrap())
}

/// Sends a push of the current `main` of the repository.
pub(super) fn push(harness: &Harness, repository: &Repository, secret: &str, message: &str) -> String {
    let after = repository.git(&["rev-parse", "main"]);
    push_of(harness, repository, secret, (&after, message))
}

/// Sends a push of `main` of the repository at a commit with that message.
pub(super) fn push_of(
    harness: &Harness,
    repository: &Repository,
    secret: &str,
    (after, message): (&str, &str),
) -> String {
    let address = format!("file://{}", repository.path().display());
    let delivery = Host::GitHub.push_from(&address, "refs/heads/main", after, message).called(after);
    handled(&delivery.send(&harness.server.client(), secret))
}

/// Waits until the application is live with that commit.
#[track_caller]
pub(super) fn becomes(harness: &Harness, id: &str, commit: &str) -> Value {
    until("the commit", || {
        let newest = deployments(&harness.admin, id).into_iter().next().unwrap();
        let is_live = newest["commit_hash"] == commit && newest["status"]["status"] == "deployed";
        is_live.then_some(newest)
    })
}

#[test]
fn a_push_leads_to_a_live_version_on_sqlite() {
    a_push_leads_to_a_live_version(&Harness::on_sqlite(&[WITH_A_FRONT]));
}

#[test]
fn a_push_leads_to_a_live_version_on_postgres() {
    a_push_leads_to_a_live_version(&Harness::on_postgres(&[WITH_A_FRONT]));
}

fn a_push_leads_to_a_live_version(harness: &Harness) {
    let repository = harness.repository("site");
    repository.write("index.html", "the first page").commit();
    let (id, first) = harness.create_live(&site("site", &repository));
    let secret = secret_of(&harness.admin, &id);
    let page = || harness.server.visitor("site.ada-s-team.localhost").get("/").text;
    assert_eq!(page(), "the first page");
    // What is live already need not be deployed again.
    let message = push(harness, &repository, &secret, "A change");
    assert_eq!(message, format!("Ignored commit {}: it is live already", &text(&first["commit_hash"])[..7]));
    assert_eq!(deployments(&harness.admin, &id).len(), 1);

    let commit = repository.write("index.html", "the second page").commit();
    assert_eq!(push(harness, &repository, &secret, "A change"), "Webhook handled successfully");
    let second = becomes(harness, &id, &commit);
    until("the second page", || (page() == "the second page").then_some(()));
    assert_eq!(deployments(&harness.admin, &id).len(), 2);
    assert_eq!(push(harness, &repository, &secret, "A change"), "Duplicate delivery ignored");
    let story = harness.story_of(&text(&second["id"]));
    assert!(story.contains("Deployment requested by a push to main on GitHub"), "{story}");

    // A late push deploys the current commit of the branch, not the one in the push.
    let old = text(&first["commit_hash"]);
    assert_eq!(push_of(harness, &repository, &secret, (&old, "A late push")), "Webhook handled successfully");
    let third = until("the third deployment", || {
        let all = deployments(&harness.admin, &id);
        (all.len() == 3 && all[0]["status"]["status"] == "deployed").then(|| all[0].clone())
    });
    assert_eq!(third["commit_hash"], commit.as_str());
    assert_eq!(page(), "the second page");
    assert_eq!(harness.admin.get(&format!("{DEPLOY}?id={id}")).success()["status"]["status"], "running");
}
