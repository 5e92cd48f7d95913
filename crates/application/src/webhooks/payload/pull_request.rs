//! Pull and merge requests in the payloads of code hosts.

use launchway_domain::webhooks::{CodeHost, Delivery, HeadCommit, PullRequest, RequestEvent, RequestNumber};
use serde::Deserialize;

/// Returns the change of a request that a delivery reports; `None` for any other event.
pub(in crate::webhooks) fn pull_request(delivery: &Delivery) -> Option<PullRequest> {
    let (host, payload) = (delivery.host(), delivery.payload());
    let is_named_in_payload = host.names_event_in_payload(delivery.event());
    if !is_named_in_payload && !host.is_pull_request(delivery.event()) {
        return None;
    }
    match host {
        CodeHost::GitHub | CodeHost::Gitea | CodeHost::Forgejo => {
            serde_json::from_slice::<Common>(&payload).ok()?.request()
        }
        CodeHost::GitLab => serde_json::from_slice::<Merge>(&payload).ok()?.request(),
        CodeHost::Bitbucket => {
            let event = match delivery.event() {
                "pullrequest:created" => RequestEvent::Opened,
                "pullrequest:updated" => RequestEvent::Updated,
                "pullrequest:fulfilled" | "pullrequest:rejected" => RequestEvent::Closed,
                _ => return None,
            };
            serde_json::from_slice::<Bitbucket>(&payload).ok()?.request(event)
        }
    }
}

/// The format of GitHub, Gitea and Forgejo.
#[derive(Deserialize)]
struct Common {
    action: String,
    number: i64,
    pull_request: Ends,
}

#[derive(Deserialize)]
struct Ends {
    head: End,
    base: End,
}

#[derive(Deserialize)]
struct End {
    #[serde(rename = "ref")]
    branch: String,
    sha: Option<String>,
    /// Absent if the fork was deleted.
    repo: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    full_name: Option<String>,
}

impl Common {
    fn request(self) -> Option<PullRequest> {
        let event = match self.action.as_str() {
            "opened" => RequestEvent::Opened,
            "reopened" => RequestEvent::Reopened,
            "synchronize" | "synchronized" => RequestEvent::Updated,
            "closed" => RequestEvent::Closed,
            _ => return None,
        };
        let Ends { head, base } = self.pull_request;
        let is_from_fork = is_from_fork(name(head.repo), name(base.repo));
        request(self.number, event, (head.branch, base.branch), head.sha, is_from_fork)
    }
}

/// The format of GitLab.
#[derive(Deserialize)]
struct Merge {
    object_kind: String,
    object_attributes: Attributes,
}

#[derive(Deserialize)]
struct Attributes {
    iid: i64,
    action: Option<String>,
    source_branch: String,
    target_branch: String,
    source_project_id: Option<i64>,
    target_project_id: Option<i64>,
    last_commit: Option<Commit>,
    /// The head before the change, if commits were pushed.
    oldrev: Option<String>,
}

#[derive(Deserialize)]
struct Commit {
    id: Option<String>,
}

impl Merge {
    fn request(self) -> Option<PullRequest> {
        let about = self.object_attributes;
        let event = match about.action.as_deref() {
            _ if self.object_kind != "merge_request" => return None,
            Some("open") => RequestEvent::Opened,
            Some("reopen") => RequestEvent::Reopened,
            Some("update") if about.oldrev.is_some() => RequestEvent::Updated,
            Some("close" | "merge") => RequestEvent::Closed,
            _ => return None,
        };
        let is_from_fork = is_from_fork(about.source_project_id, about.target_project_id);
        let head = about.last_commit.and_then(|commit| commit.id);
        request(about.iid, event, (about.source_branch, about.target_branch), head, is_from_fork)
    }
}

/// The format of Bitbucket, whose header names the event.
#[derive(Deserialize)]
struct Bitbucket {
    pullrequest: BitbucketRequest,
}

#[derive(Deserialize)]
struct BitbucketRequest {
    id: i64,
    source: BitbucketEnd,
    destination: BitbucketEnd,
}

#[derive(Deserialize)]
struct BitbucketEnd {
    branch: BitbucketBranch,
    commit: Option<BitbucketCommit>,
    /// Absent if the fork was deleted.
    repository: Option<Named>,
}

#[derive(Deserialize)]
struct BitbucketBranch {
    name: String,
}

#[derive(Deserialize)]
struct BitbucketCommit {
    hash: Option<String>,
}

impl Bitbucket {
    fn request(self, event: RequestEvent) -> Option<PullRequest> {
        let BitbucketRequest { id, source, destination } = self.pullrequest;
        let is_from_fork = is_from_fork(name(source.repository), name(destination.repository));
        let head = source.commit.and_then(|commit| commit.hash);
        request(id, event, (source.branch.name, destination.branch.name), head, is_from_fork)
    }
}

fn name(repository: Option<Named>) -> Option<String> {
    repository.and_then(|repository| repository.full_name)
}

/// Returns whether the source is not known to be in the repository of the target.
fn is_from_fork<T: PartialEq>(source: Option<T>, target: Option<T>) -> bool {
    source.is_none() || source != target
}

fn request(
    number: i64,
    event: RequestEvent,
    (source_branch, target_branch): (String, String),
    head: Option<String>,
    is_from_fork: bool,
) -> Option<PullRequest> {
    Some(PullRequest {
        number: RequestNumber::try_from(number).ok()?,
        event,
        source_branch,
        target_branch,
        head: head.and_then(|hash| HeadCommit::try_from(hash).ok()),
        is_from_fork,
    })
}

#[cfg(test)]
mod tests;
