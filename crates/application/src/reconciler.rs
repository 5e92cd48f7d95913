//! The reconciler: makes the engine match the records.
//!
//! It compares the desired state (live versions, from the records) with the observed state (containers,
//! from the engine's events and a full scan every few seconds), and acts on differences. The record wins
//! over manual changes.
//!
//! **Invariant:** the action is decided by `decision::decide` alone, a function of desired and observed state
//! without I/O. Changes to more than one container are made by a job, which has exclusive access to the
//! application (decision 35).

#[cfg(feature = "notifications")]
mod announcement;
mod backoff;
pub(crate) mod decision;
#[cfg(feature = "extensions")]
mod extensions;
mod health;
mod homes;
mod intervals;
mod orphans;
mod registry;
mod scale;
mod watched;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use launchway_domain::{
    applications::ApplicationRepository,
    deployments::{
        Condition, ContainerRecord, Deployer, DeploymentRepository, EngineInventory, HealthProbe,
        ImageRecords, LiveVersion, SiteStore, StepError, Write,
    },
    ids::{DeploymentId, SubjectId},
    jobs::{JobKind, JobQueue, Write as JobWrite},
    logs::{Level, LogSink, NewLine},
    organizations::Scope,
    store::StoreError,
};
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::{Instant, sleep, timeout},
};

use self::{
    backoff::Backoff,
    decision::{Action, Observed, cause, decide, recorded_state},
    scale::ScaleRecord,
    watched::{CopyKey, Watched, WatchedCopy},
};
pub use self::{
    health::StabilityLimits,
    intervals::{MOST_CHECKS, ReconcilerLimits, ReconcilerTimings},
    orphans::{UnknownObjects, find_unknown},
    registry::RegistryPorts,
};
use crate::{
    ServiceContext,
    deployments::{Retirer, job_about},
    engine_view::EngineView,
    homes::HomeView,
    routes::Routes,
};

/// The ports of the reconciler.
pub struct ReconcilerPorts {
    /// Lists the applications with running jobs.
    pub queue: Arc<dyn JobQueue>,
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Reads live versions, and the records of found resources.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// Keeps the bytes of images; they are not kept if absent.
    pub image_records: Option<Arc<dyn ImageRecords>>,
    /// Starts containers.
    pub deployer: Arc<dyn Deployer>,
    /// Lists the resources on the engine.
    pub inventory: Arc<dyn EngineInventory>,
    /// The registry with the images of versions; absent if they are on one engine only.
    pub registry: Option<RegistryPorts>,
    /// Checks the health of a version.
    pub probe: Arc<dyn HealthProbe>,
    /// Removes published directories that are no longer kept.
    pub sites: Arc<dyn SiteStore>,
    /// Routes traffic to containers.
    pub routes: Arc<Routes>,
    /// Stores log lines about actions.
    pub logs: Arc<dyn LogSink>,
    /// Stops versions that lost the traffic.
    pub retirer: Arc<Retirer>,
}

/// A snapshot of the live versions and their containers.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Every live version, from the records.
    pub live: Arc<[LiveVersion]>,
    /// Every container, from the engine.
    pub view: Arc<EngineView>,
    /// The applications with running jobs.
    pub busy: HashSet<SubjectId>,
    /// The machines of stateful applications.
    pub homes: Arc<HomeView>,
}

impl Snapshot {
    /// Returns the versions that should run.
    pub(crate) fn running(&self) -> impl Iterator<Item = &LiveVersion> {
        self.live.iter().filter(|version| !version.application.is_stopped)
    }
}

/// The most containers that are started, or checked, at once.
const MOST_AT_ONCE: usize = 16;
/// The shortest time between two rounds, because events may come in bursts.
const SHORTEST_ROUND: Duration = Duration::from_millis(500);

