//! Pushes to an application that exists.

use std::{
    io::Write as _,
    net::TcpStream,
    process::{Child, Stdio},
    thread::{self, sleep},
    time::Duration,
};

use serde_json::json;

use super::harness::{DEPLOY, Developer, SHOP, command, git, on_both};
use crate::wait::until;

on_both!(
    a_push_deploys_and_shows_the_log_until_it_is_live,
    another_branch_and_a_tag_are_stored_and_say_what_to_do,
    a_force_push_deploys_and_a_redeployment_takes_the_head,
    a_shallow_clone_can_push_and_fetch,
    of_two_pushes_at_once_each_is_whole_or_refused,
    a_push_that_is_cut_changes_nothing,
    a_push_that_changes_nothing_watched_is_stored_only,
);

fn a_push_deploys_and_shows_the_log_until_it_is_live(ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let commit = site.write("index.html", "the second page").commit();
    let text = ada.push(&site, &[&ada.remote(&format!("{id}.git")), "main"]);
    for part in
        ["remote: Deploying", "requested by ada, by a push to `main`", "Publishing the files", "remote: Live"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let deployments = ada.deployments(&id);
    assert_eq!(deployments.len(), 2);
    assert_eq!(
        (&deployments[0]["commit_hash"], &deployments[0]["status"]["status"]),
        (&json!(commit), &json!("deployed"))
    );
    assert_eq!(ada.applications()[0]["repository"], format!("/git/{id}.git"));
    let audit = ada.admin.get("/api/v1/audit/logs").success();
    let messages = audit["activities"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap());
    assert!(messages.filter(|message| message.ends_with("by a push to `main`")).count() == 1, "{audit}");
    // A failing deployment is shown too, and the branch has moved.
    ada.admin.put(&format!("{DEPLOY}?id={id}&redeploy=false"), &json!({"base_path": "/nowhere"})).success();
    site.write("index.html", "the third page").commit();
    let text = ada.push(&site, &[&ada.remote(SHOP), "main"]);
    assert!(text.contains("remote: The deployment failed"), "{text}");
    assert_eq!(ada.head(&id, "refs/heads/main"), Some(site.git(&["rev-parse", "HEAD"])));
}

fn another_branch_and_a_tag_are_stored_and_say_what_to_do(ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    site.git(&["tag", "--annotate", "--message", "first", "v1"]);
    site.git(&["checkout", "--quiet", "-b", "next"]);
    site.write("index.html", "the next page").commit();
    let text = ada.push(&site, &[&ada.remote(SHOP), "next", "v1"]);
    for part in [
        "Stored, but not deployed: shop follows the branch main",
        "`git push launchway next:main` deploys it",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(ada.deployments(&id).len(), 1);
    let listed = git(site.path(), &["ls-remote", &ada.remote(SHOP)]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    for name in ["refs/heads/main", "refs/heads/next", "refs/tags/v1^{}"] {
        assert!(listed.contains(name), "{listed}");
    }
    // The branch that is deployed stays; others can be deleted.
    let text = ada.refused(&site, &[&ada.remote(SHOP), ":main"]);
    assert!(text.contains("main is deployed, and cannot be deleted"), "{text}");
    ada.push(&site, &[&ada.remote(SHOP), ":next"]);
    assert_eq!(ada.head(&id, "refs/heads/next"), None);
    // Without automatic deployments a push is stored, too.
    ada.admin.put(&format!("{DEPLOY}?id={id}&redeploy=false"), &json!({"auto_deploy": false})).success();
    let text = ada.push(&site, &[&ada.remote(SHOP), "next:main"]);
    assert!(text.contains("`launchway deploy shop` deploys it"), "{text}");
    assert_eq!(ada.deployments(&id).len(), 1);
}

fn a_force_push_deploys_and_a_redeployment_takes_the_head(ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    site.write("index.html", "rewritten");
    site.git(&["add", "--all"]);
    site.git(&["commit", "--quiet", "--amend", "--message", "rewritten"]);
    let rewritten = site.git(&["rev-parse", "HEAD"]);
    let text = ada.refused(&site, &[&ada.remote(SHOP), "main"]);
    assert!(text.contains("rejected"), "{text}");
    let text = ada.push(&site, &["--force", &ada.remote(SHOP), "main"]);
    assert!(text.contains("Live"), "{text}");
    ada.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id})).success();
    let all = ada.finished(&id);
    assert_eq!(all.len(), 3);
    assert!(all[..2].iter().all(|one| one["commit_hash"] == rewritten), "{all:?}");
    assert_eq!(all[0]["status"]["status"], "deployed");
}

fn a_shallow_clone_can_push_and_fetch(ada: Developer) {
    let site = ada.site("site");
    for number in 0..5 {
        site.write("index.html", format!("page {number}")).commit();
    }
    let id = ada.pushed_shop(&site);
    let remote = ada.remote(SHOP);
    let cloned = git(&ada.path(""), &["clone", "--quiet", "--depth", "1", &remote, "shallow"]);
    assert!(cloned.status.success(), "{cloned:?}");
    let shallow = ada.path("shallow");
    assert_eq!(
        String::from_utf8(git(&shallow, &["rev-list", "--count", "HEAD"]).stdout).unwrap().trim(),
        "1"
    );
    std::fs::write(shallow.join("index.html"), "from a shallow clone").unwrap();
    assert!(git(&shallow, &["commit", "--quiet", "--all", "--message", "shallow"]).status.success());
    let pushed = git(&shallow, &["push", "--no-progress", "origin", "main"]);
    assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
    assert_eq!(ada.deployments(&id).len(), 2);
    let unshallowed = git(&shallow, &["fetch", "--quiet", "--unshallow"]);
    assert!(unshallowed.status.success(), "{unshallowed:?}");
}

