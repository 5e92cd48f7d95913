//! A push: receives it, and shows its deployment in the terminal of the client.

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Payload},
};
use launchway_application::{
    Error,
    logs::{Followed, LogFollower, LogSubject},
    sources::Pushed,
};
use launchway_domain::{
    auth::Actor,
    deployments::DeploymentState,
    error_chain::ErrorChain,
    ids::DeploymentId,
    logs::{Level, LogFilter},
    sources::{GitService, PushRequest, Report, progress, sideband},
};
use tokio::time::{Instant, sleep};

use super::{
    GitRequest, answer, authenticate,
    body::{self, Refused, collect},
    failure,
    output::{ResponseOutput, channel},
    refusal,
};
use crate::{Api, applications::describe};

/// The interval of checks that the client may still read.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// The pause between two looks at the deployment: somebody waits for its end.
const PAUSE: Duration = Duration::from_millis(50);

/// Receives the body, and answers while the push is deployed.
pub(super) async fn receive(
    api: Data<Api>,
    request: &HttpRequest,
    opened: GitRequest,
    payload: Payload,
) -> Result<HttpResponse, HttpResponse> {
    let permit = body::permit(&api).await?;
    let spool = api.services.sources.spool(&opened.actor).await.map_err(failure)?;
    let collected = collect(payload, spool, api.options.body_timeout).await;
    let push = PushRequest::parse(&collected.head)
        .map_err(|invalid| refusal(StatusCode::BAD_REQUEST, &invalid.to_string()))?;
    let body = match collected.body {
        Ok(body) => body,
        Err(Refused::TooLarge(sentence)) => {
            let pushed = Pushed { report: Report::refusal(&push, &sentence), ..Pushed::default() };
            let mut bytes = pushed.report.encode(&push);
            bytes.extend(Report::end(&push));
            return Ok(answer(GitService::ReceivePack, "result").body(bytes));
        }
        Err(Refused::Incomplete(sentence)) => return Err(refusal(StatusCode::BAD_REQUEST, sentence)),
        Err(Refused::Failed(error)) => return Err(failure(Error::Unavailable(error.into()))),
    };
    let (output, stream) = channel();
    let request = request.clone();
    // The push is finished even if the client goes away.
    actix_web::rt::spawn(async move {
        let GitRequest { actor, target, .. } = opened;
        let pushed = api.services.sources.push(&actor, &target, (push.clone(), body), &describe).await;
        drop(permit);
        let pushed = pushed.unwrap_or_else(|error| {
            tracing::error!(error = %ErrorChain(&error), "push failed");
            Pushed { report: Report::refusal(&push, &error.to_string()), ..Pushed::default() }
        });
        let terminal = Terminal { api, request, output, push };
        terminal.show(actor, pushed).await;
    });
    Ok(answer(GitService::ReceivePack, "result").streaming(stream))
}

/// The terminal of the client.
struct Terminal {
    api: Data<Api>,
    request: HttpRequest,
    output: ResponseOutput,
    push: PushRequest,
}

impl Terminal {
    /// Sends the answer of git, the sentences, and the log of the deployment.
    async fn show(&self, actor: Actor, pushed: Pushed) {
        if !self.output.send(pushed.report.encode(&self.push)).await {
            return;
        }
        for line in &pushed.lines {
            self.print(line).await;
        }
        if let Some(deployment) = pushed.deployment.filter(|_| self.push.has_sideband) {
            match self.follow(actor, deployment).await {
                Ok(Some(sentence)) => drop(self.print(&sentence).await),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(error = %ErrorChain(&error), "log of a push cannot be shown");
                    self.print("The log cannot be shown; the deployment continues").await;
                }
            }
        }
        self.output.send(Report::end(&self.push).to_vec()).await;
    }

    async fn print(&self, line: &str) -> bool {
        !self.push.has_sideband || self.output.send(progress(line)).await
    }

    /// Shows the log until the deployment has finished, and returns the last sentence; `None` if the client is gone.
    async fn follow(&self, mut actor: Actor, id: DeploymentId) -> Result<Option<String>, Error> {
        let services = &self.api.services;
        let Ok(permit) = services.streams.open(&actor) else {
            return Ok(Some(format!(
                "Too many logs are followed; `launchway logs --deployment {id}` shows this one"
            )));
        };
        let log = services.logs.open(&actor, LogSubject::Deployment(id), LogFilter::default()).await?;
        let application = log.application.clone();
        let (mut follower, mut last_check) = (LogFollower::new(log, None, permit), Instant::now());
        loop {
            // Read first, so that a line between the two queries is not missed. The log of a live deployment has no end.
            let state = services.sources.state(&actor, id).await?;
            let lines = match follower.poll(&services.logs, &actor).await? {
                Followed::Lines(lines) => lines,
                Followed::Nothing | Followed::End => Vec::new(),
            };
            let is_empty = lines.is_empty();
            for line in lines.iter().filter(|line| line.level != Level::Runtime) {
                if !self.print(&line.text).await {
                    return Ok(None);
                }
            }
            if is_empty && state.is_final() {
                let url = services.applications.url(&application);
                return Ok(Some(ended(state, url.as_deref())));
            }
            if self.api.is_stopping() {
                return Ok(Some(
                    "The server is stopping; the deployment continues at its next start".to_owned(),
                ));
            }
            if follower.needs_sign() && !self.output.send(sideband(2, b" ")).await {
                return Ok(None);
            }
            if last_check.elapsed() >= CHECK_EVERY {
                last_check = Instant::now();
                let Ok(again) = authenticate(&self.api, &self.request).await else { return Ok(None) };
                let organization = actor.organization()?.id();
                let Some(again) = again.acting_in(organization) else { return Ok(None) };
                actor = again;
            }
            if is_empty {
                sleep(PAUSE).await;
            }
        }
    }
}

fn ended(state: DeploymentState, url: Option<&str>) -> String {
    match (state, url) {
        (DeploymentState::Deployed, Some(url)) => format!("Live at {url}"),
        (DeploymentState::Deployed, None) => "Live".to_owned(),
        (DeploymentState::Cancelled, _) => "The deployment was cancelled".to_owned(),
        _ => "The deployment failed; the branch has moved all the same. Push a fix, or roll back".to_owned(),
    }
}
