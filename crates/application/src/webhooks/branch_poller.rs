//! Polls branches and compares them with what was deployed: a push webhook may get lost.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use launchway_domain::{
    applications::Application,
    audit::{Action as Did, Author, Chain, Event, Resource as Audited},
    deployments::{CommitHash, DeploymentKind, GitSource, SourceFetcher, StepError},
    ids::ApplicationId,
    organizations::DeployKeyRepository,
    secret::SecretBox,
    store::StoreError,
    webhooks::{BranchHead, FollowedBranches, Write},
};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    PathWatcher,
    git_sources::{GitSources, is_by_ssh},
};
use crate::{Error, ServiceContext, applications::titled, deployments::Request};

/// The ports of the branch poller.
pub struct BranchPollerPorts {
    /// Reads the applications that follow a branch.
    pub branches: Arc<dyn FollowedBranches>,
    /// Reads the deploy keys of private repositories.
    pub deploy_keys: Arc<dyn DeployKeyRepository>,
    /// Decrypts keys and credentials.
    pub secrets: Arc<dyn SecretBox>,
    /// Resolves the head of a branch.
    pub source: Arc<dyn SourceFetcher>,
    /// Compares commits with the paths that applications watch.
    pub watcher: PathWatcher,
}

/// The interval and the timeout of the branch poller.
#[derive(Debug, Clone, Copy)]
pub struct BranchPollerTimings {
    /// The time between the end of a round and the next one.
    pub every: Duration,
    /// The timeout of a request to a repository.
    pub max_wait: Duration,
}

impl BranchPollerTimings {
    /// Returns the timings for rounds with the interval `every`.
    #[must_use]
    pub fn each(every: Duration) -> Self {
        Self { every, max_wait: Duration::from_secs(30) }
    }
}

/// The number of repositories that are polled concurrently.
const AT_ONCE: usize = 4;

/// Compares branches with what was deployed, and deploys missed commits.
pub struct BranchPoller {
    ports: BranchPollerPorts,
    sources: GitSources,
    timings: BranchPollerTimings,
    context: ServiceContext,
}

/// A query for the head of a branch, shared by the applications that need it.
struct Question {
    /// The first application that needs the query.
    id: ApplicationId,
    source: GitSource,
    applications: Vec<Application>,
}

/// The key of a query: URL, branch, user, password and deploy key.
type SourceKey = (String, String, Option<(String, String)>, Option<String>);

/// The queries that failed in the last round, by the first application of each.
type FailedApplications = HashSet<ApplicationId>;

impl BranchPoller {
    /// Returns a poller over `ports`.
    pub fn new(ports: BranchPollerPorts, timings: BranchPollerTimings, context: ServiceContext) -> Self {
        let sources = GitSources::new(Arc::clone(&ports.deploy_keys), Arc::clone(&ports.secrets));
        Self { ports, sources, timings, context }
    }

