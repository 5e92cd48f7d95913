//! Deliveries of code hosts: their headers and payloads, in the original format.

use data_encoding::HEXLOWER;
use hmac::{Hmac, Mac as _};
use launchway_testkit::client::{Answer, Client};
use serde_json::{Value, json};
use sha2::Sha256;

use super::{AFTER, WEBHOOK};

/// A kind of code host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    GitHub,
    GitLab,
    Gitea,
    Forgejo,
    Bitbucket,
}

impl Host {
    pub(super) const ALL: [Self; 5] =
        [Self::GitHub, Self::GitLab, Self::Gitea, Self::Forgejo, Self::Bitbucket];

    /// A repository there, in the spelling of a user.
    pub(super) fn address(self) -> &'static str {
        match self {
            Self::GitHub => "git@github.com:ada/engine.git",
            Self::GitLab => "https://gitlab.com/ada/engine",
            Self::Gitea => "https://gitea.example.com/ada/engine.git",
            Self::Forgejo => "ssh://git@CODEBERG.example.com/ada/engine.git",
            Self::Bitbucket => "https://bitbucket.org/ada/engine.git",
        }
    }

    /// Returns the URL in the spelling of the host.
    fn clone_url(self) -> &'static str {
        match self {
            Self::GitHub => "https://github.com/ada/engine.git",
            Self::GitLab => "https://gitlab.com/ada/engine.git",
            Self::Gitea => "https://gitea.example.com/ada/engine.git",
            Self::Forgejo => "https://codeberg.example.com/ada/engine.git",
            Self::Bitbucket => "https://bitbucket.org/ada/engine",
        }
    }

    /// A push of a branch of the repository at [`Host::address`].
    pub(super) fn push(self, branch: &str, message: &str) -> Delivery {
        self.push_from(self.clone_url(), &format!("refs/heads/{branch}"), AFTER, message)
    }

    /// A push of a reference.
    pub(super) fn push_of(self, reference: &str, after: &str) -> Delivery {
        self.push_from(self.clone_url(), reference, after, "A change")
    }

    /// A push of a reference of the repository at `url`.
    pub(super) fn push_from(self, url: &str, reference: &str, after: &str, message: &str) -> Delivery {
        let commit = json!({
            "id": after, "message": message, "timestamp": "2026-11-15T11:00:00+01:00",
            "url": format!("{url}/commit/{after}"), "author": {"name": "Ada", "email": "ada@example.com"},
            "added": [], "removed": [], "modified": ["index.html"],
        });
        let before = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c";
        let mut payload = json!({
            "ref": reference, "before": before, "after": after, "commits": [commit], "head_commit": commit,
        });
        let more = match self {
            Self::GitHub => json!({
                "created": false, "deleted": false, "forced": false, "base_ref": null,
                "repository": {
                    "id": 35129377, "full_name": "ada/engine", "private": true, "clone_url": url,
                    "html_url": url.trim_end_matches(".git"), "owner": {"login": "ada"},
                },
                "pusher": {"name": "ada", "email": "ada@example.com"}, "sender": {"login": "ada", "id": 6752317},
            }),
            Self::GitLab => json!({
                "object_kind": if reference.starts_with("refs/tags/") { "tag_push" } else { "push" },
                "event_name": "push", "checkout_sha": after, "head_commit": null, "user_username": "ada",
                "project_id": 15, "total_commits_count": 1,
                "project": {
                    "id": 15, "path_with_namespace": "ada/engine", "git_http_url": url,
                    "web_url": url.trim_end_matches(".git"),
                },
                "repository": {"name": "Engine", "url": url, "git_http_url": url},
            }),
            Self::Gitea | Self::Forgejo => json!({
                "compare_url": format!("{url}/compare/{before}...{after}"), "total_commits": 1,
                "repository": {
                    "id": 140, "full_name": "ada/engine", "clone_url": url,
                    "html_url": url.trim_end_matches(".git"), "ssh_url": "",
                },
                "pusher": {"id": 1, "login": "ada"}, "sender": {"id": 1, "login": "ada"},
            }),
            Self::Bitbucket => return self.bundle(url, reference, after, message),
        };
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let event = match self {
            Self::GitLab if reference.starts_with("refs/tags/") => "Tag Push Hook",
            Self::GitLab => "Push Hook",
            _ => "push",
        };
        Delivery { host: self, event, id: "delivery-1".to_owned(), body: payload.to_string() }
    }

    fn bundle(self, url: &str, reference: &str, after: &str, message: &str) -> Delivery {
        let (kind, name) = match reference.strip_prefix("refs/heads/") {
            Some(branch) => ("branch", branch),
            None => ("tag", reference.trim_start_matches("refs/tags/")),
        };
        let reference = json!({
            "type": kind, "name": name,
            "target": {"type": "commit", "hash": after, "message": message, "date": "2026-11-15T10:00:00+00:00"},
        });
        let is_gone = after.starts_with("0000000");
        let (new, old) = if is_gone { (Value::Null, reference) } else { (reference, Value::Null) };
        let payload = json!({
            "push": {"changes": [{"new": new, "old": old, "closed": is_gone, "created": !is_gone, "forced": false}]},
            "actor": {"type": "user", "display_name": "Ada"},
            "repository": {
                "type": "repository", "full_name": "ada/engine",
                "links": {"html": {"href": url}, "self": {"href": "https://api.bitbucket.org/2.0/repositories/ada/engine"}},
            },
        });
        Delivery { host: self, event: "repo:push", id: "delivery-1".to_owned(), body: payload.to_string() }
    }

    /// A delivery of another event.
    pub(super) fn other(self) -> Delivery {
        let event = match self {
            Self::GitHub => "ping",
            Self::GitLab => "Merge Request Hook",
            Self::Gitea => "create",
            Self::Forgejo => "issues",
            Self::Bitbucket => "repo:fork",
        };
        Delivery { event, ..self.push("main", "A change") }
    }
}

