//! Loads the version that a job works on.

use std::sync::Arc;

use launchway_domain::{
    applications::{Application, ApplicationRepository, Port},
    clock::Clock,
    deployments::{Deployment, DeploymentRepository, Owner},
    ids::DeploymentId,
    jobs::{ClaimedJob, Lease},
    logs::LogSink,
    organizations::Scope,
};

use super::super::log::{DeploymentLog, secrets_of};
use crate::{
    Error,
    applications::{OpenSecrets, Vault},
    job_control::{JobControl, JobError},
};

/// The version that a job works on.
pub(super) struct Subject {
    pub(super) application: Application,
    pub(super) deployment: Deployment,
    pub(super) secrets: OpenSecrets,
    pub(super) log: Arc<DeploymentLog>,
}

impl Subject {
    pub(super) fn scope(&self) -> Scope {
        Scope::of_record(self.application.organization_id)
    }

    /// Returns the number of copies that should run.
    pub(super) fn wanted_copies(&self) -> u16 {
        match self.deployment.is_composition() {
            true => 1,
            false => self.application.blueprint.copies.get(),
        }
    }

    /// Returns whether several copies run, or should run.
    pub(super) fn has_several_copies(&self) -> bool {
        let is_container = self.deployment.container.is_some();
        is_container && (self.wanted_copies() > 1 || !self.deployment.further_copies.is_empty())
    }

    /// Returns the port that its container listens on.
    pub(super) fn port(&self) -> Port {
        let recorded = self.deployment.container.as_ref().map(|recorded| recorded.port);
        recorded.unwrap_or(self.application.blueprint.port)
    }

    /// Returns the owner of the objects that `attempt` creates.
    pub(super) fn owner(&self, attempt: i32) -> Owner {
        Owner {
            organization: self.application.organization_id,
            application: self.application.id,
            deployment: self.deployment.id,
            attempt,
        }
    }
}

/// One attempt at a deployment.
pub(super) struct Attempt<'a> {
    pub(super) lease: Lease,
    /// The number of the attempt, without those that were excused.
    pub(super) counted: i32,
    pub(super) application: Application,
    pub(super) deployment: Deployment,
    pub(super) secrets: OpenSecrets,
    pub(super) owner: Owner,
    pub(super) log: Arc<DeploymentLog>,
    pub(super) job_control: &'a JobControl,
}

/// Loads the versions that jobs work on, with their secrets and their logs.
pub(super) struct SubjectLoader {
    pub(super) applications: Arc<dyn ApplicationRepository>,
    pub(super) deployments: Arc<dyn DeploymentRepository>,
    pub(super) logs: Arc<dyn LogSink>,
    pub(super) vault: Vault,
    pub(super) clock: Arc<dyn Clock>,
}

impl SubjectLoader {
    /// Returns the attempt at the deployment of a job; `None` if there is nothing to deploy any more.
    pub(super) async fn attempt<'a>(
        &self,
        claimed: &ClaimedJob,
        job_control: &'a JobControl,
    ) -> Result<Option<Attempt<'a>>, JobError> {
        let Ok(deployment) = claimed.job.payload.parse() else { return Ok(None) };
        let Some(application) = self.application(claimed).await? else { return Ok(None) };
        let Some(subject) = self.load(application, deployment).await? else { return Ok(None) };
        let owner = subject.owner(claimed.lease.attempt);
        let Subject { application, deployment, secrets, log } = subject;
        let (lease, counted) = (claimed.lease, claimed.lease.attempt - claimed.job.excused);
        Ok(Some(Attempt { lease, counted, application, deployment, secrets, owner, log, job_control }))
    }

    /// Returns the live version of the application of a job.
    pub(super) async fn live(&self, claimed: &ClaimedJob) -> Result<Option<Subject>, JobError> {
        let Some(application) = self.application(claimed).await? else { return Ok(None) };
        let Some(live) = application.live else { return Ok(None) };
        self.load(application, live).await
    }

    /// Returns the application of a job, unless it was deleted.
    pub(super) async fn application(&self, claimed: &ClaimedJob) -> Result<Option<Application>, JobError> {
        Ok(self.applications.get(claimed.job.scope, claimed.job.subject.into()).await?)
    }

    async fn load(&self, application: Application, id: DeploymentId) -> Result<Option<Subject>, JobError> {
        let scope = Scope::of_record(application.organization_id);
        let Some(deployment) = self.deployments.get(scope, id).await? else { return Ok(None) };
        let secrets = self.vault.open(&application).map_err(undecryptable)?;
        let (sink, clock) = (Arc::clone(&self.logs), Arc::clone(&self.clock));
        let log = DeploymentLog::of(sink, clock, deployment.clone(), secrets_of(&secrets));
        Ok(Some(Subject { application, deployment, secrets, log }))
    }
}

fn undecryptable(error: Error) -> JobError {
    tracing::error!(%error, source = ?std::error::Error::source(&error), "application secrets could not be decrypted");
    JobError::Permanent("a secret of this application cannot be decrypted".to_owned())
}
