//! Handles what code hosts report about pull and merge requests.

use launchway_domain::{
    applications::{Application, Branch},
    audit::{Action as Did, Author, Chain, Event, Resource as Audited},
    auth::Origin,
    clock::Timestamp,
    organizations::Scope,
    previews::{Preview, PreviewSettings, PreviewState, Write},
    store::{self, Rule, StoreError, Unique},
    webhooks::{
        CodeHost, DeliveryId, DeliveryMark, HeadCommit, PullRequest, RequestEvent, Write as WebhookWrite,
    },
};
use tokio::time::Instant;

use super::{ATTEMPTS, Previews, start::Start};
use crate::{
    Error,
    applications::{deleted, deletion, titled},
    webhooks::{Ignored, WebhookOutcome},
};

/// A verified report about a request.
pub(crate) struct RequestReport {
    pub(crate) request: PullRequest,
    pub(crate) host: CodeHost,
    pub(crate) mark: DeliveryMark,
    pub(crate) delivery: Option<DeliveryId>,
    pub(crate) origin: Origin,
    /// The end of the time for comparing commits.
    pub(crate) deadline: Instant,
}

impl RequestReport {
    /// Returns the name of the request, such as "pull request 7".
    fn title(&self) -> String {
        format!("{} {}", self.host.request_title(), self.request.number)
    }

    fn ignored(&self, reason: impl Into<String>) -> WebhookOutcome {
        WebhookOutcome::Ignored(Ignored::Request { title: self.title(), reason: reason.into() })
    }

    fn author(&self, parent: &Application) -> Author {
        let chain = Chain::from(Some(parent.organization_id));
        Author::code_host(chain, self.host, self.origin.clone())
    }

    /// Names the request, and the delivery that reported it.
    fn describe(&self, event: Event, parent: &Application) -> Event {
        let event = event.with("preview_of", parent.id).with("request", self.request.number);
        match &self.delivery {
            Some(id) => event.with("delivery", id),
            None => event,
        }
    }
}

/// The change that a report requires for one application.
enum Plan {
    /// The preview is deployed.
    Deploy(Box<super::start::Started>),
    /// The record of a request waits for an approval.
    Wait(Vec<store::Write>),
    /// The preview is removed.
    Remove(Vec<store::Write>),
    /// Nothing changes.
    Nothing(WebhookOutcome),
}

impl Previews {
    /// Makes, updates or removes the previews of a request, for each of the applications of its repository.
    pub(crate) async fn follow(
        &self,
        applications: &[Application],
        report: &RequestReport,
    ) -> Result<WebhookOutcome, Error> {
        let outcomes = match report.request.event {
            RequestEvent::Closed => self.close_for(applications, report).await?,
            RequestEvent::Opened | RequestEvent::Updated | RequestEvent::Reopened => {
                self.open_for(applications, report).await?
            }
        };
        let found = |wanted: &dyn Fn(&WebhookOutcome) -> bool| {
            outcomes.iter().find(|outcome| wanted(outcome)).cloned()
        };
        // What was done for one application is more than what was not for another.
        let outcome = found(&|outcome| *outcome == WebhookOutcome::Deployed)
            .or_else(|| found(&|outcome| matches!(outcome, WebhookOutcome::Waiting(_))))
            .or_else(|| found(&|outcome| *outcome == WebhookOutcome::Duplicate))
            .or_else(|| found(&|_| true));
        Ok(outcome.unwrap_or_else(|| report.ignored("no application of the repository has previews")))
    }

    async fn open_for(
        &self,
        applications: &[Application],
        report: &RequestReport,
    ) -> Result<Vec<WebhookOutcome>, Error> {
        let Some(first) = applications.first() else { return Ok(Vec::new()) };
        let scope = Scope::of_record(first.organization_id);
        let ids: Vec<_> = applications.iter().map(|application| application.id).collect();
        let all = self.ports.previews.settings(scope, &ids).await?;
        let enabled = applications.iter().filter_map(|application| {
            let settings = all.iter().find(|settings| settings.application == application.id);
            Some((application, settings.filter(|settings| settings.is_enabled)?))
        });
        let mut outcomes = Vec::new();
        for (parent, settings) in enabled {
            let target = &report.request.target_branch;
            let branch = parent.blueprint.branch.as_ref().map(Branch::as_str);
            outcomes.push(match branch == Some(target.as_str()) {
                true => self.carry_out(parent, Some(settings), report).await?,
                false => report.ignored(format!(
                    "no application with previews deploys its target branch `{}`",
                    crate::webhooks::shown(target)
                )),
            });
        }
        Ok(outcomes)
    }

