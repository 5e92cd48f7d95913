//! Executes a deployment: source, build, start, health check, switch, retirement.
//!
//! **Invariant:** until [`Write::GoLive`] is durable, every failure leaves the live version as it was; from
//! then on, an attempt only goes forward. Each step may be repeated.
//!
//! [`Write::GoLive`]: launchway_domain::deployments::Write::GoLive

mod build;
mod health;
mod image_quota;
mod lifecycle;
mod records;
mod recreate;
mod release;
mod subject;
mod workload;

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    applications::ApplicationRepository,
    deployments::{
        BuildPlanner, Composer, Deployer, DeploymentRepository, EngineInventory, HealthProbe, ImageBuilder,
        SiteStore, SourceFetcher, StepError,
    },
    ids::DeploymentId,
    jobs::{ClaimedJob, Outcome, Pool},
    logs::{Level, LogSink, NewLine},
    organizations::DeployKeyRepository,
    secret::SecretBox,
};

pub use self::image_quota::ImageQuota;
use self::{
    build::Builder,
    health::HealthCheck,
    image_quota::ImageAccounts,
    lifecycle::Lifecycle,
    records::JobRecords,
    release::Releaser,
    subject::{Attempt, SubjectLoader},
    workload::Workloads,
};
use super::{
    log::store_line,
    retirement::{Retired, Retirer},
};
use crate::{
    ServiceContext,
    applications::Vault,
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
    subjects: Arc<SubjectLoader>,
    builder: Builder,
    releaser: Releaser,
    lifecycle: Lifecycle,
    retirer: Retirer,
    records: JobRecords,
}

impl Pipeline {
    /// Returns a pipeline over `ports`.
    pub fn new(ports: PipelinePorts, timings: HealthTimings, context: ServiceContext) -> Self {
        let records = JobRecords { context: context.clone() };
        let accounts = Arc::new(ImageAccounts {
            quota: ports.image_quota.clone(),
            inventory: Arc::clone(&ports.inventory),
            clock: Arc::clone(&context.clock),
        });
        let builder = Builder::new(&ports, Arc::clone(&accounts), &records);
        let subjects = Arc::new(SubjectLoader {
            applications: Arc::clone(&ports.applications),
            deployments: Arc::clone(&ports.deployments),
            logs: Arc::clone(&ports.logs),
            vault: Vault::new(Arc::clone(&ports.secrets)),
            clock: Arc::clone(&context.clock),
        });
        let workloads = Arc::new(Workloads {
            deployer: Arc::clone(&ports.deployer),
            composer: Arc::clone(&ports.composer),
            inventory: Arc::clone(&ports.inventory),
            deployments: Arc::clone(&ports.deployments),
            terms: context.terms,
        });
        let health = Arc::new(HealthCheck {
            probe: Arc::clone(&ports.probe),
            deployer: Arc::clone(&ports.deployer),
            inventory: Arc::clone(&ports.inventory),
            timings,
            terms: context.terms,
        });
        let releaser = Releaser::new(&ports, Arc::clone(&workloads), Arc::clone(&health), &records);
        let lifecycle = Lifecycle::new(&ports, Arc::clone(&subjects), workloads, health, accounts, &records);
        let retirer = Retirer {
            applications: ports.applications,
            deployments: ports.deployments,
            deployer: ports.deployer,
            inventory: ports.inventory,
            runtime_logs: ports.runtime_logs,
            routes: ports.routes,
            context,
        };
        Self { subjects, builder, releaser, lifecycle, retirer, records }
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
        let text = format!("Waiting for the {}: {reason}", self.records.context.terms.engine);
        let (application_id, at) = (claimed.job.subject.into(), self.records.now());
        let line = NewLine { application_id, deployment_id, level: Level::Warn, text, at };
        store_line(&*self.subjects.logs, line).await;
    }