/// Makes the engine match the records.
pub struct Reconciler {
    ports: ReconcilerPorts,
    timings: ReconcilerTimings,
    limits: ReconcilerLimits,
    context: ServiceContext,
    #[cfg(feature = "notifications")]
    announces: bool,
    snapshot: watch::Sender<Arc<Snapshot>>,
    versions: Mutex<HashMap<CopyKey, Watched>>,
    /// Notified when a task has a result for the next round.
    changed: Notify,
    places: Arc<Semaphore>,
    checks: Arc<Semaphore>,
    /// The deployments whose log says that they wait for a server.
    waiting: Mutex<HashSet<DeploymentId>>,
    #[cfg(feature = "extensions")]
    runs: extensions::WaitingRuns,
}

impl Reconciler {
    /// Returns a reconciler over `ports`.
    pub fn new(
        ports: ReconcilerPorts,
        timings: ReconcilerTimings,
        limits: ReconcilerLimits,
        context: ServiceContext,
    ) -> Self {
        Self {
            ports,
            timings,
            limits,
            context,
            #[cfg(feature = "notifications")]
            announces: false,
            snapshot: watch::Sender::default(),
            versions: Mutex::default(),
            changed: Notify::new(),
            places: Arc::new(Semaphore::new(MOST_AT_ONCE)),
            checks: Arc::new(Semaphore::new(MOST_AT_ONCE)),
            waiting: Mutex::default(),
            #[cfg(feature = "extensions")]
            runs: extensions::WaitingRuns::default(),
        }
    }

    /// Returns the last snapshot of the live versions and their containers.
    pub fn snapshot(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.subscribe()
    }

    /// Scans once before traffic is routed from the records: after a reboot they may be outdated. An engine
    /// that does not respond soon is scanned later.
    pub async fn begin(self: &Arc<Self>) {
        let max_wait = self.timings.engine / 2;
        if timeout(max_wait, self.look()).await.is_err() {
            self.report_outage(format!("the {} does not answer", self.context.terms.engine));
        }
    }

