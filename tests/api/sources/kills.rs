//! A server that is killed while it receives a push: the branch moved and a deployment exists, or neither.

use std::{
    fs,
    process::Stdio,
    thread::sleep,
    time::{Duration, Instant, SystemTime},
};

use serde_json::{Value, json};

use super::harness::{Developer, SHOP, command, git, on_both};

on_both!(
    what_a_killed_server_began_is_finished,
    a_kill_at_any_time_leaves_both_or_neither,
    the_lock_of_a_killed_git_blocks_no_push,
    a_kill_at_every_point_of_a_push_is_recovered,
);

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

/// Waits until `main` of the hosted repository is at `commit`.
fn await_move(ada: &Developer, id: &str, commit: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while ada.head(id, "refs/heads/main").as_deref() != Some(commit) {
        assert!(Instant::now() < deadline, "the branch did not move");
        sleep(Duration::from_millis(2));
    }
}

fn a_kill_at_any_time_leaves_both_or_neither(mut ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let begin_push = |ada: &Developer, text: String| {
        let commit = site.write("index.html", text).commit();
        let mut push = command(site.path(), &["push", "--no-progress", "--force", &ada.remote(SHOP), "main"]);
        (commit, push.stderr(Stdio::null()).spawn().unwrap())
    };
    // The machine's own speed decides at which times a kill is of interest.
    let start = Instant::now();
    let (commit, mut push) = begin_push(&ada, "undisturbed".to_owned());
    await_move(&ada, &id, &commit);
    let until_moved = start.elapsed();
    assert!(push.wait().unwrap().success());
    // From a kill before git connects to one as soon as the branch has moved.
    const KILLS: u32 = 12;
    for kill in 0..KILLS {
        let before = ada.head(&id, "refs/heads/main");
        let (commit, mut push) = begin_push(&ada, format!("kill {kill}"));
        if kill + 1 < KILLS {
            sleep(until_moved * kill / (KILLS - 3));
        } else {
            await_move(&ada, &id, &commit);
        }
        ada.server.kill();
        push.wait().unwrap();
        ada.restart();
        let head = ada.head(&id, "refs/heads/main");
        let deployments = ada.finished(&id);
        let count = deployments.iter().filter(|one: &&Value| one["commit_hash"] == json!(commit)).count();
        if head.as_ref() == Some(&commit) {
            assert_eq!(count, 1, "kill {kill}: {deployments:?}");
        } else {
            assert_eq!((head, count), (before, 0), "kill {kill}: {deployments:?}");
        }
    }
}

fn the_lock_of_a_killed_git_blocks_no_push(mut ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let first = site.git(&["rev-parse", "HEAD"]);
    let second = site.write("index.html", "the second page").commit();
    let lock = ada.hosted(&id).join("refs/heads/main.lock");
    // As git leaves it when it is killed while it moves the branch.
    fs::write(&lock, "").unwrap();
    let refused = ada.refused(&site, &[&ada.remote(SHOP), "main"]);
    assert!(refused.contains("failed to update ref"), "{refused}");
    announce(&ada, &id, "0198c9f2-7c1e-7000-8000-000000000001", &first, &second);
    ada.server.kill();
    ada.restart();
    assert!(!lock.exists());
    ada.push(&site, &[&ada.remote(SHOP), "main"]);
    assert_eq!(ada.head(&id, "refs/heads/main"), Some(second));
    // One that nobody announced is removed when no git can hold it any more.
    let third = site.write("index.html", "the third page").commit();
    let file = fs::File::create(&lock).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    ada.push(&site, &[&ada.remote(SHOP), "main"]);
    assert_eq!(ada.head(&id, "refs/heads/main"), Some(third));
}

/// The points of a push at which a server can be killed, in their order.
const POINTS: [&str; 5] = [
    "the announcement is a draft",
    "the push is announced",
    "the branch has moved",
    "the deployment is committed",
    "the upload before it is forgotten",
];

fn a_kill_at_every_point_of_a_push_is_recovered(mut ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let hosted = ada.hosted(&id);
    let upload = "refs/launchway/upload/main";
    for (point, name) in POINTS.into_iter().enumerate() {
        let before = ada.finished(&id).len();
        let first = ada.head(&id, "refs/heads/main").unwrap();
        let second = site.write("index.html", format!("page {point}")).commit();
        let deployment = format!("0198c9f2-7c1e-7000-8000-00000000000{point}");
        // A push removes the upload before it.
        git(&hosted, &["--git-dir=.", "update-ref", upload, &first]);
        announce(&ada, &id, &deployment, &first, &second);
        let pending = ada.server.data_dir().join("git/pending");
        if point == 0 {
            fs::rename(pending.join(&deployment), pending.join(format!(".{deployment}"))).unwrap();
        }
        ada.server.kill();
        if point >= 2 {
            let pushed = git(site.path(), &["push", "--quiet", "--force", hosted.to_str().unwrap(), "main"]);
            assert!(pushed.status.success(), "{name}");
        }
        ada.restart();
        if point >= 3 {
            // Now that the deployment is committed: the server is killed before it ends the announcement.
            ada.finished(&id);
            announce(&ada, &id, &deployment, &first, &second);
            ada.server.kill();
            if point == 3 {
                git(&hosted, &["--git-dir=.", "update-ref", upload, &first]);
            }
            ada.restart();
        }
        let has_moved = point >= 2;
        let all = ada.finished(&id);
        assert_eq!(all.len(), before + usize::from(has_moved), "{name}: {all:?}");
        let head = if has_moved { second } else { first.clone() };
        assert_eq!(ada.head(&id, "refs/heads/main"), Some(head.clone()), "{name}");
        assert_eq!(all.iter().any(|one| one["id"] == deployment.as_str()), has_moved, "{name}");
        let uploaded = if has_moved { None } else { Some(first) };
        assert_eq!(ada.head(&id, upload), uploaded, "{name}");
        let left = fs::read_dir(&pending).unwrap().filter(|one| {
            let name = one.as_ref().unwrap().file_name();
            !name.to_string_lossy().starts_with('.')
        });
        assert_eq!(left.count(), 0, "{name}");
    }
}
