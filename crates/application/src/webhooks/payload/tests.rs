//! Payloads in the formats of the code hosts, without the fields that are not read.

use launchway_domain::webhooks::Push;
use serde_json::{Value, json};

use super::*;

const AFTER: &str = "59b20b8d5c6ff8d09518454d4dd8b7b30f095ab5";

fn keys(payload: &Value) -> Vec<String> {
    repositories(payload.to_string().as_bytes()).into_iter().map(String::from).collect()
}

/// Returns the changes of an event.
fn told(event: (&'static str, &str), payload: &Value) -> Option<Vec<Change>> {
    changes(&delivery(event, payload))
}

/// Returns the delivery of an event, with a signature in the format of its code host.
pub(super) fn delivery(event: (&'static str, &str), payload: &Value) -> Delivery {
    let signature = match event.0 {
        "x-github-event" => ("x-hub-signature-256", format!("sha256={}", "0".repeat(64))),
        "x-gitlab-event" => ("x-gitlab-token", "secret".to_owned()),
        "x-gitea-event" => ("x-gitea-signature", "0".repeat(64)),
        "x-forgejo-event" => ("x-forgejo-signature", "0".repeat(64)),
        _ => ("x-hub-signature", format!("sha256={}", "0".repeat(64))),
    };
    let header = |name| match name {
        name if name == event.0 => Some(event.1.to_owned()),
        name if name == signature.0 => Some(signature.1.clone()),
        _ => None,
    };
    Delivery::read(header, payload.to_string().into_bytes()).unwrap()
}

fn push(branch: &str, skip: Option<&'static str>) -> Change {
    Change::Pushed(Push { branch: branch.to_owned(), head: AFTER.parse().ok(), skip })
}

fn of_github(reference: &str, after: &str, message: &str) -> Value {
    json!({
        "ref": reference, "before": "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c", "after": after,
        "created": false, "deleted": after.starts_with("000"), "forced": false, "base_ref": null,
        "compare": "https://github.com/ada/engine/compare/0d1a26e67d8f...59b20b8d5c6f",
        "repository": {
            "id": 35129377, "name": "engine", "full_name": "ada/engine", "private": true,
            "owner": {"name": "ada", "login": "ada"}, "html_url": "https://github.com/ada/engine",
            "url": "https://github.com/ada/engine", "git_url": "git://github.com/ada/engine.git",
            "ssh_url": "git@github.com:ada/engine.git", "clone_url": "https://github.com/ada/engine.git",
            "homepage": "https://victim.example.com/other", "default_branch": "main",
        },
        "pusher": {"name": "ada", "email": "ada@example.com"},
        "commits": [{"id": AFTER, "message": message, "added": [], "modified": ["README.md"]}],
        "head_commit": {"id": AFTER, "tree_id": "f9d2a07e9488b91af2641b26b9407fe22a451433", "message": message},
    })
}

fn of_gitlab(reference: &str, after: &str, message: &str) -> Value {
    json!({
        "object_kind": "push", "event_name": "push", "before": "95790bf891e76fee5e1747ab589903a6a1f80f22",
        "after": after, "ref": reference, "checkout_sha": after, "message": null, "user_username": "ada",
        "project": {
            "id": 15, "name": "Engine", "web_url": "https://gitlab.com/ada/engine", "avatar_url": null,
            "git_ssh_url": "git@gitlab.com:ada/engine.git", "git_http_url": "https://gitlab.com/ada/engine.git",
            "namespace": "ada", "path_with_namespace": "ada/engine", "default_branch": "main",
        },
        "commits": [
            {"id": "b6568db1bc1dcd7f8b4d5a946b0b91f9dacd7327", "message": "Earlier [skip ci]"},
            {"id": AFTER, "message": message, "title": "A change"},
        ],
        "total_commits_count": 2,
        "repository": {
            "name": "Engine", "url": "git@gitlab.com:ada/engine.git", "homepage": "https://gitlab.com/ada/engine",
            "git_http_url": "https://gitlab.com/ada/engine.git", "git_ssh_url": "git@gitlab.com:ada/engine.git",
        },
    })
}

/// A payload of Gitea or Forgejo.
fn of_gitea(reference: &str, after: &str, message: &str) -> Value {
    json!({
        "ref": reference, "before": "28e1879d029cb852e4844d9c718537df08844e03", "after": after,
        "compare_url": "http://git.example.com:3000/ada/engine/compare/28e1...59b2", "total_commits": 1,
        "commits": [{"id": AFTER, "message": message, "verification": null}],
        "head_commit": {"id": AFTER, "message": message},
        "repository": {
            "id": 140, "name": "engine", "full_name": "ada/engine", "private": false,
            "html_url": "http://git.example.com:3000/ada/engine",
            "ssh_url": "ssh://git@git.example.com:2222/ada/engine.git",
            "clone_url": "http://git.example.com:3000/ada/engine.git", "website": "", "stars_count": 0,
        },
        "pusher": {"login": "ada"}, "sender": {"login": "ada"},
    })
}

fn of_bitbucket(changes: &Value) -> Value {
    json!({
        "push": {"changes": changes},
        "actor": {"display_name": "Ada", "type": "user"},
        "repository": {
            "type": "repository", "full_name": "ada/engine", "name": "engine", "scm": "git",
            "links": {
                "self": {"href": "https://api.bitbucket.org/2.0/repositories/ada/engine"},
                "html": {"href": "https://bitbucket.org/ada/engine"},
                "avatar": {"href": "https://bytebucket.org/ravatar/engine"},
            },
        },
    })
}

fn of_bitbucket_branch(name: &str, message: &str) -> Value {
    let target = json!({"type": "commit", "hash": AFTER, "message": message});
    json!({
        "new": {"type": "branch", "name": name, "target": target},
        "old": {"type": "branch", "name": name, "target": {"type": "commit", "hash": "1e65c05c1d5171631d92438a13901ca7dae9618c"}},
        "created": false, "closed": false, "forced": false, "truncated": false, "commits": [target],
    })
}

#[test]
fn every_code_host_names_its_repository() {
    let reference = "refs/heads/main";
    assert_eq!(keys(&of_github(reference, AFTER, "")), ["github.com/ada/engine"]);
    assert_eq!(keys(&of_gitlab(reference, AFTER, "")), ["gitlab.com/ada/engine"]);
    assert_eq!(
        keys(&of_gitea(reference, AFTER, "")),
        ["git.example.com:2222/ada/engine", "git.example.com:3000/ada/engine"]
    );
    assert_eq!(keys(&of_bitbucket(&json!([]))), ["bitbucket.org/ada/engine"]);
}

#[test]
fn what_names_no_repository_is_about_none() {
    for payload in
        ["", "{", "[]", "null", "payload=x", "{}", r#"{"repository": null}"#, r#"{"repository": 1}"#]
    {
        assert_eq!(repositories(payload.as_bytes()), [], "{payload}");
    }
    assert_eq!(keys(&json!({"repository": {"clone_url": "engine"}})), [""; 0]);
    // Neither deep nor invalid JSON costs more than reading it.
    let deep = format!(r#"{{"repository": {}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(repositories(deep.as_bytes()), []);
    let deep = format!(r#"{{"x": {}"#, "[".repeat(1_000_000));
    assert_eq!(repositories(deep.as_bytes()), []);
}

#[test]
fn every_code_host_names_the_branch_and_words_that_skip_it() {
    for (message, skip) in [("A change", None), ("A change [skip ci]", Some("[skip ci]"))] {
        let expected = Some(vec![push("main", skip)]);
        let reference = "refs/heads/main";
        assert_eq!(told(("x-github-event", "push"), &of_github(reference, AFTER, message)), expected);
        assert_eq!(told(("x-gitlab-event", "Push Hook"), &of_gitlab(reference, AFTER, message)), expected);
        assert_eq!(told(("x-gitea-event", "push"), &of_gitea(reference, AFTER, message)), expected);
        assert_eq!(told(("x-forgejo-event", "push"), &of_gitea(reference, AFTER, message)), expected);
        let changes = json!([of_bitbucket_branch("main", message)]);
        assert_eq!(told(("x-event-key", "repo:push"), &of_bitbucket(&changes)), expected);
    }
}

#[test]
fn tags_and_deleted_branches_are_recognized() {
    let (zeros, gone) = ("0".repeat(40), Some(vec![Change::Deleted("old".to_owned())]));
    let mut deleted = of_github("refs/heads/old", &zeros, "");
    deleted["head_commit"] = Value::Null;
    assert_eq!(told(("x-github-event", "push"), &deleted), gone);
    assert_eq!(told(("x-gitlab-event", "Push Hook"), &of_gitlab("refs/heads/old", &zeros, "")), gone);
    assert_eq!(told(("x-gitea-event", "push"), &of_gitea("refs/heads/old", &zeros, "")), gone);
    let closed = json!({"new": null, "old": {"type": "branch", "name": "old", "target": {"hash": AFTER}}, "closed": true});
    assert_eq!(told(("x-event-key", "repo:push"), &of_bitbucket(&json!([closed]))), gone);

    let tag = Some(vec![Change::Tagged("v1".to_owned())]);
    assert_eq!(told(("x-github-event", "push"), &of_github("refs/tags/v1", AFTER, "")), tag);
    let tagged = of_gitlab("refs/tags/v1", AFTER, "");
    assert_eq!(told(("x-gitlab-event", "Tag Push Hook"), &tagged), tag);
    assert_eq!(told(("x-gitea-event", "push"), &of_gitea("refs/tags/v1", AFTER, "")), tag);
    let tagged = json!({"new": {"type": "tag", "name": "v1", "target": {"hash": AFTER}}, "old": null});
    assert_eq!(told(("x-event-key", "repo:push"), &of_bitbucket(&json!([tagged]))), tag);
}

#[test]
fn bitbucket_sends_several_changes_at_once() {
    let tagged = json!({"new": {"type": "annotated_tag", "name": "v1"}, "old": null});
    let changes = json!([of_bitbucket_branch("main", ""), tagged, of_bitbucket_branch("next", "")]);
    let expected = vec![push("main", None), Change::Tagged("v1".to_owned()), push("next", None)];
    assert_eq!(told(("x-event-key", "repo:push"), &of_bitbucket(&changes)), Some(expected));
}

#[test]
fn other_events_are_no_pushes() {
    let payload = of_github("refs/heads/main", AFTER, "");
    for event in [
        ("x-github-event", "ping"),
        ("x-github-event", "pull_request"),
        ("x-gitlab-event", "Merge Request Hook"),
        ("x-gitlab-event", "push"),
        ("x-gitea-event", "create"),
        ("x-forgejo-event", ""),
        ("x-event-key", "repo:fork"),
    ] {
        assert_eq!(told(event, &payload), None, "{event:?}");
    }
}

#[test]
fn a_push_that_makes_no_sense_changes_nothing() {
    for payload in [json!({}), json!({"ref": null}), json!({"ref": 1}), json!([]), json!({"push": {}})] {
        for event in [("x-github-event", "push"), ("x-event-key", "repo:push")] {
            assert_eq!(told(event, &payload), Some(vec![]), "{payload}");
        }
    }
    let unknown = Some(vec![Change::Other("refs/pull/1/head".to_owned())]);
    assert_eq!(told(("x-github-event", "push"), &json!({"ref": "refs/pull/1/head"})), unknown);
}
