//! The state of the installation: its queue, its space, and the checks of `launchway doctor`.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use launchway_domain::{
    auth::Actor,
    clock::{Clock, Timestamp},
    diagnostics::{Diagnostics, DiskSpace, HealthReport, StorageStatistics, StoredBytes},
    jobs::{QueueDepth, QueueStatistics},
};
use tokio::{
    sync::Mutex as Turn,
    time::{Instant, timeout},
};

use crate::Error;

/// The time limit of all checks together.
const EXAMINATION_LIMIT: Duration = Duration::from_secs(20);
/// The time that a caller waits for new checks. Then they go on without it.
const WAIT: Duration = Duration::from_secs(3);
/// The age up to which a report is shown without new checks.
const REPORT_AGE: Duration = Duration::from_secs(5 * 60);
/// The age below which checks are not repeated even on request: those who ask at the same time share a report.
const SHORTEST_AGE: Duration = Duration::from_secs(2);

/// The ports of the state of the installation.
pub struct InstallationPorts {
    /// Reads the depth of the queue.
    pub queue: Arc<dyn QueueStatistics>,
    /// Reads the space that records use.
    pub storage: Arc<dyn StorageStatistics>,
    /// Checks the installation.
    pub diagnostics: Arc<dyn Diagnostics>,
}

/// The queue and the space of the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallationStatus {
    /// The unfinished jobs by their kind.
    pub queue: Vec<QueueDepth>,
    /// The space that records use.
    pub stored: StoredBytes,
    /// The space of the data directory; a sentence about the reason if it is unknown.
    pub disk: Result<DiskSpace, String>,
    /// The time of the reading.
    pub at: Timestamp,
}

/// A report, and the time of its checks.
#[derive(Debug, PartialEq, Eq)]
pub struct DatedReport {
    /// The time at which the checks ended.
    pub at: Timestamp,
    /// The report.
    pub report: HealthReport,
}

/// Reads the state of the installation, for its administrators.
pub struct Installation(Arc<Shared>);

struct Shared {
    ports: InstallationPorts,
    clock: Arc<dyn Clock>,
    /// Held during an examination, so that there is one at a time.
    turn: Turn<()>,
    last: Mutex<Option<(Arc<DatedReport>, Instant)>>,
}

impl Installation {
    /// Returns the use cases over `ports`.
    pub fn new(ports: InstallationPorts, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared { ports, clock, turn: Turn::default(), last: Mutex::default() }))
    }

    /// Returns the queue and the space.
    ///
    /// # Errors
    /// [`Error::Forbidden`] unless the actor administers the installation, and the errors of the store.
    pub async fn status(&self, actor: &Actor) -> Result<InstallationStatus, Error> {
        actor.require_metrics()?;
        let Shared { ports, clock, .. } = &*self.0;
        Ok(InstallationStatus {
            queue: ports.queue.depths().await?,
            stored: ports.storage.stored_bytes().await?,
            disk: ports.diagnostics.disk_space().await,
            at: clock.now(),
        })
    }

    /// Returns the last report; if it is older than five minutes, that of new checks, unless they take longer than three
    /// seconds. `None` while the first checks run.
    ///
    /// # Errors
    /// [`Error::Forbidden`] unless the actor administers the installation.
    pub async fn report(&self, actor: &Actor) -> Result<Option<Arc<DatedReport>>, Error> {
        self.report_younger_than(actor, REPORT_AGE).await
    }

    /// Checks the installation now. Checks that take longer than three seconds go on, and the last report is returned.
    ///
    /// # Errors
    /// [`Error::Forbidden`] unless the actor administers the installation.
    pub async fn examine(&self, actor: &Actor) -> Result<Option<Arc<DatedReport>>, Error> {
        self.report_younger_than(actor, SHORTEST_AGE).await
    }

    async fn report_younger_than(
        &self,
        actor: &Actor,
        age: Duration,
    ) -> Result<Option<Arc<DatedReport>>, Error> {
        actor.require_metrics()?;
        if !self.0.has_younger_than(age) {
            let shared = Arc::clone(&self.0);
            // A task, which goes on when the caller does not wait any longer.
            let examination = tokio::spawn(async move { shared.examine_unless_younger_than(age).await });
            if let Ok(Err(panicked)) = timeout(WAIT, examination).await {
                return Err(Error::Internal(panicked.into()));
            }
        }
        Ok(self.0.last().as_ref().map(|(report, _)| Arc::clone(report)))
    }
}

impl Shared {
    fn last(&self) -> MutexGuard<'_, Option<(Arc<DatedReport>, Instant)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_younger_than(&self, age: Duration) -> bool {
        self.last().as_ref().is_some_and(|(_, at)| at.elapsed() < age)
    }

    async fn examine_unless_younger_than(&self, age: Duration) {
        let _turn = self.turn.lock().await;
        if self.has_younger_than(age) {
            return;
        }
        let examination = timeout(EXAMINATION_LIMIT, self.ports.diagnostics.examine());
        let report = examination.await.unwrap_or_else(|_elapsed| {
            let mut report = HealthReport::default();
            let text = format!("did not finish within {} seconds", EXAMINATION_LIMIT.as_secs());
            report.fail("checks", text, "run `launchway doctor` on the server");
            report
        });
        let report = DatedReport { at: self.clock.now(), report };
        *self.last() = Some((Arc::new(report), Instant::now()));
    }
}
