//! The records that a job writes.

use launchway_domain::{
    applications::Application,
    audit::{Action as Did, Author, Chain, Event, Resource as Audited},
    clock::Timestamp,
    deployments::{Deployment, Progress, Write},
    jobs::{ClaimedJob, Lease, Outcome, Write as JobWrite},
    store,
};

use super::{JobError, subject::Attempt};
use crate::{ServiceContext, applications::titled};

/// Commits the records of jobs.
#[derive(Clone)]
pub(super) struct JobRecords {
    pub(super) context: ServiceContext,
}

impl JobRecords {
    pub(super) fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    /// Settles a job, and its deployment with it if it has one.
    pub(super) async fn settle(
        &self,
        claimed: &ClaimedJob,
        outcome: Outcome,
        more: Vec<store::Write>,
    ) -> Result<(), JobError> {
        let (at, application) = (self.now(), Some(claimed.job.subject.into()));
        let mut writes = vec![
            JobWrite::Settle { lease: claimed.lease, outcome, at }.into(),
            Write::FollowJobs { application, at }.into(),
        ];
        writes.extend(more);
        Ok(self.context.store.commit(writes).await?)
    }

    /// Commits writes if this worker still holds the lease.
    pub(super) async fn commit(&self, lease: Lease, writes: Vec<store::Write>) -> Result<(), JobError> {
        let writes = [JobWrite::Prove(lease).into()].into_iter().chain(writes).collect();
        Ok(self.context.store.commit(writes).await?)
    }

    /// Records the progress of the deployment.
    pub(super) async fn advance(&self, attempt: &Attempt<'_>, progress: Progress) -> Result<(), JobError> {
        let advance = Write::Advance { id: attempt.deployment.id, progress, at: self.now() };
        self.commit(attempt.lease, vec![advance.into()]).await
    }

    /// Runs `work` while its progress is recorded, so that it need not wait for the disk. If the record
    /// shows that the lease is lost, the work is dropped.
    pub(super) async fn while_recorded<T, E: Into<JobError>>(
        &self,
        attempt: &Attempt<'_>,
        progress: Progress,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, JobError> {
        let recorded = self.advance(attempt, progress);
        // A failure of the work does not undo the earlier record.
        let ((), worked) = tokio::try_join!(recorded, async { Ok(work.await) })?;
        worked.map_err(Into::into)
    }

    /// Returns the audit event of the end of a deployment.
    pub(super) fn ended(
        &self,
        application: &Application,
        deployment: &Deployment,
        what: &str,
    ) -> store::Write {
        let chain = Chain::Organization(application.organization_id);
        let author = Author { name: self.context.terms.platform.to_owned(), ..Author::launchway(chain) };
        let what = format!("{what} {}", titled(&application.blueprint));
        let event = Event::new(Did::Update, Audited::Deployment, deployment.id, what)
            .with("application_id", application.id);
        self.context.record(author, event)
    }
}
