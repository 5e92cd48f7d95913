//! A server that is killed while it receives a push: the branch moved and a deployment exists, or neither.

use std::{fs, process::Stdio, thread::sleep, time::Duration};

use serde_json::{Value, json};

use super::stage::{Developer, SHOP, command, git, on_both};

on_both!(what_a_killed_server_began_is_finished, a_kill_at_any_time_leaves_both_or_neither);

/// Announces a move of `main`, as a server does before it receives a push.
fn announce(ada: &Developer, id: &str, deployment: &str, old: &str, new: &str) {
    let application = ada.applications().into_iter().find(|one| one["id"] == id).unwrap();
    let pending = json!({"organization": application["organization_id"], "application": id, "deployment": deployment,
        "reference": "refs/heads/main", "old": old, "new": new, "by": "ada"});
    let folder = ada.server.data_dir().join("git/pending");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(deployment), pending.to_string()).unwrap();
}

fn what_a_killed_server_began_is_finished(mut ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let first = site.git(&["rev-parse", "HEAD"]);
    let second = site.write("index.html", "the second page").commit();
    let deployment = "0198c9f2-7c1e-7000-8000-000000000001";
    // Killed before git moved the branch.
    announce(&ada, &id, deployment, &first, &second);
    ada.server.kill();
    ada.restart();
    assert_eq!((ada.head(&id, "refs/heads/main"), ada.deployments(&id).len()), (Some(first.clone()), 1));
    // Killed after git moved the branch, and before the deployment was committed.
    announce(&ada, &id, deployment, &first, &second);
    ada.server.kill();
    let hosted = ada.hosted(&id);
    assert!(git(site.path(), &["push", "--quiet", hosted.to_str().unwrap(), "main"]).status.success());
    ada.restart();
    let all = ada.finished(&id);
    assert_eq!((all.len(), &all[0]["id"], &all[0]["commit_hash"]), (2, &json!(deployment), &json!(second)));
    assert_eq!(all[0]["status"]["status"], "deployed");
    // Killed after the deployment was committed.
    announce(&ada, &id, deployment, &first, &second);
    ada.restart();
    assert_eq!(ada.finished(&id).len(), 2);
    let left = fs::read_dir(ada.server.data_dir().join("git/pending")).unwrap().count();
    assert_eq!(left, 0);
}

fn a_kill_at_any_time_leaves_both_or_neither(mut ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let (mut moved, mut stayed) = (0, 0);
    for pause in [10, 40, 60, 80, 100, 120, 140, 160, 180, 200, 240, 300] {
        let before = ada.head(&id, "refs/heads/main");
        let commit = site.write("index.html", format!("after {pause} ms")).commit();
        let remote = ada.remote(SHOP);
        let mut push = command(site.path(), &["push", "--no-progress", "--force", &remote, "main"]);
        let mut push = push.stderr(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(pause));
        ada.server.kill();
        push.wait().unwrap();
        ada.restart();
        let head = ada.head(&id, "refs/heads/main");
        let deployments = ada.finished(&id);
        let count = deployments.iter().filter(|one: &&Value| one["commit_hash"] == json!(commit)).count();
        if head.as_ref() == Some(&commit) {
            moved += 1;
            assert_eq!(count, 1, "after {pause} ms: {deployments:?}");
        } else {
            stayed += 1;
            assert_eq!((head, count), (before, 0), "after {pause} ms: {deployments:?}");
        }
    }
    // Otherwise the pauses are no test.
    assert!(moved > 0 && stayed > 0, "{moved} moved, {stayed} stayed");
}
