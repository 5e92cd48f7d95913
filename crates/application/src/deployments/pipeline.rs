//! Executes a deployment: source, build, start, health check, switch, retirement.
//!
//! **Invariant:** until [`Write::GoLive`] is durable, every failure leaves the live version as it was; from
//! then on, an attempt only goes forward. Each step may be repeated.

mod build;
mod compose;
mod health;
mod image_quota;
mod lifecycle;
mod release;
mod replace;

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    applications::{Application, ApplicationRepository},
    audit::{Action as Did, Author, Chain, Event, Resource as Audited},
    deployments::{
        BuildPlanner, Composer, Deployer, Deployment, DeploymentRepository, DeploymentState, EngineInventory,
        HealthProbe, ImageBuilder, Owner, Progress, SiteStore, SourceFetcher, StepError, Write,
    },
    ids::{ApplicationId, DeploymentId},
    jobs::{ClaimedJob, Lease, Outcome, Write as JobWrite},
    logs::{Level, LogSink, NewLine, Write as LogWrite},
    organizations::DeployKeyRepository,
    secret::SecretBox,
    store,
};

pub use self::image_quota::ImageQuota;
use super::{
    log::{DeploymentLog, secrets_of},
    retirement::{Retired, Retirer},
};
use crate::{
    Error, ServiceContext,
    applications::{OpenSecrets, Vault, titled},
    job_control::{JobControl, JobError},
    routes::Routes,
    runtime_logs::RuntimeLogs,
};

/// The ports of the deployment pipeline.
pub struct PipelinePorts {
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Reads deployments.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// Stores the log of a deployment.
    pub logs: Arc<dyn LogSink>,
    /// Collects the output of containers before they are removed; not collected if absent.
    pub runtime_logs: Option<Arc<RuntimeLogs>>,
    /// Reads the deploy keys of private repositories.
    pub deploy_keys: Arc<dyn DeployKeyRepository>,
    /// Decrypts variables, credentials and keys.
    pub secrets: Arc<dyn SecretBox>,
    /// Fetches source.
    pub source: Arc<dyn SourceFetcher>,
    /// Plans builds of source without a Dockerfile.
    pub planner: Arc<dyn BuildPlanner>,
    /// Builds and pulls images.
    pub images: Arc<dyn ImageBuilder>,
    /// Limits the bytes of images; without it they are unlimited.
    pub image_quota: Option<ImageQuota>,
    /// Runs the services of compose files.
    pub composer: Arc<dyn Composer>,
    /// Runs containers.
    pub deployer: Arc<dyn Deployer>,
    /// Lists the resources on the engine.
    pub inventory: Arc<dyn EngineInventory>,
    /// Checks the health of a container.
    pub probe: Arc<dyn HealthProbe>,
    /// Stores published files.
    pub sites: Arc<dyn SiteStore>,
    /// Routes the traffic.
    pub routes: Arc<Routes>,
}

/// The timeouts of the health check of a new version.
#[derive(Debug, Clone, Copy)]
pub struct HealthTimings {
    /// The time that a version may take until it responds.
    pub limit: Duration,
    /// The time that a version without an HTTP health check has to stay up.
    pub stability: Duration,
    /// The longest pause between two checks.
    pub pause: Duration,
}

impl HealthTimings {
    /// Returns the timings of an installation with `limit`.
    #[must_use]
    pub fn within(limit: Duration) -> Self {
        Self { limit, stability: Duration::from_secs(1), pause: Duration::from_millis(50) }
    }
}

/// Executes deployments and the other jobs of applications.
pub struct Pipeline {
    ports: PipelinePorts,
    retirer: Retirer,
    /// True if the previous version is stopped inside the job, because no reconciler would find it.
    retires_inside: bool,
    vault: Vault,
    timings: HealthTimings,
    context: ServiceContext,
}

/// One attempt at a deployment.
struct Attempt<'a> {
    lease: Lease,
    /// The number of the attempt, without those that were excused.
    counted: i32,
    application: Application,
    deployment: Deployment,
    secrets: OpenSecrets,
    owner: Owner,
    log: Arc<DeploymentLog>,
    job_control: &'a JobControl,
}

impl Pipeline {
    /// Returns a pipeline over `ports`.
    pub fn new(ports: PipelinePorts, timings: HealthTimings, context: ServiceContext) -> Self {
        let vault = Vault::new(Arc::clone(&ports.secrets));
        let retirer = Retirer {
            applications: Arc::clone(&ports.applications),
            deployments: Arc::clone(&ports.deployments),
            deployer: Arc::clone(&ports.deployer),
            inventory: Arc::clone(&ports.inventory),
            runtime_logs: ports.runtime_logs.clone(),
            routes: Arc::clone(&ports.routes),
            context: context.clone(),
        };
        Self { ports, retirer, retires_inside: false, vault, timings, context }
    }

