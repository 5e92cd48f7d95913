//! The payloads of code hosts. Fields that are not needed are ignored.

mod pull_request;

use launchway_domain::webhooks::{Change, CodeHost, Delivery, RepositoryKey};
use serde::Deserialize;

pub(super) use self::pull_request::pull_request;

/// Returns the repositories that a delivery claims to be about, whose secrets have to be tried. The payload
/// is not trusted yet.
pub(super) fn repositories(payload: &[u8]) -> Vec<RepositoryKey> {
    let Ok(About { repository, project }) = serde_json::from_slice(payload) else { return Vec::new() };
    let places = [repository, project].into_iter().flatten();
    let mut keys: Vec<_> =
        places.flat_map(Place::addresses).filter_map(|address| RepositoryKey::parse(&address)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Returns the changes of a push; `None` for any other event.
pub(super) fn changes(delivery: &Delivery) -> Option<Vec<Change>> {
    let (host, payload) = (delivery.host(), delivery.payload());
    let is_push = match host.names_event_in_payload(delivery.event()) {
        true => serde_json::from_slice(&payload)
            .is_ok_and(|Named { event_name }| matches!(event_name.as_str(), "push" | "tag_push")),
        false => host.is_push(delivery.event()),
    };
    if !is_push {
        return None;
    }
    let changes = match host {
        CodeHost::Bitbucket => serde_json::from_slice(&payload).map(Bundle::changes),
        CodeHost::GitHub | CodeHost::GitLab | CodeHost::Gitea | CodeHost::Forgejo => {
            serde_json::from_slice(&payload).map(|update: Update| update.change().into_iter().collect())
        }
    };
    Some(changes.unwrap_or_default())
}

/// The event of a system hook.
#[derive(Deserialize)]
struct Named {
    event_name: String,
}

#[derive(Deserialize)]
struct About {
    repository: Option<Place>,
    /// The field of GitLab.
    project: Option<Place>,
}

/// URLs of a repository under the names of the code hosts. Fields that users may set freely, such as a
/// homepage, are excluded.
#[derive(Deserialize)]
struct Place {
    clone_url: Option<String>,
    ssh_url: Option<String>,
    html_url: Option<String>,
    git_http_url: Option<String>,
    git_ssh_url: Option<String>,
    web_url: Option<String>,
    links: Option<Links>,
}

#[derive(Deserialize)]
struct Links {
    html: Option<Link>,
}

#[derive(Deserialize)]
struct Link {
    href: Option<String>,
}

impl Place {
    fn addresses(self) -> impl Iterator<Item = String> {
        let page = self.links.and_then(|links| links.html).and_then(|link| link.href);
        let Self { clone_url, ssh_url, html_url, git_http_url, git_ssh_url, web_url, .. } = self;
        [clone_url, ssh_url, html_url, git_http_url, git_ssh_url, web_url, page].into_iter().flatten()
    }
}

/// A push of one reference, in the format of most code hosts.
#[derive(Deserialize)]
struct Update {
    #[serde(rename = "ref")]
    reference: Option<String>,
    after: Option<String>,
    head_commit: Option<Commit>,
    /// GitLab has no head commit; it is in this list.
    commits: Option<Vec<Commit>>,
}

#[derive(Deserialize)]
struct Commit {
    id: Option<String>,
    message: Option<String>,
}

impl Update {
    fn change(self) -> Option<Change> {
        let (reference, after) = (self.reference?, self.after.unwrap_or_default());
        let among = self.commits.unwrap_or_default().into_iter();
        let head = self.head_commit.or_else(|| {
            let mut among = among.filter(|commit| commit.id.as_ref() == Some(&after));
            among.next()
        });
        let message = head.and_then(|commit| commit.message);
        Some(Change::of_reference(&reference, &after, message.as_deref()))
    }
}

/// A push of several references, in the format of Bitbucket.
#[derive(Deserialize)]
struct Bundle {
    push: Option<Changes>,
}

#[derive(Deserialize)]
struct Changes {
    changes: Option<Vec<Moved>>,
}

#[derive(Deserialize)]
struct Moved {
    new: Option<Reference>,
    old: Option<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    #[serde(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    hash: Option<String>,
    message: Option<String>,
}

impl Bundle {
    fn changes(self) -> Vec<Change> {
        let moved = self.push.and_then(|push| push.changes).unwrap_or_default();
        moved.into_iter().filter_map(Moved::change).collect()
    }
}

impl Moved {
    fn change(self) -> Option<Change> {
        let is_gone = self.new.is_none();
        let Reference { kind, name, target } = self.new.or(self.old)?;
        let (name, target) = (name?, target.unwrap_or(Target { hash: None, message: None }));
        Some(match kind.as_deref() {
            Some("branch") if is_gone => Change::Deleted(name),
            Some("branch") => {
                Change::of_branch(&name, &target.hash.unwrap_or_default(), target.message.as_deref())
            }
            Some("tag" | "annotated_tag") => Change::Tagged(name),
            _ => Change::Other(name),
        })
    }
}

#[cfg(test)]
mod tests;