fn of_two_pushes_at_once_each_is_whole_or_refused(ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let commits: Vec<String> = (0..4)
        .map(|number| {
            site.git(&["checkout", "--quiet", "-B", &format!("b{number}"), "main"]);
            site.write("index.html", format!("page {number}")).commit()
        })
        .collect();
    let pushed = thread::scope(|scope| {
        let pushes: Vec<_> = (0..4)
            .map(|number| {
                let (ada, site) = (&ada, &site);
                scope.spawn(move || {
                    let branch = format!("b{number}:main");
                    ada.try_push(site, &[&ada.remote(SHOP), &branch]).status.success()
                })
            })
            .collect();
        pushes.into_iter().map(|push| push.join().unwrap()).collect::<Vec<_>>()
    });
    let accepted: Vec<_> =
        commits.iter().zip(&pushed).filter(|(_, ok)| **ok).map(|(commit, _)| commit).collect();
    assert_eq!(accepted.len(), 1, "{pushed:?}");
    assert_eq!(ada.head(&id, "refs/heads/main").as_ref(), Some(accepted[0]));
    let all = ada.finished(&id);
    assert_eq!((all.len(), &all[0]["commit_hash"]), (2, &json!(accepted[0])));
}

fn a_push_that_is_cut_changes_nothing(ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let before = ada.head(&id, "refs/heads/main").unwrap();
    let commit = site.write("noise", noise(24 << 20)).commit();
    // A client that announces more than it sends.
    let line = format!("{before} {commit} refs/heads/main\0 report-status side-band-64k");
    let mut body = format!("{:04x}{line}0000", line.len() + 4).into_bytes();
    let pack = command(site.path(), &["pack-objects", "--revs", "--stdout", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    body.extend(output_of(pack, &commit));
    for sent in [4, 100, 300, body.len() / 2, body.len() - 1] {
        let mut connection = TcpStream::connect(ada.server.address()).unwrap();
        let head = format!(
            "POST /git/{SHOP}/git-receive-pack HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             content-length: {}\r\n\r\n",
            ada.token,
            body.len()
        );
        connection.write_all(head.as_bytes()).unwrap();
        connection.write_all(&body[..sent]).unwrap();
        drop(connection);
    }
    sleep(Duration::from_millis(500));
    assert_eq!((ada.head(&id, "refs/heads/main").as_ref(), ada.deployments(&id).len()), (Some(&before), 1));
    // Clients that are killed: whatever arrived whole counts once.
    for pause in [5, 20, 50, 100, 200, 400] {
        let mut push = command(site.path(), &["push", "--no-progress", &ada.remote(SHOP), "main"]);
        let mut push = push.stderr(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(pause));
        push.kill().unwrap();
        push.wait().unwrap();
    }
    until("a whole push", || {
        let pushed = ada.try_push(&site, &[&ada.remote(SHOP), "main"]);
        pushed.status.success().then_some(())
    });
    let all = ada.finished(&id);
    assert_eq!((all.len(), &all[0]["commit_hash"]), (2, &json!(commit)));
    assert_eq!(ada.head(&id, "refs/heads/main"), Some(commit));
}

/// Returns bytes that no compression makes small.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Sends a line to a program, and returns its output.
fn output_of(mut program: Child, line: &str) -> Vec<u8> {
    program.stdin.take().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    program.wait_with_output().unwrap().stdout
}

fn a_push_that_changes_nothing_watched_is_stored_only(ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let watch = json!({"watch_paths": ["/*.html", "!/draft.html"]});
    ada.admin.put(&format!("{DEPLOY}?id={id}&redeploy=false"), &watch).success();
    let first = site.git(&["rev-parse", "HEAD"]);
    site.write("docs/index.html", "words").commit();
    let second = site.write("draft.html", "a draft").commit();
    let text = ada.push(&site, &[&ada.remote(SHOP), "main"]);
    let line = format!(
        "remote: Ignored {} of main: no path of watch_paths changed since {}",
        &second[..7],
        &first[..7]
    );
    assert!(text.contains(&line) && text.contains("`launchway deploy shop` deploys it"), "{text}");
    assert_eq!(ada.head(&id, "refs/heads/main"), Some(second.clone()));
    assert_eq!(ada.deployments(&id).len(), 1);
    // What was ignored is part of the next version.
    site.write("draft.html", "another draft").commit();
    let third = site.write("index.html", "the second page").commit();
    assert!(ada.push(&site, &[&ada.remote(SHOP), "main"]).contains("remote: Live"));
    assert_eq!(ada.deployments(&id)[0]["commit_hash"], third.as_str());
    // So is a deployment by hand.
    let fourth = site.write("draft.html", "the last draft").commit();
    assert!(ada.push(&site, &[&ada.remote(SHOP), "main"]).contains("remote: Ignored"));
    ada.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id})).success();
    until("the commit", || (ada.deployments(&id)[0]["commit_hash"] == fourth.as_str()).then_some(()));
    // The commit that was deployed is gone after a force push, but its files are compared.
    site.git(&["reset", "--quiet", "--hard", &first]);
    site.write("docs/other.html", "words").commit();
    let text = ada.push(&site, &["--force", &ada.remote(SHOP), "main"]);
    assert!(text.contains("remote: Live"), "{text}");
}