    /// Configures the pipeline to run without a reconciler: a deployment finishes only when the previous
    /// version is stopped.
    #[must_use]
    pub fn without_reconciler(mut self) -> Self {
        self.retires_inside = true;
        self
    }

    /// Stops a version that lost the traffic once its last request is done. If it cannot be stopped now, it
    /// is an orphan, which the reconciler retires.
    pub(crate) async fn retire(&self, retired: &Retired) {
        if let Err(error) = self.retirer.retire(retired).await {
            tracing::warn!(deployment.id = %retired.deployment(), %error, "previous version could not be retired yet");
        }
    }

    /// Logs in the deployment log that its job waits for the engine.
    pub(crate) async fn log_waiting(&self, claimed: &ClaimedJob, reason: &str) {
        let Ok(deployment_id) = claimed.job.payload.parse() else { return };
        let text = format!("Waiting for the Docker engine: {reason}");
        let (application_id, at) = (claimed.job.subject.into(), self.context.clock.now());
        let line = NewLine { application_id, deployment_id, level: Level::Warn, text, at };
        if let Err(error) = self.ports.logs.append(vec![line]).await {
            tracing::warn!(%error, deployment.id = %deployment_id, "log line could not be stored");
        }
    }

    /// Runs one attempt at the deployment of `claimed`. Every result of the attempt is durable when this
    /// returns `Ok`. Returns the versions that lost the traffic.
    pub(crate) async fn deploy(
        &self,
        claimed: &ClaimedJob,
        job_control: &JobControl,
    ) -> Result<Vec<Retired>, JobError> {
        let Some(attempt) = self.begin(claimed, job_control).await? else {
            // The application was deleted, so the deployment is no longer needed.
            self.settle(claimed, Outcome::Cancelled, Vec::new()).await?;
            return Ok(Vec::new());
        };
        match attempt.log.keep_writing_during(Box::pin(self.carry_out(&attempt))).await {
            Ok(mut retired) => {
                if self.retires_inside {
                    for retired in retired.drain(..) {
                        self.retire(&retired).await;
                    }
                }
                attempt.log.flush().await;
                self.settle(claimed, Outcome::Succeeded, Vec::new()).await?;
                Ok(retired)
            }
            Err(JobError::Permanent(reason)) => {
                self.fail(claimed, &attempt, attempt.log.shown(&reason)).await?;
                Ok(Vec::new())
            }
            Err(JobError::Unavailable(reason)) => {
                attempt.log.flush().await;
                Err(JobError::Unavailable(reason))
            }
            Err(JobError::Retryable(reason)) => {
                let reason = attempt.log.shown(&reason);
                let what = match job_control.is_committed() {
                    true => "The remaining steps are retried later",
                    false => "Attempt failed",
                };
                attempt.log.write_line(Level::Warn, format!("{what}: {reason}")).await;
                attempt.log.flush().await;
                Err(JobError::Retryable(reason))
            }
            Err(JobError::LeaseLost) => Err(JobError::LeaseLost),
        }
    }

