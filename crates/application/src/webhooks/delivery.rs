//! Handles deliveries of code hosts.

use std::{collections::HashSet, sync::Arc, time::Duration};

use launchway_domain::{
    applications::{Application, Branch},
    audit::{Action as Did, Author, Chain, Event, Resource as Audited},
    auth::Origin,
    deployments::{CommitHash, DeploymentKind},
    ids::{ApplicationId, DeploymentId},
    organizations::Scope,
    store::{self, StoreError, Unique},
    webhooks::{Change, Delivery, DeliveryMark, KeptSecret, PullRequest, Push, Write},
};

use tokio::time::Instant;

use super::{Ignored, WebhookOutcome, Webhooks, payload, verification::beside};
use crate::{Error, applications::titled, deployments::Request, previews::RequestReport};

/// The number of attempts at a delivery while the records change concurrently.
const ATTEMPTS: u32 = 3;
/// The time for comparing the commits of a delivery. Gitea waits five seconds for an answer, others ten.
const COMPARISON: Duration = Duration::from_secs(4);

/// A delivery with a valid signature.
struct Verified {
    delivery: Arc<Delivery>,
    mark: DeliveryMark,
    secret: KeptSecret,
    origin: Origin,
    /// The end of the time for comparing commits.
    deadline: Instant,
}

impl Verified {
    fn scope(&self) -> Scope {
        Scope::of_record(self.secret.organization_id)
    }
}

/// The actions of a push for the applications of its repository.
#[derive(Default)]
struct Plan {
    /// The applications to deploy.
    deploy: Vec<(Application, Push)>,
    /// The applications for which a commit is recorded as skipped.
    pass_over: Vec<(ApplicationId, CommitHash)>,
    /// True if the delivery was handled before for at least one application.
    is_known: bool,
    /// The parts of the push that need no action.
    ignored: Vec<Ignored>,
}

impl Webhooks {
    /// Handles a delivery of a code host.
    ///
    /// # Errors
    /// [`Error::InvalidSignature`] unless it is signed with the secret of the repository of an application.
    /// The delivery is not recorded then, nor after any other error: the code host can send it again.
    pub async fn receive(&self, delivery: Delivery, origin: Origin) -> Result<WebhookOutcome, Error> {
        let delivery = Arc::new(delivery);
        let secret = self.verify(&delivery).await?;
        let read = Arc::clone(&delivery);
        let (mark, changes, request) =
            beside(move || (read.mark(), payload::changes(&read), payload::pull_request(&read))).await?;
        let deadline = Instant::now() + COMPARISON;
        let verified = Verified { delivery, mark, secret, origin, deadline };
        if let Some(request) = request {
            return self.follow(verified, request).await;
        }
        let mut attempt = 1;
        loop {
            match self.handle(&verified, changes.as_deref()).await {
                // A duplicate was faster, or an application was deleted: the next attempt finds out which.
                Err(StoreError::Stale | StoreError::Taken(Unique::WebhookDelivery)) if attempt < ATTEMPTS => {
                    attempt += 1;
                }
                outcome => return outcome?.ok_or(Error::InvalidSignature),
            }
        }
    }

    /// Passes a request on to the previews of the applications of its repository.
    async fn follow(&self, verified: Verified, request: PullRequest) -> Result<WebhookOutcome, Error> {
        let (scope, repository) = (verified.scope(), &verified.secret.repository);
        let applications = self.ports.webhooks.applications_of(scope, repository).await?;
        if applications.is_empty() {
            return Err(Error::InvalidSignature);
        }
        let Verified { delivery, mark, origin, deadline, .. } = verified;
        let (host, delivery) = (delivery.host(), delivery.id().cloned());
        let report = RequestReport { request, host, mark, delivery, origin, deadline };
        self.ports.previews.follow(&applications, &report).await
    }

    /// Handles the changes of a delivery; `None` when no application uses the repository any more.
    async fn handle(
        &self,
        verified: &Verified,
        changes: Option<&[Change]>,
    ) -> Result<Option<WebhookOutcome>, StoreError> {
        let (scope, repository) = (verified.scope(), &verified.secret.repository);
        let applications = self.ports.webhooks.applications_of(scope, repository).await?;
        if applications.is_empty() {
            return Ok(None);
        }
        let Some(changes) = changes else {
            let event = verified.delivery.event().to_owned();
            return Ok(Some(WebhookOutcome::Ignored(Ignored::Event(event))));
        };
        let plan = self.plan(verified, &applications, changes).await?;
        let handled = match (plan.deploy.is_empty(), plan.is_known) {
            (false, _) => WebhookOutcome::Deployed,
            (true, true) => WebhookOutcome::Duplicate,
            (true, false) => {
                WebhookOutcome::Ignored(plan.ignored.first().cloned().unwrap_or(Ignored::Nothing))
            }
        };
        self.carry_out(verified, plan).await?;
        Ok(Some(handled))
    }