    async fn close_for(
        &self,
        applications: &[Application],
        report: &RequestReport,
    ) -> Result<Vec<WebhookOutcome>, Error> {
        let Some(first) = applications.first() else { return Ok(Vec::new()) };
        let scope = Scope::of_record(first.organization_id);
        let ids: Vec<_> = applications.iter().map(|application| application.id).collect();
        let previews = self.ports.previews.of_request(scope, &ids, report.request.number).await?;
        let mut outcomes = Vec::new();
        for parent in applications {
            if previews.iter().any(|preview| preview.parent == parent.id) {
                outcomes.push(self.carry_out(parent, None, report).await?);
            }
        }
        if outcomes.is_empty() {
            outcomes.push(report.ignored("it has no preview"));
        }
        Ok(outcomes)
    }

    /// Carries out a report for one application, again if its records change meanwhile.
    async fn carry_out(
        &self,
        parent: &Application,
        settings: Option<&PreviewSettings>,
        report: &RequestReport,
    ) -> Result<WebhookOutcome, Error> {
        let scope = Scope::of_record(parent.organization_id);
        let mut attempt = 1;
        loop {
            let now = self.context.clock.now();
            let since = now - DeliveryMark::KEPT;
            if !self.ports.webhooks.taken(&[parent.id], &report.mark, since).await?.is_empty() {
                return Ok(WebhookOutcome::Duplicate);
            }
            let known = self.ports.previews.of_request(scope, &[parent.id], report.request.number).await?;
            let known = known.into_iter().next();
            let plan = match settings {
                None => self.closing(parent, known, report).await?,
                Some(settings) => self.opening(parent, settings, known, report).await?,
            };
            let take =
                WebhookWrite::Take { application: parent.id, mark: report.mark.clone(), since, at: now };
            let mut writes: Vec<store::Write> = vec![take.into()];
            let (outcome, application) = match plan {
                Plan::Nothing(outcome) => return Ok(outcome),
                Plan::Deploy(started) => {
                    writes.extend(started.writes);
                    writes.push(started.entry);
                    (WebhookOutcome::Deployed, Some(started.application))
                }
                Plan::Wait(changes) => {
                    writes.extend(changes);
                    (WebhookOutcome::Waiting(report.title()), None)
                }
                Plan::Remove(changes) => {
                    writes.extend(changes);
                    (WebhookOutcome::Deployed, None)
                }
            };
            match self.context.store.commit(writes).await {
                Ok(()) => {
                    match application {
                        Some(application) => self.started(scope, application).await,
                        None => self.context.wake.notify(),
                    }
                    return Ok(outcome);
                }
                // A preview or its parent was changed or deleted, or a duplicate was faster: the next attempt finds out
                // which.
                Err(StoreError::Stale | StoreError::Taken(Unique::WebhookDelivery)) if attempt < ATTEMPTS => {
                    attempt += 1;
                }
                Err(error) => return refusal(error, parent, settings, report),
            }
        }
    }

    /// Plans the preview of a request that is open.
    async fn opening(
        &self,
        parent: &Application,
        settings: &PreviewSettings,
        known: Option<Preview>,
        report: &RequestReport,
    ) -> Result<Plan, Error> {
        let (request, now) = (&report.request, self.context.clock.now());
        let seen = known.as_ref().map(|preview| preview.updated_at);
        let is_closed = known.as_ref().is_some_and(|preview| preview.state == PreviewState::Closed);
        if is_closed && request.event != RequestEvent::Reopened {
            return Ok(Plan::Nothing(report.ignored("it was closed")));
        }
        let running = known.filter(|_| !is_closed);
        let is_same = |preview: &Preview| preview.head.is_some() && preview.head == request.head;
        if let Some(preview) = running.as_ref().filter(|preview| is_same(preview)) {
            let head = preview.head.as_ref().map_or("", HeadCommit::short);
            let reason = format!("commit {head} is known already");
            return Ok(Plan::Nothing(report.ignored(reason)));
        }
        let preview = Preview {
            parent: parent.id,
            number: request.number,
            code_host: report.host,
            application: running.as_ref().and_then(|preview| preview.application),
            state: running.as_ref().map_or(PreviewState::Waiting, |preview| preview.state),
            branch: request.source_branch.clone(),
            head: request.head.clone(),
            is_from_fork: request.is_from_fork,
            approved: running.as_ref().and_then(|preview| preview.approved.clone()),
            expires_at: now + settings.lifetime.duration(),
            created_at: running.as_ref().map_or(now, |preview| preview.created_at),
            updated_at: now,
        };
        if request.is_from_fork {
            return Ok(self.waiting(parent, settings, preview, seen, report));
        }
        let Ok(branch) = request.source_branch.parse::<Branch>() else {
            return Ok(Plan::Nothing(report.ignored("its branch has a name that git does not accept")));
        };
        if let Some(reason) = self.unwatched(parent, &preview, &branch, report).await? {
            return Ok(Plan::Nothing(report.ignored(reason)));
        }
        let host = report.host.title();
        let by = format!("{} on {host}", report.title());
        let reason = format!("by {by}");
        let author = report.author(parent);
        let start = Start { parent, settings, preview, seen, branch, commit: None, by, reason, author };
        match self.start(start).await {
            Ok(started) => Ok(Plan::Deploy(Box::new(started))),
            Err(Error::Invalid(reason)) => Ok(Plan::Nothing(report.ignored(reason))),
            Err(error) => Err(error),
        }
    }