    async fn begin<'a>(
        &self,
        claimed: &ClaimedJob,
        job_control: &'a JobControl,
    ) -> Result<Option<Attempt<'a>>, JobError> {
        let (scope, id) = (claimed.job.scope, ApplicationId::from(claimed.job.subject));
        let Ok(deployment_id) = claimed.job.payload.parse() else { return Ok(None) };
        let Some(deployment) = self.ports.deployments.get(scope, deployment_id).await? else {
            return Ok(None);
        };
        let Some(application) = self.ports.applications.get(scope, id).await? else { return Ok(None) };
        let secrets = self.vault.open(&application).map_err(undecryptable)?;
        let owner = Owner {
            organization: scope.id(),
            application: id,
            deployment: deployment_id,
            attempt: claimed.lease.attempt,
        };
        let log = DeploymentLog::of(
            Arc::clone(&self.ports.logs),
            Arc::clone(&self.context.clock),
            deployment.clone(),
            secrets_of(&secrets),
        );
        let counted = claimed.lease.attempt - claimed.job.excused;
        Ok(Some(Attempt {
            lease: claimed.lease,
            counted,
            application,
            deployment,
            secrets,
            owner,
            log,
            job_control,
        }))
    }

    async fn carry_out(&self, attempt: &Attempt<'_>) -> Result<Vec<Retired>, JobError> {
        if attempt.application.live == Some(attempt.deployment.id) {
            attempt.job_control.mark_committed();
            return self.take_over(attempt).await;
        }
        if attempt.owner.attempt > 1 {
            // Attempts that only waited for a dependency do not count.
            if attempt.counted > 1 {
                attempt.log.write_line(Level::Info, format!("Attempt {}", attempt.counted)).await;
            }
            self.clear_away(attempt.owner.deployment).await?;
        }
        self.restore_previous(&attempt.application).await?;
        let (version, made) = self.make(attempt).await?;
        let released = self.release(attempt, &version, made).await;
        let is_ours_to_remove = matches!(released, Err(JobError::Permanent(_) | JobError::Retryable(_)));
        if is_ours_to_remove && !attempt.job_control.is_committed() {
            self.ports.deployer.remove(attempt.deployment.id).await?;
            self.restore_previous(&attempt.application).await?;
        }
        released
    }

    /// Removes the resources that attempts at a deployment left, unless their version is live.
    pub(crate) async fn clear_up_after(&self, claimed: &ClaimedJob) -> Result<(), JobError> {
        let Ok(deployment) = claimed.job.payload.parse::<DeploymentId>() else { return Ok(()) };
        let application = self.ports.applications.get(claimed.job.scope, claimed.job.subject.into()).await?;
        if application.as_ref().is_some_and(|application| application.live == Some(deployment)) {
            return Ok(());
        }
        self.clear_away(deployment).await?;
        match application {
            Some(application) => Ok(self.restore_previous(&application).await?),
            None => Ok(()),
        }
    }

    async fn clear_away(&self, deployment: DeploymentId) -> Result<(), StepError> {
        self.ports.source.discard(deployment).await?;
        self.ports.deployer.remove(deployment).await
    }

    /// Records that the version is live: the remaining work concerns the old one only.
    async fn finish(&self, attempt: &Attempt<'_>) -> Result<(), JobError> {
        if attempt.deployment.status.state.is_over() {
            return Ok(());
        }
        attempt.log.flush().await;
        let (id, at) = (attempt.deployment.id, self.context.clock.now());
        let progress = Progress { state: Some(DeploymentState::Deployed), ..Progress::default() };
        let duration = (at - attempt.deployment.created_at).as_seconds_f64();
        let line = attempt.log.line(Level::Info, &format!("Deployed in {duration:.1} s"));
        let event = self.ended(&attempt.application, &attempt.deployment, "deployed");
        let writes =
            vec![Write::Advance { id, progress, at }.into(), LogWrite::Append(vec![line]).into(), event];
        self.commit(attempt.lease, writes).await
    }

    async fn fail(
        &self,
        claimed: &ClaimedJob,
        attempt: &Attempt<'_>,
        reason: String,
    ) -> Result<(), JobError> {
        if let Err(error) = self.ports.source.discard(attempt.deployment.id).await {
            tracing::warn!(deployment.id = %attempt.deployment.id, %error, "work directory could not be removed");
        }
        attempt.log.flush().await;
        let event = self.ended(&attempt.application, &attempt.deployment, "failed to deploy");
        self.settle(claimed, Outcome::Failed { reason }, vec![event]).await
    }

    /// Settles a job, and its deployment with it if it has one.
    pub(crate) async fn settle(
        &self,
        claimed: &ClaimedJob,
        outcome: Outcome,
        more: Vec<store::Write>,
    ) -> Result<(), JobError> {
        let (at, application) = (self.context.clock.now(), Some(claimed.job.subject.into()));
        let mut writes = vec![
            JobWrite::Settle { lease: claimed.lease, outcome, at }.into(),
            Write::FollowJobs { application, at }.into(),
        ];
        writes.extend(more);
        Ok(self.context.store.commit(writes).await?)
    }

    /// Commits writes if this worker still holds the lease.
    async fn commit(&self, lease: Lease, writes: Vec<store::Write>) -> Result<(), JobError> {
        let writes = [JobWrite::Prove(lease).into()].into_iter().chain(writes).collect();
        Ok(self.context.store.commit(writes).await?)
    }

    /// Records the progress of the deployment.
    async fn record(&self, attempt: &Attempt<'_>, progress: Progress) -> Result<(), JobError> {
        let at = self.context.clock.now();
        let advance = Write::Advance { id: attempt.deployment.id, progress, at };
        self.commit(attempt.lease, vec![advance.into()]).await
    }

    /// Runs `work` while its progress is recorded, so that it need not wait for the disk. If the record
    /// shows that the lease is lost, the work is dropped.
    async fn while_recorded<T, E: Into<JobError>>(
        &self,
        attempt: &Attempt<'_>,
        progress: Progress,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, JobError> {
        let recorded = self.record(attempt, progress);
        // A failure of the work does not undo the earlier record.
        let ((), worked) = tokio::try_join!(recorded, async { Ok(work.await) })?;
        worked.map_err(Into::into)
    }

    /// Returns the audit event of the end of a deployment.
    fn ended(&self, application: &Application, deployment: &Deployment, what: &str) -> store::Write {
        let author = Author::launchway(Chain::Organization(application.organization_id));
        let what = format!("{what} {}", titled(&application.blueprint));
        let event = Event::new(Did::Update, Audited::Deployment, deployment.id, what)
            .with("application_id", application.id);
        self.context.record(author, event)
    }
}

fn undecryptable(error: Error) -> JobError {
    tracing::error!(%error, source = ?std::error::Error::source(&error), "application secrets could not be decrypted");
    JobError::Permanent("a secret of this application cannot be decrypted".to_owned())
}
