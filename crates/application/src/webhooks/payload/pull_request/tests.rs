//! Requests in the formats of the code hosts, without the fields that are not read.

use serde_json::{Value, json};

use super::*;
use crate::webhooks::payload::tests::delivery;

const HEAD: &str = "ec26c3e57ca3a959ca5aad62de7213c562f8c821";

/// Returns the request that an event reports.
fn reported(event: (&'static str, &str), payload: &Value) -> Option<PullRequest> {
    pull_request(&delivery(event, payload))
}

fn expected(event: RequestEvent, is_from_fork: bool) -> PullRequest {
    PullRequest {
        number: 7.try_into().unwrap(),
        event,
        source_branch: "feature/login".to_owned(),
        target_branch: "main".to_owned(),
        head: HEAD.parse().ok(),
        is_from_fork,
    }
}

/// A payload of GitHub, Gitea or Forgejo; `from` is the repository of the head.
fn common(action: &str, from: &Value) -> Value {
    json!({
        "action": action, "number": 7,
        "pull_request": {
            "id": 279147437, "number": 7, "state": "open", "title": "Add a login", "user": {"login": "grace"},
            "head": {"label": "grace:feature/login", "ref": "feature/login", "sha": HEAD, "repo": from},
            "base": {
                "label": "ada:main", "ref": "main", "sha": "f95f852bd8fca8fcc58a9a2d6c842781e32a215e",
                "repo": {"id": 186853002, "full_name": "ada/engine", "fork": false},
            },
            "merged": false, "draft": false, "updated_at": "2026-11-17T10:00:00Z",
        },
        "repository": {"id": 186853002, "full_name": "ada/engine", "clone_url": "https://github.com/ada/engine.git"},
        "sender": {"login": "grace"},
    })
}

fn of_gitlab(action: &str, source: i64, oldrev: Option<&str>) -> Value {
    let mut payload = json!({
        "object_kind": "merge_request", "event_type": "merge_request", "user": {"username": "grace"},
        "project": {"id": 15, "path_with_namespace": "ada/engine", "git_http_url": "https://gitlab.com/ada/engine.git"},
        "object_attributes": {
            "id": 93, "iid": 7, "target_branch": "main", "source_branch": "feature/login",
            "source_project_id": source, "target_project_id": 15, "title": "Add a login", "state": "opened",
            "last_commit": {"id": HEAD, "message": "Add a login"}, "action": action,
        },
    });
    if let Some(oldrev) = oldrev {
        payload["object_attributes"]["oldrev"] = json!(oldrev);
    }
    payload
}

fn of_bitbucket(from: &Value) -> Value {
    json!({
        "actor": {"display_name": "Grace", "type": "user"},
        "pullrequest": {
            "id": 7, "title": "Add a login", "state": "OPEN", "type": "pullrequest",
            "source": {
                "branch": {"name": "feature/login"}, "commit": {"hash": &HEAD[..12], "type": "commit"},
                "repository": from,
            },
            "destination": {
                "branch": {"name": "main"}, "commit": {"hash": "ce5965ddd289", "type": "commit"},
                "repository": {"full_name": "ada/engine", "type": "repository"},
            },
        },
        "repository": {"full_name": "ada/engine", "links": {"html": {"href": "https://bitbucket.org/ada/engine"}}},
    })
}

fn own() -> Value {
    json!({"id": 186853002, "full_name": "ada/engine"})
}

#[test]
fn github_gitea_and_forgejo_report_every_change() {
    for (header, synchronized) in [
        ("x-github-event", "synchronize"),
        ("x-gitea-event", "synchronized"),
        ("x-forgejo-event", "synchronized"),
    ] {
        for (action, event) in [
            ("opened", RequestEvent::Opened),
            (synchronized, RequestEvent::Updated),
            ("reopened", RequestEvent::Reopened),
            ("closed", RequestEvent::Closed),
        ] {
            let request = reported((header, "pull_request"), &common(action, &own()));
            assert_eq!(request, Some(expected(event, false)), "{header} {action}");
        }
        for action in ["edited", "labeled", "assigned", "review_requested", "ready_for_review"] {
            assert_eq!(reported((header, "pull_request"), &common(action, &own())), None, "{action}");
        }
        assert_eq!(reported((header, "push"), &common("opened", &own())), None);
    }
    let by_its_type = reported(("x-gitea-event", "pull_request_sync"), &common("synchronized", &own()));
    assert_eq!(by_its_type, Some(expected(RequestEvent::Updated, false)));
}

#[test]
fn gitlab_reports_every_change() {
    let old = Some("95790bf891e76fee5e1747ab589903a6a1f80f22");
    for (action, oldrev, event) in [
        ("open", None, RequestEvent::Opened),
        ("update", old, RequestEvent::Updated),
        ("reopen", None, RequestEvent::Reopened),
        ("close", None, RequestEvent::Closed),
        ("merge", None, RequestEvent::Closed),
    ] {
        let payload = of_gitlab(action, 15, oldrev);
        for header in ["Merge Request Hook", "System Hook"] {
            let request = reported(("x-gitlab-event", header), &payload);
            assert_eq!(request, Some(expected(event, false)), "{action}");
        }
    }
    // Without other commits, or of another kind.
    for action in ["update", "approved", "unapproved"] {
        assert_eq!(reported(("x-gitlab-event", "Merge Request Hook"), &of_gitlab(action, 15, None)), None);
    }
    let mut other = of_gitlab("open", 15, None);
    other["object_kind"] = json!("issue");
    assert_eq!(reported(("x-gitlab-event", "System Hook"), &other), None);
}

#[test]
fn bitbucket_reports_every_change() {
    for (name, event) in [
        ("pullrequest:created", RequestEvent::Opened),
        ("pullrequest:updated", RequestEvent::Updated),
        ("pullrequest:fulfilled", RequestEvent::Closed),
        ("pullrequest:rejected", RequestEvent::Closed),
    ] {
        let request = reported(("x-event-key", name), &of_bitbucket(&own()));
        let head = HEAD[..12].parse().ok();
        assert_eq!(request, Some(PullRequest { head, ..expected(event, false) }), "{name}");
    }
    for name in ["pullrequest:approved", "pullrequest:comment_created", "repo:push"] {
        assert_eq!(reported(("x-event-key", name), &of_bitbucket(&own())), None);
    }
}

#[test]
fn what_is_not_known_to_be_in_the_repository_is_from_a_fork() {
    let fork = json!({"id": 7, "full_name": "grace/engine", "fork": true});
    for from in [&fork, &Value::Null, &json!({})] {
        let request = reported(("x-github-event", "pull_request"), &common("opened", from));
        assert_eq!(request, Some(expected(RequestEvent::Opened, true)), "{from}");
        let request = reported(("x-event-key", "pullrequest:created"), &of_bitbucket(from)).unwrap();
        assert!(request.is_from_fork, "{from}");
    }
    let request = reported(("x-gitlab-event", "Merge Request Hook"), &of_gitlab("open", 16, None));
    assert_eq!(request, Some(expected(RequestEvent::Opened, true)));
    let mut unknown = common("opened", &own());
    unknown["pull_request"]["head"]["repo"] = Value::Null;
    unknown["pull_request"]["base"]["repo"] = Value::Null;
    assert!(reported(("x-github-event", "pull_request"), &unknown).unwrap().is_from_fork);
}

#[test]
fn what_makes_no_sense_is_no_request() {
    for payload in [json!({}), json!([]), json!({"action": "opened"}), json!({"action": 1, "number": "7"})] {
        for event in [
            ("x-github-event", "pull_request"),
            ("x-gitlab-event", "Merge Request Hook"),
            ("x-event-key", "pullrequest:created"),
        ] {
            assert_eq!(reported(event, &payload), None, "{payload}");
        }
    }
    for number in [0, -1, 1_000_000_000] {
        let mut payload = common("opened", &own());
        payload["number"] = json!(number);
        assert_eq!(reported(("x-github-event", "pull_request"), &payload), None, "{number}");
    }
}
