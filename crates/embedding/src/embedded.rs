//! The embedded platform.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use launchway_application::{
    Error, ServiceContext, applications, audit, deployments, logs, maintenance::Maintenance,
    reconciler::Reconciler, worker::Worker,
};
use launchway_domain::deployments::KeptVersions;
use tokio::{sync::watch, time::sleep};

use crate::{
    builder::Builder,
    handles::{Applications, Audit, Deployments, Logs},
    host::Host,
    records::Retention,
    repositories::Repositories,
    store::Store,
};

/// The interval at which old records are deleted.
const TRIM: Duration = Duration::from_secs(10 * 60);

/// Applications and their deployments inside another service.
///
/// ```no_run
/// # use launchway_embedding::{Embedded, MemoryStore, ProcessHost, ProcessSpec, Version};
/// # async fn service() -> Result<(), Box<dyn std::error::Error>> {
/// let program = |version: &Version| Ok(ProcessSpec::new(format!("./{}", version.image)));
/// let host = ProcessHost::builder("versions", program).open()?;
/// let platform = Embedded::builder(MemoryStore::new(), host).build();
/// // Works in the background until the future is ready.
/// platform.run(std::future::pending()).await?;
/// # Ok(())
/// # }
/// ```
pub struct Embedded {
    pub(crate) applications: applications::Applications,
    pub(crate) deployments: deployments::Deployments,
    pub(crate) logs: logs::Logs,
    pub(crate) audit: audit::AuditLog,
    pub(crate) worker: Arc<Worker>,
    pub(crate) reconciler: Arc<Reconciler>,
    pub(crate) maintenance: Maintenance,
    pub(crate) repositories: Repositories,
    pub(crate) retention: Retention,
    pub(crate) kept_versions: KeptVersions,
    pub(crate) context: ServiceContext,
}

impl Embedded {
    /// Configures a platform that keeps its records in `store`, and runs versions on `host`.
    pub fn builder(store: impl Store + 'static, host: impl Host + 'static) -> Builder {
        Builder::new(store, host)
    }

    /// Returns the applications.
    #[must_use]
    pub fn applications(&self) -> Applications<'_> {
        Applications(self)
    }

    /// Returns the deployments.
    #[must_use]
    pub fn deployments(&self) -> Deployments<'_> {
        Deployments(self)
    }

    /// Returns the logs of applications and deployments.
    #[must_use]
    pub fn logs(&self) -> Logs<'_> {
        Logs(self)
    }

    /// Returns the audit log.
    #[must_use]
    pub fn audit(&self) -> Audit<'_> {
        Audit(self)
    }

    /// Returns the number of records of each kind.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::Internal`] if the store cannot be used.
    pub async fn records(&self) -> Result<BTreeMap<&'static str, usize>, Error> {
        Ok(self.repositories.counts().await?)
    }

    /// Runs until `stop` is ready: takes over the jobs of an earlier run, executes deployments, takes the jobs
    /// of lost workers, makes the host match the records, collects output, and deletes old records. Then
    /// it returns unfinished jobs to the queue.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::Internal`] if the store cannot be used at the start.
    #[doc(alias = "take_over")]
    pub async fn run(&self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        self.recover().await?;
        let (sender, stopped) = watch::channel(false);
        let stopping = async {
            stop.await;
            // Everybody below listens.
            sender.send_replace(true);
        };
        tokio::join!(
            stopping,
            Box::pin(Arc::clone(&self.worker).run(stopped.clone())),
            Box::pin(Arc::clone(&self.reconciler).run(stopped.clone())),
            Box::pin(self.maintenance.run(stopped.clone())),
            Box::pin(self.run_retention(stopped)),
        );
        Ok(())
    }

    /// Executes the jobs that are due, one after the other, and returns when there are none. For tests, and
    /// for programs that only deploy something.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::Internal`] if the store cannot be used at the start.
    pub async fn run_due(&self) -> Result<(), Error> {
        self.recover().await?;
        self.worker.drain().await;
        Ok(())
    }

    async fn recover(&self) -> Result<(), Error> {
        self.maintenance.take_over().await?;
        self.reconciler.begin().await;
        self.maintenance.begin().await;
        Ok(())
    }

    async fn run_retention(&self, mut stopped: watch::Receiver<bool>) {
        let trim = async {
            loop {
                let now = self.context.clock.now();
                match self.repositories.retain(self.retention, self.kept_versions, now).await {
                    Ok(0) => {}
                    Ok(records) => tracing::debug!(records, "old records removed"),
                    Err(error) => tracing::warn!(%error, "old records could not be removed"),
                }
                sleep(TRIM).await;
            }
        };
        tokio::select! {
            () = trim => {}
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
    }
}