    async fn plan(
        &self,
        verified: &Verified,
        applications: &[Application],
        changes: &[Change],
    ) -> Result<Plan, StoreError> {
        let mut plan = Plan::default();
        let mut seen = HashSet::new();
        let mut followers = Vec::new();
        for change in changes {
            let push = match change {
                Change::Pushed(push) => push,
                Change::Deleted(branch) => {
                    plan.ignored.push(Ignored::DeletedBranch(branch.clone()));
                    continue;
                }
                Change::Tagged(tag) => {
                    plan.ignored.push(Ignored::Tag(tag.clone()));
                    continue;
                }
                Change::Other(reference) => {
                    plan.ignored.push(Ignored::Reference(reference.clone()));
                    continue;
                }
            };
            let before = followers.len();
            let following = applications.iter().filter(|application| follows(application, push));
            followers.extend(
                following
                    .filter(|application| seen.insert(application.id))
                    .map(|application| (application, push)),
            );
            if followers.len() == before {
                plan.ignored.push(Ignored::Branch(push.branch.clone()));
            }
        }
        let ids: Vec<ApplicationId> = followers.iter().map(|(application, _)| application.id).collect();
        let since = self.context.clock.now() - DeliveryMark::KEPT;
        let taken = match ids.is_empty() {
            true => Vec::new(),
            false => self.ports.webhooks.taken(&ids, &verified.mark, since).await?,
        };
        plan.is_known = !taken.is_empty();
        followers.retain(|(application, _)| !taken.contains(&application.id));
        let live = self.live_commits(verified.scope(), &followers).await?;
        for (application, push) in followers {
            let is_live = push.head.is_some() && live_of(application, &live) == push.head.as_ref();
            match push.skip {
                Some(words) => {
                    plan.ignored.push(Ignored::Skipped(push.head.clone(), words));
                    plan.pass_over.extend(push.head.clone().map(|head| (application.id, head)));
                }
                None if is_live => plan.ignored.push(Ignored::is_live(push)),
                None => match self.unwatched(verified, application, push).await? {
                    Some(ignored) => {
                        plan.ignored.push(ignored);
                        plan.pass_over.extend(push.head.clone().map(|head| (application.id, head)));
                    }
                    None => plan.deploy.push((application.clone(), push.clone())),
                },
            }
        }
        Ok(plan)
    }

    /// Returns why a push does not concern an application, if it changes no path that the application watches.
    async fn unwatched(
        &self,
        verified: &Verified,
        application: &Application,
        push: &Push,
    ) -> Result<Option<Ignored>, StoreError> {
        let Some(commit) = push.head.clone() else { return Ok(None) };
        let watcher = &self.ports.watcher;
        let deployed = watcher.unchanged_since(application, &commit, verified.deadline).await?;
        Ok(deployed.map(|deployed| Ignored::Unwatched { commit, deployed }))
    }

    /// Returns the live commits of the applications that follow a push.
    async fn live_commits(
        &self,
        scope: Scope,
        followers: &[(&Application, &Push)],
    ) -> Result<Vec<(DeploymentId, CommitHash)>, StoreError> {
        let live: Vec<_> = followers.iter().filter_map(|(application, _)| application.live).collect();
        if live.is_empty() {
            return Ok(Vec::new());
        }
        let deployments = self.ports.deployments.many(scope, &live).await?;
        let commits =
            deployments.into_iter().filter_map(|deployment| Some((deployment.id, deployment.commit?)));
        Ok(commits.collect())
    }

    /// Commits the actions for all applications at once, in the order of their ids, so that concurrent
    /// deliveries cannot deadlock.
    async fn carry_out(&self, verified: &Verified, plan: Plan) -> Result<(), StoreError> {
        let at = self.context.clock.now();
        let (mut writes, mut entries) = (Vec::<store::Write>::new(), Vec::new());
        let is_deploying = !plan.deploy.is_empty();
        for (application, push) in plan.deploy {
            let (id, mark, since) = (application.id, verified.mark.clone(), at - DeliveryMark::KEPT);
            writes.push(Write::Take { application: id, mark, since, at }.into());
            let request = Request::of(&application, DeploymentKind::Fresh, &self.context);
            let deployment = request.deployment.id;
            let host = verified.delivery.host().title();
            let by = format!("a push to {} on {host}", push.branch);
            writes.extend(request.writes_because(&by, &format!("by {by}"), &self.context));
            entries.push(self.entry(verified, &application, &push, deployment));
        }
        for (application, commit) in plan.pass_over {
            writes.push(Write::PassOver { application, commit, at }.into());
        }
        if verified.secret.confirmed_at.is_none() {
            let repository = verified.secret.repository.clone();
            writes.push(Write::Confirm { scope: verified.scope(), repository, at }.into());
        }
        writes.extend(entries);
        if !writes.is_empty() {
            self.context.store.commit(writes).await?;
        }
        if is_deploying {
            self.context.wake.notify();
        }
        Ok(())
    }

    fn entry(
        &self,
        verified: &Verified,
        application: &Application,
        push: &Push,
        deployment: DeploymentId,
    ) -> store::Write {
        let chain = Chain::from(Some(application.organization_id));
        let author = Author::code_host(chain, verified.delivery.host(), verified.origin.clone());
        let titled = titled(&application.blueprint);
        let what = format!("requested a deployment of {titled} by a push to `{}`", push.branch);
        let mut event = Event::new(Did::Create, Audited::Deployment, deployment, what)
            .with("application_id", application.id)
            .with("branch", &push.branch);
        if let Some(commit) = &push.head {
            event = event.with("commit", commit);
        }
        if let Some(id) = verified.delivery.id() {
            event = event.with("delivery", id);
        }
        self.context.record(author, event)
    }
}

/// Returns whether the push deploys the application.
fn follows(application: &Application, push: &Push) -> bool {
    let branch = application.blueprint.branch.as_ref().map(Branch::as_str);
    application.blueprint.auto_deploy && branch == Some(push.branch.as_str())
}

fn live_of<'a>(application: &Application, live: &'a [(DeploymentId, CommitHash)]) -> Option<&'a CommitHash> {
    let id = application.live?;
    live.iter().find(|(deployment, _)| *deployment == id).map(|(_, commit)| commit)
}