    /// Polls immediately and then periodically, until `stop` is true.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = self.run_polling() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    async fn run_polling(&self) {
        let mut failed_applications = FailedApplications::new();
        loop {
            self.context.replica.wait_for_leadership().await;
            if let Err(error) = self.compare(&mut failed_applications).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "branches could not be polled");
            }
            sleep(self.timings.every).await;
        }
    }

    /// Runs one round. A repository that does not respond is logged once, and is polled last from then on.
    async fn compare(&self, failed_applications: &mut FailedApplications) -> Result<(), Error> {
        let mut questions = self.questions(failed_applications).await?;
        questions.sort_by_key(|question| failed_applications.contains(&question.id));
        let places = Arc::new(Semaphore::new(AT_ONCE));
        let mut asked = JoinSet::new();
        for question in questions {
            let (places, source) = (Arc::clone(&places), Arc::clone(&self.ports.source));
            let max_wait = self.timings.max_wait;
            asked.spawn(async move {
                let _place = places.acquire().await;
                let head = timeout(max_wait, source.head(&question.source)).await;
                let late = || Err(StepError::Rejected(format!("no answer within {max_wait:?}")));
                (question, head.unwrap_or_else(|_elapsed| late()))
            });
        }
        while let Some(answered) = asked.join_next().await {
            let (question, head) = answered.map_err(|broken| Error::Internal(broken.into()))?;
            match head {
                Ok(commit) => {
                    failed_applications.remove(&question.id);
                    for application in &question.applications {
                        self.catch_up(application, &question.source, &commit).await?;
                    }
                }
                Err(reason) => note(failed_applications, question.id, &reason),
            }
        }
        Ok(())
    }

    /// Returns the queries of a round, without duplicates.
    async fn questions(
        &self,
        failed_applications: &mut FailedApplications,
    ) -> Result<Vec<Question>, StoreError> {
        let mut keys = HashMap::new();
        let mut questions: HashMap<SourceKey, Question> = HashMap::new();
        for application in self.ports.branches.followers().await? {
            let organization = application.organization_id;
            if is_by_ssh(&application) && !keys.contains_key(&organization) {
                keys.insert(organization, self.sources.key_of(&application).await?);
            }
            let key = keys.get(&organization).and_then(Option::as_ref);
            let source = match self.sources.with_key(&application, key) {
                Ok(Some(source)) => source,
                Ok(None) => continue,
                Err(error) => {
                    note(failed_applications, application.id, &error);
                    continue;
                }
            };
            let question = questions.entry(source_key(&source)).or_insert_with(|| Question {
                id: application.id,
                source,
                applications: Vec::new(),
            });
            question.applications.push(application);
        }
        let mut questions: Vec<_> = questions.into_values().collect();
        questions.sort_by_key(|question| question.id);
        Ok(questions)
    }

    /// Deploys `commit` if the application missed it and a watched path changed.
    async fn catch_up(
        &self,
        application: &Application,
        source: &GitSource,
        commit: &CommitHash,
    ) -> Result<(), Error> {
        let head = BranchHead {
            application: application.id,
            repository: source.url.clone(),
            branch: source.branch.clone(),
            commit: commit.clone(),
        };
        if !self.ports.branches.is_missed(&head).await? {
            return Ok(());
        }
        let deadline = Instant::now() + self.timings.max_wait;
        if self.ports.watcher.unchanged_since(application, commit, deadline).await?.is_some() {
            return self.pass_over(head).await;
        }
        let request = Request::of(application, DeploymentKind::Fresh, &self.context);
        let (branch, short) = (&source.branch, commit.short());
        let what = format!(
            "requested a deployment of {}, because `{branch}` is at {short} and no push was received",
            titled(&application.blueprint)
        );
        let event = Event::new(Did::Create, Audited::Deployment, request.deployment.id, what)
            .with("application_id", application.id)
            .with("branch", branch)
            .with("commit", commit);
        let author = Author::launchway(Chain::from(Some(application.organization_id)));
        let mut writes = vec![Write::RequireMissed(head).into()];
        let reason = format!("because {branch} is at {short} and no push was received");
        writes.extend(request.writes_because("launchway", &reason, &self.context));
        writes.push(self.context.record(author, event));
        match self.context.commit_as_leader(writes).await {
            Ok(()) => self.context.wake.notify(),
            // The push arrived in the meantime, or another instance was faster.
            Err(StoreError::Stale) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Records that a commit changes nothing that the application watches, so that it is not compared again.
    async fn pass_over(&self, head: BranchHead) -> Result<(), Error> {
        let (application, commit, at) = (head.application, head.commit.clone(), self.context.clock.now());
        let writes =
            vec![Write::RequireMissed(head).into(), Write::PassOver { application, commit, at }.into()];
        match self.context.commit_as_leader(writes).await {
            // A deployment was requested in the meantime.
            Ok(()) | Err(StoreError::Stale) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Logs a failing query once, until it succeeds again.
fn note(failed_applications: &mut FailedApplications, id: ApplicationId, reason: &dyn fmt::Display) {
    if failed_applications.insert(id) {
        tracing::warn!(%reason, application.id = %id, "branch comparison failed");
    }
}

fn source_key(source: &GitSource) -> SourceKey {
    let credentials = source.credentials.as_ref();
    (
        source.url.as_str().to_owned(),
        source.branch.as_str().to_owned(),
        credentials.map(|given| (given.username.clone(), given.password.expose().clone())),
        source.key.as_ref().map(|key| key.expose().clone()),
    )
}