/// Names and values.
pub(super) type Headers = Vec<(&'static str, String)>;

/// A delivery of a code host.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) host: Host,
    pub(super) event: &'static str,
    pub(super) id: String,
    pub(super) body: String,
}

impl Delivery {
    /// Returns the same under another id.
    pub(super) fn called(&self, id: &str) -> Self {
        Self { id: id.to_owned(), ..self.clone() }
    }

    /// Returns the same as a form.
    pub(super) fn as_form(&self) -> Self {
        let mut form = "payload=".to_owned();
        for byte in self.body.bytes() {
            match byte {
                b' ' => form.push('+'),
                byte if byte.is_ascii_alphanumeric() => form.push(byte.into()),
                byte => form.push_str(&format!("%{byte:02X}")),
            }
        }
        Self { body: form, ..self.clone() }
    }

    /// Returns the headers of the delivery, signed with `secret`.
    pub(super) fn headers(&self, secret: &str) -> Headers {
        self.headers_signing(secret, &self.body)
    }

    /// Returns the same with the signature of another text.
    pub(super) fn headers_signing(&self, secret: &str, text: &str) -> Headers {
        let signature = signature(secret, text);
        let named = format!("sha256={signature}");
        let (event, id) = (self.event.to_owned(), self.id.clone());
        let sha1 = "sha1=7d38cdd689735b008b3c702edd92eea23791c5f6".to_owned();
        let like_gitea = |event: &String, id: &String| {
            vec![
                ("x-gitea-event", event.clone()),
                ("x-gitea-delivery", id.clone()),
                ("x-gitea-signature", signature.clone()),
                ("x-gogs-event", event.clone()),
                ("x-hub-signature", sha1.clone()),
                ("x-hub-signature-256", named.clone()),
                ("x-github-event", event.clone()),
                ("x-github-delivery", id.clone()),
            ]
        };
        match self.host {
            Host::GitHub => vec![
                ("x-github-event", event),
                ("x-github-delivery", id),
                ("x-github-hook-id", "292430182".to_owned()),
                ("x-hub-signature", sha1),
                ("x-hub-signature-256", named),
            ],
            Host::GitLab => vec![
                ("x-gitlab-event", event),
                ("x-gitlab-event-uuid", "shared".to_owned()),
                ("idempotency-key", id),
                ("x-gitlab-instance", "https://gitlab.com".to_owned()),
                ("x-gitlab-token", secret.to_owned()),
            ],
            Host::Gitea => like_gitea(&event, &id),
            Host::Forgejo => {
                let mut headers = like_gitea(&event, &id);
                headers.extend([
                    ("x-forgejo-event", event),
                    ("x-forgejo-delivery", id),
                    ("x-forgejo-signature", signature.clone()),
                ]);
                headers
            }
            Host::Bitbucket => vec![
                ("x-event-key", event),
                ("x-request-uuid", id),
                ("x-hook-uuid", "hook".to_owned()),
                ("x-hub-signature", named),
            ],
        }
    }

    /// Sends it, signed with `secret`.
    pub(super) fn send(&self, client: &Client, secret: &str) -> Answer {
        send(client, &self.headers(secret), &self.body)
    }
}

/// Sends a body with these headers and no others.
pub(super) fn send(client: &Client, headers: &[(&'static str, String)], body: &str) -> Answer {
    let with = |client: Client, (name, value): &(&str, String)| client.with_header(name, value);
    headers.iter().fold(client.clone(), with).send("POST", WEBHOOK, Some(body))
}

/// Returns the HMAC-SHA256 of a text, in hexadecimal digits.
pub(super) fn signature(secret: &str, text: &str) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap().chain_update(text);
    HEXLOWER.encode(&mac.finalize().into_bytes())
}
