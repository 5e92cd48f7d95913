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
    repository::Repository,
    stage::{Stage, text},
};

#[test]
fn a_fork_runs_only_approved_commits_on_sqlite() {
    a_fork_runs_only_approved_commits(&Stage::on_sqlite(&[WITH_A_FRONT]));
}

#[test]
fn a_fork_runs_only_approved_commits_on_postgres() {
    a_fork_runs_only_approved_commits(&Stage::on_postgres(&[WITH_A_FRONT]));
}

/// Commits to the fork of request 7, of which the repository of the application has a reference only.
fn push_to_fork(repository: &Repository, reference: &str, page: &str) -> String {
    repository.git(&["checkout", "--quiet", "--detach"]);
    let commit = repository.write("index.html", page).commit();
    repository.git(&["update-ref", reference, &commit]);
    repository.git(&["checkout", "--quiet", "main"]);
    commit
}

fn a_fork_runs_only_approved_commits(stage: &Stage) {
    let repository = stage.repository("site");
    repository.write("index.html", "the page").commit();
    let (id, _) = stage.create_live(&site("site", &repository));
    let secret = secret_of(&stage.admin, &id);
    set(&stage.admin, &id, &json!({"enabled": true}));
    let url = format!("file://{}", repository.path().display());
    for (number, host, reference) in [
        (7, Host::GitHub, "refs/pull/7/head"),
        (8, Host::GitLab, "refs/merge-requests/8/head"),
        (9, Host::Forgejo, "refs/pull/9/head"),
    ] {
        let send = |happened, head: &str| {
            let request = Request { url: &url, number, branch: "main", head, is_from_fork: true };
            handled(&request.by(host, happened).send(&stage.server.client(), &secret))
        };
        let first = push_to_fork(&repository, reference, "the fork");
        let message = send(Happened::Opened, &first);
        assert!(message.ends_with("waits for an approval: it comes from a fork"), "{message}");
        let [preview] = &previews(&stage.admin, &id)[..] else { panic!("{host:?}") };
        assert_eq!(
            (&preview["state"], &preview["awaits_approval"], &preview["application_id"]),
            (&json!("waiting"), &json!(true), &Value::Null)
        );
        sleep(Duration::from_secs(1));
        assert_eq!(names(&stage.admin), ["site"]);

        let approve = format!("{DEPLOY}/previews/approve");
        let body = |commit: &str| json!({"id": id, "number": number, "commit": commit});
        // The approval is of the commit that was looked at.
        let second = push_to_fork(&repository, reference, "the fork, changed");
        send(Happened::Updated, &second);
        stage.admin.post(&approve, &body(&first)).failure(409, "conflict");
        let approved = stage.admin.post(&approve, &body(&second)).success();
        assert_eq!((&approved["state"], &approved["awaits_approval"]), (&json!("active"), &json!(false)));
        let running = text(&approved["application_id"]);
        becomes(stage, &running, &second);
        let name = format!("pr-{number}-site-preview.ada-s-team.localhost");
        assert_eq!(stage.server.visitor(&name).get("/").text, "the fork, changed");
        stage.admin.post(&approve, &body(&second)).failure(409, "conflict");

        // Another commit waits again, and no other way deploys it.
        let third = push_to_fork(&repository, reference, "the fork, hostile");
        send(Happened::Updated, &third);
        let preview = &previews(&stage.admin, &id)[0];
        assert_eq!((&preview["state"], &preview["awaits_approval"]), (&json!("active"), &json!(true)));
        let log = stage.failed(&stage.redeploy(&running));
        assert!(log.contains("only by approving the preview"), "{log}");
        assert_eq!(stage.server.visitor(&name).get("/").text, "the fork, changed");
        assert!(deployments(&stage.admin, &running).iter().all(|one| one["commit_hash"] != third.as_str()));

        assert_eq!(send(Happened::Closed, &third), DONE);
        assert_eq!(names(&stage.admin), ["site"]);
        stage.admin.post(&approve, &body(&third)).failure(409, "conflict");
    }
}

#[test]
fn who_may_not_deploy_approves_nothing() {
    let stage = Stage::on_sqlite(&[]);
    let repository = stage.repository("site");
    let commit = repository.write("index.html", "the page").commit();
    let (id, _) = stage.create_live(&site("site", &repository));
    let secret = secret_of(&stage.admin, &id);
    set(&stage.admin, &id, &json!({"enabled": true}));
    let url = format!("file://{}", repository.path().display());
    let request = Request { url: &url, number: 7, branch: "main", head: &commit, is_from_fork: true };
    // Bitbucket has no reference to the commits of forks.
    let message =
        handled(&request.by(Host::Bitbucket, Happened::Opened).send(&stage.server.client(), &secret));
    let reason = "it comes from a fork, and Bitbucket gives no access to the commits of forks";
    assert_eq!(message, format!("Ignored pull request 7: {reason}"));
    assert_eq!(previews(&stage.admin, &id), Vec::<Value>::new());
    handled(&request.by(Host::GitHub, Happened::Opened).send(&stage.server.client(), &secret));
    let viewer = join(&stage.server, &stage.admin, "grace@example.com", "viewer").log_in();
    let body = json!({"id": id, "number": 7, "commit": commit});
    viewer.post(&format!("{DEPLOY}/previews/approve"), &body).failure(403, "forbidden");
    assert_eq!(names(&stage.admin), ["site"]);
    let unknown = json!({"id": id, "number": 8, "commit": commit});
    stage.admin.post(&format!("{DEPLOY}/previews/approve"), &unknown).failure(404, "not_found");
}
