//! Deliveries about pull and merge requests, in the original format of each code host.

use serde_json::{Value, json};

use super::code_hosts::{Delivery, Host};

/// A change of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happened {
    Opened,
    Updated,
    Reopened,
    Closed,
    Merged,
}

/// A request of the repository at `url` into `main`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) url: &'a str,
    pub(super) number: i64,
    pub(super) branch: &'a str,
    pub(super) head: &'a str,
    pub(super) is_from_fork: bool,
}

impl Request<'_> {
    /// Returns the delivery of a host about a change, with an id of its own.
    pub(super) fn by(&self, host: Host, happened: Happened) -> Delivery {
        let (event, payload) = match host {
            Host::GitHub => ("pull_request", self.common(happened, "synchronize")),
            Host::Gitea | Host::Forgejo => ("pull_request", self.common(happened, "synchronized")),
            Host::GitLab => ("Merge Request Hook", self.of_gitlab(happened)),
            Host::Bitbucket => (
                match happened {
                    Happened::Opened => "pullrequest:created",
                    Happened::Updated | Happened::Reopened => "pullrequest:updated",
                    Happened::Closed => "pullrequest:rejected",
                    Happened::Merged => "pullrequest:fulfilled",
                },
                self.of_bitbucket(happened),
            ),
        };
        let id = format!("{happened:?} {} {}", self.number, self.head);
        Delivery { host, event, id, body: payload.to_string() }
    }

    fn common(&self, happened: Happened, synchronized: &str) -> Value {
        let action = match happened {
            Happened::Opened => "opened",
            Happened::Updated => synchronized,
            Happened::Reopened => "reopened",
            Happened::Closed | Happened::Merged => "closed",
        };
        let repository = json!({
            "id": 140, "name": "engine", "full_name": "ada/engine", "private": false, "fork": false,
            "clone_url": self.url, "html_url": self.url.trim_end_matches(".git"), "default_branch": "main",
        });
        let fork = json!({
            "id": 141, "name": "engine", "full_name": "grace/engine", "private": false, "fork": true,
            "clone_url": format!("{}-of-grace.git", self.url.trim_end_matches(".git")),
        });
        let is_open = !matches!(happened, Happened::Closed | Happened::Merged);
        json!({
            "action": action, "number": self.number,
            "pull_request": {
                "id": 279147437, "number": self.number, "title": "Add a login", "body": "Words.",
                "state": if is_open { "open" } else { "closed" }, "merged": happened == Happened::Merged,
                "user": {"login": "grace", "id": 7},
                "head": {
                    "label": format!("grace:{}", self.branch), "ref": self.branch, "sha": self.head,
                    "repo": if self.is_from_fork { &fork } else { &repository },
                },
                "base": {
                    "label": "ada:main", "ref": "main", "sha": "f95f852bd8fca8fcc58a9a2d6c842781e32a215e",
                    "repo": repository,
                },
                "created_at": "2026-11-17T09:00:00Z", "updated_at": "2026-11-17T10:00:00Z",
            },
            "repository": repository, "sender": {"login": "grace", "id": 7},
        })
    }

    fn of_gitlab(&self, happened: Happened) -> Value {
        let action = match happened {
            Happened::Opened => "open",
            Happened::Updated => "update",
            Happened::Reopened => "reopen",
            Happened::Closed => "close",
            Happened::Merged => "merge",
        };
        let project = json!({
            "id": 15, "name": "Engine", "path_with_namespace": "ada/engine", "git_http_url": self.url,
            "web_url": self.url.trim_end_matches(".git"), "default_branch": "main",
        });
        let mut payload = json!({
            "object_kind": "merge_request", "event_type": "merge_request",
            "user": {"id": 7, "name": "Grace", "username": "grace"},
            "project": project, "repository": {"name": "Engine", "url": self.url, "homepage": self.url},
            "object_attributes": {
                "id": 93, "iid": self.number, "target_branch": "main", "source_branch": self.branch,
                "source_project_id": if self.is_from_fork { 16 } else { 15 }, "target_project_id": 15,
                "title": "Add a login", "state": "opened", "merge_status": "unchecked", "target": project,
                "last_commit": {"id": self.head, "message": "Add a login", "author": {"name": "Grace"}},
                "updated_at": "2026-11-17 10:00:00 UTC", "action": action,
            },
            "labels": [], "changes": {},
        });
        if happened == Happened::Updated {
            payload["object_attributes"]["oldrev"] = json!("95790bf891e76fee5e1747ab589903a6a1f80f22");
        }
        payload
    }

    fn of_bitbucket(&self, happened: Happened) -> Value {
        let repository = |name: &str| {
            json!({
                "type": "repository", "full_name": name, "name": "engine",
                "links": {"html": {"href": self.url}},
            })
        };
        let from = if self.is_from_fork { "grace/engine" } else { "ada/engine" };
        let state = match happened {
            Happened::Closed => "DECLINED",
            Happened::Merged => "MERGED",
            _ => "OPEN",
        };
        json!({
            "actor": {"type": "user", "display_name": "Grace"},
            "pullrequest": {
                "type": "pullrequest", "id": self.number, "title": "Add a login", "state": state,
                "author": {"type": "user", "display_name": "Grace"},
                "source": {
                    "branch": {"name": self.branch},
                    "commit": {"type": "commit", "hash": &self.head[..12]}, "repository": repository(from),
                },
                "destination": {
                    "branch": {"name": "main"}, "commit": {"type": "commit", "hash": "ce5965ddd289"},
                    "repository": repository("ada/engine"),
                },
                "updated_on": "2026-11-17T10:00:00.000000+00:00",
            },
            "repository": repository("ada/engine"),
        })
    }
}