    /// Returns the executor of the jobs that deploy nothing.
    pub(crate) fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Runs one attempt at the deployment of `claimed`. Every result of the attempt is durable when this
    /// returns `Ok`. Returns the versions that lost the traffic.
    pub(crate) async fn deploy(
        &self,
        claimed: &ClaimedJob,
        job_control: &JobControl,
    ) -> Result<Vec<Retired>, JobError> {
        let Some(attempt) = self.subjects.attempt(claimed, job_control).await? else {
            // The application was deleted, so the deployment is no longer needed.
            self.records.settle(claimed, Outcome::Cancelled, Vec::new()).await?;
            return Ok(Vec::new());
        };
        match attempt.log.keep_writing_during(Box::pin(self.carry_out(claimed, &attempt))).await {
            Ok(retired) => {
                attempt.log.flush().await;
                self.records.settle(claimed, Outcome::Succeeded, Vec::new()).await?;
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

    async fn carry_out(&self, claimed: &ClaimedJob, attempt: &Attempt<'_>) -> Result<Vec<Retired>, JobError> {
        if attempt.application.live == Some(attempt.deployment.id) {
            attempt.job_control.mark_committed();
            return self.releaser.take_over(attempt).await;
        }
        if attempt.owner.attempt > 1 {
            // Attempts that only waited for a dependency do not count.
            if attempt.counted > 1 {
                attempt.log.write_line(Level::Info, format!("Attempt {}", attempt.counted)).await;
            }
            self.clear_away(claimed, attempt.owner.deployment).await?;
        }
        self.releaser.recreate.restore_live(&attempt.application).await?;
        let (version, made) = self.builder.make(attempt).await?;
        let released = self.releaser.release(attempt, &version, made).await;
        let is_ours_to_remove = matches!(released, Err(JobError::Permanent(_) | JobError::Retryable(_)));
        if is_ours_to_remove && !attempt.job_control.is_committed() {
            self.remove_containers(claimed, attempt.deployment.id).await?;
            self.releaser.recreate.restore_live(&attempt.application).await?;
        }
        released
    }

    /// Removes the resources that attempts at a deployment left, unless their version is live.
    pub(crate) async fn remove_leftovers_of(&self, claimed: &ClaimedJob) -> Result<(), JobError> {
        let Ok(deployment) = claimed.job.payload.parse::<DeploymentId>() else { return Ok(()) };
        let application = self.subjects.application(claimed).await?;
        if application.as_ref().is_some_and(|application| application.live == Some(deployment)) {
            return Ok(());
        }
        self.clear_away(claimed, deployment).await?;
        match application {
            Some(application) => Ok(self.releaser.recreate.restore_live(&application).await?),
            None => Ok(()),
        }
    }

    async fn clear_away(&self, claimed: &ClaimedJob, deployment: DeploymentId) -> Result<(), StepError> {
        self.builder.discard(deployment).await?;
        self.remove_containers(claimed, deployment).await
    }

    /// Removes the containers of a version that is not live. The job of a site started none, and must not wait
    /// for the engine.
    async fn remove_containers(
        &self,
        claimed: &ClaimedJob,
        deployment: DeploymentId,
    ) -> Result<(), StepError> {
        match claimed.job.pool {
            Pool::Sites => Ok(()),
            Pool::Builds | Pool::Operations | Pool::Extensions => self.releaser.remove(deployment).await,
        }
    }

    async fn fail(
        &self,
        claimed: &ClaimedJob,
        attempt: &Attempt<'_>,
        reason: String,
    ) -> Result<(), JobError> {
        if let Err(error) = self.builder.discard(attempt.deployment.id).await {
            tracing::warn!(deployment.id = %attempt.deployment.id, %error, "work directory could not be removed");
        }
        attempt.log.flush().await;
        let event = self.records.ended(&attempt.application, &attempt.deployment, "failed to deploy");
        self.records.settle(claimed, Outcome::Failed { reason }, vec![event]).await
    }
}
