//! Requests from forks: nothing of them runs before a member approved the commit.

use std::{thread::sleep, time::Duration};

use launchway_testkit::{people::join, server::WITH_A_FRONT};
use serde_json::{Value, json};

use super::{
    super::{
        DEPLOY,
        code_hosts::Host,
        deliveries::handled,
        deployments,
        previews::{DONE, names, previews, set},
        requests::{Happened, Request},
        secret_of,
    },
    deployments::{becomes, site},
};
use crate::docker::deployments::{
    harness::{Harness, text},
    repository::Repository,
};

#[test]
fn a_fork_runs_only_approved_commits_on_sqlite() {
    a_fork_runs_only_approved_commits(&Harness::on_sqlite(&[WITH_A_FRONT]));
}

#[test]
fn a_fork_runs_only_approved_commits_on_postgres() {
    a_fork_runs_only_approved_commits(&Harness::on_postgres(&[WITH_A_FRONT]));
}

/// Commits to the fork of request 7, of which the repository of the application has a reference only.
fn push_to_fork(repository: &Repository, reference: &str, page: &str) -> String {
    repository.git(&["checkout", "--quiet", "--detach"]);
    let commit = repository.write("index.html", page).commit();
    repository.git(&["update-ref", reference, &commit]);
    repository.git(&["checkout", "--quiet", "main"]);
    commit
}

fn a_fork_runs_only_approved_commits(harness: &Harness) {
    let repository = harness.repository("site");
    repository.write("index.html", "the page").commit();
    let (id, _) = harness.create_live(&site("site", &repository));
    let secret = secret_of(&harness.admin, &id);
    set(&harness.admin, &id, &json!({"enabled": true}));
    let url = format!("file://{}", repository.path().display());
    for (number, host, reference) in [
        (7, Host::GitHub, "refs/pull/7/head"),
        (8, Host::GitLab, "refs/merge-requests/8/head"),
        (9, Host::Forgejo, "refs/pull/9/head"),
    ] {
        let send = |happened, head: &str| {
            let request = Request { url: &url, number, branch: "main", head, is_from_fork: true };
            handled(&request.by(host, happened).send(&harness.server.client(), &secret))
        };
        let first = push_to_fork(&repository, reference, "the fork");
        let message = send(Happened::Opened, &first);
        assert!(message.ends_with("waits for an approval: it comes from a fork"), "{message}");
        let [preview] = &previews(&harness.admin, &id)[..] else { panic!("{host:?}") };
        assert_eq!(
            (&preview["state"], &preview["awaits_approval"], &preview["application_id"]),
            (&json!("waiting"), &json!(true), &Value::Null)
        );
        sleep(Duration::from_secs(1));
        assert_eq!(names(&harness.admin), ["site"]);

        let approve = format!("{DEPLOY}/previews/approve");
        let body = |commit: &str| json!({"id": id, "number": number, "commit": commit});
        // The approval is of the commit that was looked at.
        let second = push_to_fork(&repository, reference, "the fork, changed");
        send(Happened::Updated, &second);
        harness.admin.post(&approve, &body(&first)).failure(409, "conflict");
        let approved = harness.admin.post(&approve, &body(&second)).success();
        assert_eq!((&approved["state"], &approved["awaits_approval"]), (&json!("active"), &json!(false)));
        let running = text(&approved["application_id"]);
        becomes(harness, &running, &second);
        let name = format!("pr-{number}-site-preview.ada-s-team.localhost");
        assert_eq!(harness.server.visitor(&name).get("/").text, "the fork, changed");
        harness.admin.post(&approve, &body(&second)).failure(409, "conflict");

        // Another commit waits again, and no other way deploys it.
        let third = push_to_fork(&repository, reference, "the fork, hostile");
        send(Happened::Updated, &third);
        let preview = &previews(&harness.admin, &id)[0];
        assert_eq!((&preview["state"], &preview["awaits_approval"]), (&json!("active"), &json!(true)));
        let log = harness.failed(&harness.redeploy(&running));
        assert!(log.contains("only by approving the preview"), "{log}");
        assert_eq!(harness.server.visitor(&name).get("/").text, "the fork, changed");
        assert!(deployments(&harness.admin, &running).iter().all(|one| one["commit_hash"] != third.as_str()));

        assert_eq!(send(Happened::Closed, &third), DONE);
        assert_eq!(names(&harness.admin), ["site"]);
        harness.admin.post(&approve, &body(&third)).failure(409, "conflict");
    }
}

#[test]
fn who_may_not_deploy_approves_nothing() {
    let harness = Harness::on_sqlite(&[]);
    let repository = harness.repository("site");
    let commit = repository.write("index.html", "the page").commit();
    let (id, _) = harness.create_live(&site("site", &repository));
    let secret = secret_of(&harness.admin, &id);
    set(&harness.admin, &id, &json!({"enabled": true}));
    let url = format!("file://{}", repository.path().display());
    let request = Request { url: &url, number: 7, branch: "main", head: &commit, is_from_fork: true };
    // Bitbucket has no reference to the commits of forks.
    let message =
        handled(&request.by(Host::Bitbucket, Happened::Opened).send(&harness.server.client(), &secret));
    let reason = "it comes from a fork, and Bitbucket gives no access to the commits of forks";
    assert_eq!(message, format!("Ignored pull request 7: {reason}"));
    assert_eq!(previews(&harness.admin, &id), Vec::<Value>::new());
    handled(&request.by(Host::GitHub, Happened::Opened).send(&harness.server.client(), &secret));
    let viewer = join(&harness.server, &harness.admin, "grace@example.com", "viewer").log_in();
    let body = json!({"id": id, "number": 7, "commit": commit});
    viewer.post(&format!("{DEPLOY}/previews/approve"), &body).failure(403, "forbidden");
    assert_eq!(names(&harness.admin), ["site"]);
    let unknown = json!({"id": id, "number": 8, "commit": commit});
    harness.admin.post(&format!("{DEPLOY}/previews/approve"), &unknown).failure(404, "not_found");
}
