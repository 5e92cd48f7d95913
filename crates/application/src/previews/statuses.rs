//! Reports the progress of previews to code hosts, as commit statuses.
//!
//! **Invariant:** a report follows the records: the newest status is compared with the one that was reported last, so that
//! a report that failed, or that a killed server began, is made again.

use std::{collections::HashMap, sync::Arc, time::Duration};

use launchway_domain::{
    ids::ApplicationId,
    logs::Masker,
    notifications::{Answer, Post, SendError},
    organizations::Scope,
    previews::{CodeHostApi, CodeHostToken, CommitStatus, StatusState, UnreportedStatus, Write},
    secret::Secret,
    store::StoreError,
    webhooks::{CodeHost, RequestNumber},
};
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::Previews;
use crate::Error;

/// The longest time between two comparisons, and the shortest.
const EVERY: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);
/// The delay before the first retry of a report, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(60 * 60));

/// A report that failed.
struct Failed {
    status: CommitStatus,
    attempts: u32,
    retry_at: Instant,
}

/// The reports that failed, by the parent of the preview and the number of its request.
type Failures = HashMap<(ApplicationId, RequestNumber), Failed>;

impl Previews {
    /// Reports statuses until `stop` is true, while this server leads.
    pub async fn report_statuses(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = self.run_status_reports() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    async fn run_status_reports(&self) {
        let (mut wake, mut failures) = (self.context.wake.listen(), Failures::new());
        loop {
            self.context.replica.wait_for_leadership().await;
            if let Err(error) = self.report_unreported(&mut failures).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "commit statuses could not be compared");
            }
            let soonest = failures.values().map(|failed| failed.retry_at).min();
            let wait = soonest.map_or(EVERY, |at| at.saturating_duration_since(Instant::now()).min(EVERY));
            wake.wait_timeout(wait.max(PAUSE)).await;
            // Each step of a deployment wakes: a report of every one of them would be too many.
            sleep(PAUSE).await;
        }
    }

    async fn report_unreported(&self, failures: &mut Failures) -> Result<(), Error> {
        let unreported = self.ports.previews.unreported().await?;
        let key = |status: &UnreportedStatus| (status.preview.parent, status.preview.number);
        failures.retain(|known, _| unreported.iter().any(|one| key(one) == *known));
        for one in unreported {
            let known = failures.get(&key(&one)).filter(|failed| failed.status == one.status);
            if known.is_some_and(|failed| Instant::now() < failed.retry_at) {
                continue;
            }
            let attempts = known.map_or(0, |failed| failed.attempts);
            match self.report_one(&one).await? {
                Reported::Done | Reported::WithoutToken => {
                    failures.remove(&key(&one));
                }
                Reported::Failed => {
                    let delay = (RETRY.0 * 2_u32.pow(attempts.min(10))).min(RETRY.1);
                    let retry_at = Instant::now() + delay;
                    let failed = Failed { status: one.status.clone(), attempts: attempts + 1, retry_at };
                    failures.insert(key(&one), failed);
                }
            }
        }
        Ok(())
    }

    async fn report_one(&self, one: &UnreportedStatus) -> Result<Reported, Error> {
        let Some((host, path)) = one.repository() else { return Ok(Reported::WithoutToken) };
        let tokens = self.ports.previews.tokens(Scope::of_record(one.organization)).await?;
        let Some(token) = tokens.into_iter().find(|token| token.host == host) else {
            return Ok(Reported::WithoutToken);
        };
        let place = CodeHostToken::associated_data(token.organization, &token.host);
        let opened = self.ports.secrets.open(&place, &token.token)?;
        let secret = Secret::new(String::from_utf8_lossy(opened.expose()).into_owned());
        let api = token.api.clone();
        let api = api.unwrap_or_else(|| CodeHostApi::default_of(one.preview.code_host, &host));
        let url = self.ports.routes.url(&one.application);
        let sent = match post(one, &api, &path, url.as_deref(), &secret) {
            Some(post) => self.ports.sender.post(post).await,
            None => Err(SendError::Unreachable("the address of the API cannot be used".to_owned())),
        };
        let problem = problem_of(sent, &secret);
        let mut writes = Vec::new();
        if problem != token.problem {
            let problem = problem.clone();
            writes.push(Write::RecordProblem { organization: token.organization, host, problem }.into());
        }
        let is_done = problem.is_none();
        if let Some(problem) = problem {
            let application = one.parent.id;
            tracing::warn!(application.id = %application, %problem, "commit status could not be reported");
        } else {
            let (parent, number, status) = (one.preview.parent, one.preview.number, one.status.clone());
            writes.push(Write::RecordStatus { parent, number, status }.into());
        }
        if !writes.is_empty() {
            match self.context.commit_as_leader(writes).await {
                // Another server leads now, and reports it again.
                Ok(()) | Err(StoreError::Stale) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(if is_done { Reported::Done } else { Reported::Failed })
    }
}

/// The result of a report.
enum Reported {
    Done,
    /// The organization has no token for the code host.
    WithoutToken,
    Failed,
}

/// Returns the reason why a report failed, without the token.
fn problem_of(sent: Result<Answer, SendError>, token: &Secret<String>) -> Option<String> {
    let problem = match sent {
        Ok(answer) if (200..300).contains(&answer.status) => return None,
        Ok(Answer { status, excerpt, .. }) => format!("the code host answered {status}: {excerpt}"),
        Err(error) => error.to_string(),
    };
    Some(Masker::new([token.expose().as_str()]).mask(&problem))
}

/// Returns the request that reports a status; `None` if its address is invalid.
fn post(
    one: &UnreportedStatus,
    api: &CodeHostApi,
    path: &str,
    url: Option<&str>,
    token: &Secret<String>,
) -> Option<Post> {
    let (kind, commit, token) = (one.preview.code_host, &one.status.commit, token.expose());
    let address = match kind {
        CodeHost::GitHub | CodeHost::Gitea | CodeHost::Forgejo => {
            format!("{api}/repos/{path}/statuses/{commit}")
        }
        CodeHost::GitLab => format!("{api}/projects/{}/statuses/{commit}", path.replace('/', "%2F")),
        CodeHost::Bitbucket => format!("{api}/repositories/{path}/commit/{commit}/statuses/build"),
    };
    let header = match kind {
        CodeHost::GitHub | CodeHost::Bitbucket => ("authorization", format!("Bearer {token}")),
        CodeHost::Gitea | CodeHost::Forgejo => ("authorization", format!("token {token}")),
        CodeHost::GitLab => ("private-token", token.clone()),
    };
    Some(Post { url: address.try_into().ok()?, headers: vec![header], body: body(one, url).to_string() })
}

fn body(one: &UnreportedStatus, url: Option<&str>) -> serde_json::Value {
    let (state, description) = (one.status.state, description(one.status.state));
    let name = format!("launchway/{}", one.parent.blueprint.name);
    let spelled = match (one.preview.code_host, state) {
        (CodeHost::GitLab, StatusState::Failure) => "failed",
        (CodeHost::Bitbucket, StatusState::Pending) => "INPROGRESS",
        (CodeHost::Bitbucket, StatusState::Success) => "SUCCESSFUL",
        (CodeHost::Bitbucket, StatusState::Failure) => "FAILED",
        (_, state) => state.as_str(),
    };
    let mut body = match one.preview.code_host {
        CodeHost::GitHub | CodeHost::Gitea | CodeHost::Forgejo => {
            json!({"state": spelled, "description": description, "context": name})
        }
        CodeHost::GitLab => json!({"state": spelled, "description": description, "name": name}),
        // The key identifies the status, and has at most 40 characters.
        CodeHost::Bitbucket => {
            json!({"state": spelled, "description": description, "name": name, "key": one.parent.id.to_string()})
        }
    };
    let field = if one.preview.code_host == CodeHost::Bitbucket { "url" } else { "target_url" };
    if let Some(url) = url {
        body[field] = url.into();
    }
    body
}

fn description(state: StatusState) -> &'static str {
    match state {
        StatusState::Pending => "The preview is being deployed",
        StatusState::Success => "The preview is live",
        StatusState::Failure => "The preview could not be deployed",
    }
}