    /// Records a request from a fork, of which nothing runs before a member approves it.
    fn waiting(
        &self,
        parent: &Application,
        settings: &PreviewSettings,
        preview: Preview,
        seen: Option<Timestamp>,
        report: &RequestReport,
    ) -> Plan {
        if report.host.request_reference(report.request.number).is_none() {
            let host = report.host.title();
            let reason = format!("it comes from a fork, and {host} gives no access to the commits of forks");
            return Plan::Nothing(report.ignored(reason));
        }
        let scope = Scope::of_record(parent.organization_id);
        let what = format!(
            "reported {} from a fork for {}: its preview waits for an approval",
            report.title(),
            titled(&parent.blueprint)
        );
        let mut event = Event::new(Did::Update, Audited::Application, parent.id, what);
        if let Some(head) = &preview.head {
            event = event.with("commit", head);
        }
        let event = report.describe(event, parent);
        let most = match preview.state {
            PreviewState::Active => settings.limit.get(),
            PreviewState::Waiting | PreviewState::Closed => Preview::MOST_WAITING,
        };
        let record = self.context.record(report.author(parent), event);
        Plan::Wait(vec![Write::Put { scope, preview, seen, most }.into(), record])
    }

    /// Returns why a request does not concern an application: it changes no path that the application watches.
    async fn unwatched(
        &self,
        parent: &Application,
        preview: &Preview,
        branch: &Branch,
        report: &RequestReport,
    ) -> Result<Option<String>, Error> {
        let head = preview.head.as_ref().and_then(HeadCommit::full);
        let Some(head) = head.filter(|_| !parent.blueprint.watch_paths.is_empty()) else { return Ok(None) };
        let scope = Scope::of_record(parent.organization_id);
        let running = match preview.application {
            Some(id) => self.ports.applications.get(scope, id).await?,
            None => None,
        };
        // The preview, or before there is one the version that the request would change.
        let mut compared = running.unwrap_or_else(|| parent.clone());
        compared.blueprint.branch = Some(branch.clone());
        let watcher = &self.ports.watcher;
        let deployed = watcher.unchanged_since(&compared, &head, report.deadline).await?;
        Ok(deployed.map(|deployed| format!("no path of watch_paths changed since {}", deployed.short())))
    }

    /// Plans the removal of the preview of a request that was closed or merged. Its record stays for a while, so that
    /// late reports make no other one.
    async fn closing(
        &self,
        parent: &Application,
        known: Option<Preview>,
        report: &RequestReport,
    ) -> Result<Plan, Error> {
        let Some(known) = known.filter(|preview| preview.state != PreviewState::Closed) else {
            return Ok(Plan::Nothing(report.ignored("it has no preview")));
        };
        let (scope, now) = (Scope::of_record(parent.organization_id), self.context.clock.now());
        let running = match known.application {
            Some(id) => self.ports.applications.get(scope, id).await?,
            None => None,
        };
        let mut writes = Vec::new();
        // The record goes with its application.
        let mut seen = Some(known.updated_at);
        let event = match &running {
            Some(application) => {
                writes.extend(deletion(application, &self.context));
                seen = None;
                deleted(application)
            }
            None => {
                let what = format!("removed {} of {}", report.title(), titled(&parent.blueprint));
                Event::new(Did::Update, Audited::Application, parent.id, what)
            }
        };
        let closed = Preview {
            application: None,
            state: PreviewState::Closed,
            expires_at: now + Preview::CLOSED_KEPT,
            updated_at: now,
            ..known
        };
        writes.push(Write::Put { scope, preview: closed, seen, most: u16::MAX }.into());
        writes.push(self.context.record(report.author(parent), report.describe(event, parent)));
        Ok(Plan::Remove(writes))
    }
}

/// Returns the outcome of a report whose preview the store refused.
fn refusal(
    error: StoreError,
    parent: &Application,
    settings: Option<&PreviewSettings>,
    report: &RequestReport,
) -> Result<WebhookOutcome, Error> {
    let name = &parent.blueprint.name;
    let reason = match error {
        StoreError::Refused(Rule::MostPreviews) => match (settings, report.request.is_from_fork) {
            (Some(settings), false) => {
                format!("the application `{name}` has {} previews already", settings.limit.get())
            }
            _ => format!("too many requests from forks wait for an approval of `{name}`"),
        },
        StoreError::QuotaExceeded(exceeded) => exceeded.to_string(),
        StoreError::Taken(Unique::ApplicationName) => {
            format!("another application has the name of the preview of `{name}`")
        }
        StoreError::Stale => {
            let sentence = format!("{} was changed in the meantime: send it again", report.title());
            return Err(Error::Conflict(sentence));
        }
        error => return Err(error.into()),
    };
    Ok(report.ignored(reason))
}