    /// Reconciles until `stop` is true.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = async {
                tokio::join!(
                    self.run_reconciliation(),
                    self.run_orphan_removal(),
                    self.run_image_deletion()
                );
            } => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    async fn run_reconciliation(self: &Arc<Self>) {
        let (mut last_look, replica) = (None, &self.context.replica);
        let mut was_leader = replica.is_leader();
        loop {
            let has_news = tokio::select! {
                has_news = self.ports.inventory.wait_for_events(self.timings.round) => has_news,
                () = self.changed.notified() => false,
                () = replica.wait_for_leadership(), if !was_leader => false,
            };
            let (began, is_leader) = (Instant::now(), replica.is_leader());
            // The last leader may have missed changes, and this server has seen them already.
            let leads_now = is_leader && !was_leader;
            was_leader = is_leader;
            if has_news || leads_now || last_look.is_none_or(|last| began - last >= self.timings.look) {
                last_look = self.look().await.then_some(began);
            }
            self.assess_all().await;
            sleep(SHORTEST_ROUND.saturating_sub(began.elapsed())).await;
        }
    }

    /// Compares everything once, and acts. Returns whether the records and the engine responded.
    async fn look(self: &Arc<Self>) -> bool {
        let (live, busy, homes) = match tokio::try_join!(
            self.ports.deployments.live(),
            self.ports.queue.running(),
            self.context.homes.view()
        ) {
            Ok((live, busy, homes)) => (live, busy, Arc::new(homes)),
            Err(error) => {
                tracing::warn!(%error, "live versions could not be read");
                return false;
            }
        };
        self.forget_others(&live);
        let found = match timeout(self.timings.engine, self.ports.inventory.containers()).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                self.publish(live, busy, homes, None);
                self.report_outage(error.to_string());
                return false;
            }
            Err(_elapsed) => {
                self.publish(live, busy, homes, None);
                let (engine, seconds) = (self.context.terms.engine, self.timings.engine.as_secs());
                self.report_outage(format!("the {engine} did not answer within {seconds} s"));
                return false;
            }
        };
        self.report_available();
        let snapshot = self.publish(live, busy, homes, Some(found.into()));
        for version in snapshot.live.iter() {
            // Each time: a round may take longer than a term.
            if !self.acts_on(&snapshot.homes, &version.deployment) {
                continue;
            }
            let is_busy = snapshot.busy.contains(&SubjectId::from(version.application.id));
            for (number, recorded) in version.deployment.numbered_copies() {
                let observed = Observed::of(version, recorded, &snapshot.view);
                self.reconcile(WatchedCopy { version, number, recorded }, observed, is_busy).await;
            }
            self.scale(version, is_busy).await;
        }
        let absent = match self.context.replica.is_leader() {
            true => self.absent_homes(&snapshot).await,
            false => Vec::new(),
        };
        self.report_absent_homes(&snapshot, &absent).await;
        #[cfg(feature = "extensions")]
        self.follow_extensions(&snapshot.homes, &absent).await;
        true
    }

    /// Publishes a snapshot; without a new view it keeps the last one.
    fn publish(
        &self,
        live: Arc<[LiveVersion]>,
        busy: Vec<SubjectId>,
        homes: Arc<HomeView>,
        view: Option<EngineView>,
    ) -> Arc<Snapshot> {
        let view = view.map_or_else(|| Arc::clone(&self.snapshot.borrow().view), Arc::new);
        let snapshot = Arc::new(Snapshot { live, view, busy: busy.into_iter().collect(), homes });
        self.trust_recorded_health();
        self.snapshot.send_replace(Arc::clone(&snapshot));
        snapshot
    }

    fn report_outage(&self, reason: String) {
        if self.context.engine.report_outage(reason.clone(), self.context.clock.now()) {
            tracing::warn!(reason, "engine is unavailable");
        }
    }

    fn report_available(&self) {
        let Some(outage) = self.context.engine.report_available() else { return };
        let seconds = (self.context.clock.now() - outage.since).num_seconds();
        tracing::info!(seconds, "engine is available again");
        for watched in self.versions().values_mut() {
            watched.backoff = Backoff::default();
            watched.scaling = ScaleRecord::default();
        }
        self.context.wake.notify();
    }

    async fn reconcile(self: &Arc<Self>, copy: WatchedCopy<'_>, observed: Observed, is_busy: bool) {
        let version = copy.version;
        match decide(version, copy.recorded, observed, is_busy) {
            Action::Keep if version.application.is_stopped => self.forget_attempts(copy.key()),
            Action::Keep => {}
            Action::Wait => self.record(copy, observed.container).await,
            Action::Record(_) => {
                self.record(copy, observed.container).await;
            }
            Action::Resume if !version.deployment.is_composition() => {
                self.record(copy, observed.container).await;
                self.resume(copy, observed);
            }
            Action::Resume | Action::Recreate => {
                self.record(copy, observed.container).await;
                self.enqueue(copy, cause(observed, self.context.terms)).await;
            }
            Action::Stop => {
                let instance = self.context.terms.instance;
                let cause = format!("The application is stopped, but its {instance} is running");
                self.enqueue(copy, cause).await;
            }
        }
    }

    /// Starts a single container in a background task.
    fn resume(self: &Arc<Self>, copy: WatchedCopy<'_>, observed: Observed) {
        let Some(attempt) = self.begin_attempt(copy.key()) else { return };
        let (this, version, terms) = (Arc::clone(self), copy.version.clone(), self.context.terms);
        let (number, recorded) = (copy.number, copy.recorded.clone());
        tokio::spawn(async move {
            let copy = WatchedCopy { version: &version, number, recorded: &recorded };
            let Ok(_place) = Arc::clone(&this.places).acquire_owned().await else { return };
            if !this.context.replica.is_leader() {
                return this.end_attempt(copy.key());
            }
            let again = if attempt.is_last { ": this is the last attempt" } else { "" };
            let text = copy.titled(format!("{}: restarting it{again}", cause(observed, terms)));
            this.note(&version, Level::Warn, text).await;
            match this.ports.deployer.resume(&recorded.id).await {
                Ok(_) => {}
                // It cannot be started as it is: a job creates another one from its image.
                Err(StepError::Rejected(reason)) => {
                    let cause = format!("The {} cannot be started: {reason}", terms.instance);
                    this.enqueue_now(&version, copy.titled(cause)).await;
                }
                Err(error) => {
                    let text = format!("The {} could not be started: {error}", terms.instance);
                    this.note(&version, Level::Warn, copy.titled(text)).await;
                }
            }
            this.end_attempt(copy.key());
            this.changed.notify_one();
        });
    }

    /// Enqueues a reconcile job for an application, unless one was tried recently.
    async fn enqueue(&self, copy: WatchedCopy<'_>, cause: String) {
        if self.begin_attempt(copy.key()).is_some() {
            self.enqueue_now(copy.version, copy.titled(cause)).await;
            self.end_attempt(copy.key());
        }
    }

    async fn enqueue_now(&self, version: &LiveVersion, cause: String) {
        let job = job_about(&version.application, JobKind::Reconcile, &self.context);
        match self.commit_about(&version.deployment, vec![JobWrite::Enqueue(job).into()]).await {
            Ok(()) => {
                self.note(version, Level::Warn, cause).await;
                self.context.wake.notify();
            }
            Err(error) => tracing::warn!(%error, "reconcile job could not be enqueued"),
        }
    }

    fn begin_attempt(&self, copy: CopyKey) -> Option<backoff::Attempt> {
        self.versions().entry(copy).or_default().backoff.begin(Instant::now())
    }

    fn forget_attempts(&self, copy: CopyKey) {
        if let Some(watched) = self.versions().get_mut(&copy) {
            watched.backoff = Backoff::default();
        }
    }

    fn end_attempt(&self, copy: CopyKey) {
        if let Some(watched) = self.versions().get_mut(&copy) {
            watched.backoff.end();
        }
    }

    /// Records the condition of a container, and updates its routes.
    async fn record(&self, copy: WatchedCopy<'_>, condition: Condition) {
        let WatchedCopy { version, recorded, .. } = copy;
        let state = recorded_state(condition);
        let address = match condition {
            Condition::Running { address, .. } => Some(address),
            // It keeps its address, which must not be assigned to another container in the meantime.
            _ => recorded.address,
        };
        if (state, address) == (recorded.state, recorded.address) {
            return;
        }
        let (id, at) = (version.deployment.id, self.context.clock.now());
        let container = ContainerRecord { state, address, ..recorded.clone() };
        let write = Write::RecordContainer { id, container, at };
        if let Err(error) = self.commit_about(&version.deployment, vec![write.into()]).await {
            tracing::warn!(%error, deployment.id = %id, "state of a version could not be recorded");
            return;
        }
        let scope = Scope::of_record(version.application.organization_id);
        if let Err(error) = self.ports.routes.follow(scope, version.application.id).await {
            tracing::warn!(%error, deployment.id = %id, "route could not be updated");
        }
    }

    /// Appends a message of Launchway itself to the log of a version.
    async fn note(&self, version: &LiveVersion, level: Level, text: String) {
        let (application_id, deployment_id) = (version.application.id, version.deployment.id);
        let line = NewLine { application_id, deployment_id, level, text, at: self.context.clock.now() };
        if let Err(error) = self.ports.logs.append(vec![line]).await {
            tracing::warn!(%error, deployment.id = %deployment_id, "log line could not be stored");
        }
    }

    fn forget_others(&self, live: &[LiveVersion]) {
        let copies = live.iter().flat_map(|version| {
            version.deployment.numbered_copies().map(|(number, _)| (version.deployment.id, number))
        });
        let copies: HashSet<CopyKey> = copies.collect();
        self.versions().retain(|key, _| copies.contains(key));
    }

    fn versions(&self) -> MutexGuard<'_, HashMap<CopyKey, Watched>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts the error of a store to one of a step.
fn unreadable(error: StoreError) -> StepError {
    StepError::failed("the database cannot be read", error)
}
