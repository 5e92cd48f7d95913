//! Maintenance: takes jobs from lost workers, collects the output of containers, updates routes from the
//! records, and enforces retention.

use std::{collections::HashSet, sync::Arc, time::Duration};

#[cfg(feature = "webhooks")]
use crate::previews::Previews;
use chrono::TimeDelta;
#[cfg(feature = "extensions")]
use launchway_domain::extensions::{ExtensionRunner, WORKSPACE_RETENTION, Write as ExtensionWrite};
#[cfg(feature = "webhooks")]
use launchway_domain::webhooks::{DeliveryMark, DeliveryMemory};
use launchway_domain::{
    clock::Timestamp,
    deployments::{LiveVersion, Write as DeploymentWrite},
    idempotency::{IdempotencyKey, IdempotencyStore},
    ids::{BootId, InstanceId},
    jobs::{Job, JobQueue},
    logs::LogSink,
    store::StoreError,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{
    ServiceContext,
    homes::Place,
    reconciler::Snapshot,
    routes::Routes,
    runtime_logs::{LogFreshness, LogSource, RuntimeLogs},
};

/// The ports of maintenance.
pub struct MaintenancePorts {
    /// Releases the jobs of lost workers.
    pub queue: Arc<dyn JobQueue>,
    /// Updates routes.
    pub routes: Arc<Routes>,
    /// Enforces the retention of logs.
    pub logs: Arc<dyn LogSink>,
    /// Collects the output of containers.
    pub runtime_logs: Arc<RuntimeLogs>,
    /// Selects the applications whose output is collected.
    pub log_freshness: LogFreshness,
    /// Deletes old idempotency records, if they are not deleted otherwise.
    pub idempotency: Option<Arc<dyn IdempotencyStore>>,
}

/// The intervals of maintenance, and the retention of logs and jobs.
#[derive(Debug, Clone, Copy)]
pub struct MaintenanceTimings {
    /// The interval of searches for jobs of lost workers.
    pub rescue: Duration,
    /// The interval of collections of container output.
    pub logs: Duration,
    /// The interval of comparisons of the routes with the records.
    pub routes: Duration,
    /// The interval of retention.
    pub retention: Duration,
    /// The newest log lines that each application keeps.
    pub kept_lines: i64,
    /// The time that finished jobs are kept.
    pub kept_jobs: TimeDelta,
}

impl Default for MaintenanceTimings {
    fn default() -> Self {
        Self {
            rescue: Duration::from_secs(10),
            logs: Duration::from_secs(2),
            routes: Duration::from_secs(5),
            retention: Duration::from_secs(60 * 60),
            kept_lines: 200_000,
            kept_jobs: Job::KEPT,
        }
    }
}

/// The interval at which the state of logs of removed containers is dropped.
const FORGET_INTERVAL: Duration = Duration::from_secs(60);

/// Takes jobs from lost workers, collects logs, updates routes and enforces retention.
pub struct Maintenance {
    ports: MaintenancePorts,
    identity: (InstanceId, BootId),
    timings: MaintenanceTimings,
    snapshot: watch::Receiver<Arc<Snapshot>>,
    context: ServiceContext,
    #[cfg(feature = "extensions")]
    runner: Option<Arc<dyn ExtensionRunner>>,
    #[cfg(feature = "webhooks")]
    deliveries: Option<Arc<dyn DeliveryMemory>>,
    #[cfg(feature = "webhooks")]
    previews: Option<Arc<Previews>>,
}

impl Maintenance {
    /// Returns maintenance for the jobs of `instance` in its run `boot`. Live versions come from
    /// `snapshot`.
    pub fn new(
        ports: MaintenancePorts,
        identity: (InstanceId, BootId),
        timings: MaintenanceTimings,
        snapshot: watch::Receiver<Arc<Snapshot>>,
        context: ServiceContext,
    ) -> Self {
        Self {
            ports,
            identity,
            timings,
            snapshot,
            context,
            #[cfg(feature = "extensions")]
            runner: None,
            #[cfg(feature = "webhooks")]
            deliveries: None,
            #[cfg(feature = "webhooks")]
            previews: None,
        }
    }

    /// Maintains extensions too: removes old workspaces.
    #[cfg(feature = "extensions")]
    #[must_use]
    pub fn with_extensions(self, runner: Arc<dyn ExtensionRunner>) -> Self {
        Self { runner: Some(runner), ..self }
    }

    /// Maintains inbound webhooks too: deletes old deliveries.
    #[cfg(feature = "webhooks")]
    #[must_use]
    pub fn with_webhooks(self, deliveries: Arc<dyn DeliveryMemory>) -> Self {
        Self { deliveries: Some(deliveries), ..self }
    }

    /// Maintains previews too: removes those that expired.
    #[cfg(feature = "webhooks")]
    #[must_use]
    pub fn with_previews(self, previews: Arc<Previews>) -> Self {
        Self { previews: Some(previews), ..self }
    }

    /// Takes the jobs that an earlier run of this instance left, before the first job is claimed.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not respond.
    pub async fn take_over(&self) -> Result<(), StoreError> {
        self.rescue().await
    }

    /// Updates the routes from the records.
    pub async fn begin(&self) {
        if let Err(error) = self.ports.routes.follow_all().await {
            tracing::warn!(%error, "routes could not be updated yet");
        }
    }

    /// Runs until `stop` is true.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = async {
                tokio::join!(
                    self.run_rescue(),
                    self.run_log_collection(),
                    self.run_route_confirmation(),
                    self.run_retention(),
                );
            } => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    async fn run_rescue(&self) {
        loop {
            sleep(self.timings.rescue).await;
            if let Err(error) = self.rescue().await {
                tracing::warn!(%error, "jobs of lost workers could not be read");
            }
        }
    }

    async fn rescue(&self) -> Result<(), StoreError> {
        let (instance, boot) = self.identity;
        let now = self.context.clock.now();
        let rescued = self.ports.queue.rescue(instance, boot, now).await?;
        for rescued in &rescued {
            let (job, state) = (rescued.job.id, rescued.job.state.as_str());
            tracing::info!(job.id = %job, state, lost_by = %rescued.lost_by, "job taken from a lost worker");
        }
        let followed = vec![DeploymentWrite::FollowJobs { application: None, at: now }.into()];
        #[cfg(feature = "extensions")]
        let followed = {
            let runs = self.runner.iter().map(|_| ExtensionWrite::FollowJobs { at: now }.into());
            followed.into_iter().chain(runs).collect()
        };
        self.context.store.commit(followed).await?;
        if !rescued.is_empty() {
            self.context.wake.notify();
        }
        Ok(())
    }

    async fn run_log_collection(&self) {
        let freshness = &self.ports.log_freshness;
        let (mut next, mut next_sweep) = (Instant::now(), Instant::now());
        loop {
            let snapshot = Arc::clone(&self.snapshot.borrow());
            if freshness.take_requests() {
                self.collect_logs(&snapshot, |version| freshness.is_requested(version.application.id)).await;
                freshness.answer();
            }
            if Instant::now() >= next {
                let is_leader = self.context.replica.is_leader();
                let collects = |version: &LiveVersion| match snapshot.homes.place_of(&version.deployment) {
                    Place::Here => true,
                    Place::Elsewhere => false,
                    Place::Anywhere => is_leader,
                };
                // The others collect for their own readers only.
                let others = snapshot.running().filter(|version| !collects(version));
                others.for_each(|version| freshness.watch(version.application.id));
                self.collect_logs(&snapshot, |version| {
                    collects(version) && freshness.is_due(version.application.id)
                })
                .await;
                next = Instant::now() + self.timings.logs;
            }
            if Instant::now() >= next_sweep {
                self.forget_logs(&snapshot).await;
                next_sweep = Instant::now() + FORGET_INTERVAL;
            }
            freshness.wait_for_request(next).await;
        }
    }

    /// Collects the new output of the containers of the chosen applications.
    async fn collect_logs(&self, snapshot: &Snapshot, is_chosen: impl Fn(&LiveVersion) -> bool) {
        for version in snapshot.running() {
            let LiveVersion { application, deployment } = version;
            // Another server collects what runs on its machine.
            let is_here = snapshot.homes.place_of(deployment) != Place::Elsewhere;
            if deployment.container.is_none() || !is_here || !is_chosen(version) {
                continue;
            }
            // An unavailable engine would be queried for each of them.
            if self.context.engine.outage().is_some() {
                return;
            }
            let (sidecars, now) = (snapshot.view.sidecars(deployment), self.context.clock.now());
            let sources = LogSource::all(deployment, &sidecars);
            match self.ports.runtime_logs.collect(application, deployment, &sources, now).await {
                Ok(has_output) => self.ports.log_freshness.record(application.id, has_output),
                Err(reason) => {
                    tracing::warn!(deployment.id = %deployment.id, reason, "output could not be collected");
                }
            }
        }
    }

    /// Drops the state of containers that no longer belong to a live version.
    async fn forget_logs(&self, snapshot: &Snapshot) {
        let (mut containers, mut applications, mut deployments) =
            (HashSet::new(), HashSet::new(), HashSet::new());
        for LiveVersion { application, deployment } in snapshot.running() {
            if deployment.container.is_none() {
                continue;
            }
            applications.insert(application.id);
            deployments.insert(deployment.id);
            containers.extend(deployment.copies().map(|container| container.id.clone()));
            containers.extend(snapshot.view.sidecars(deployment).into_iter().map(|sidecar| sidecar.id));
        }
        self.ports.runtime_logs.forget_others(&containers, &deployments).await;
        self.ports.log_freshness.retain(&applications);
    }

    /// Confirms periodically that the router matches the records: it may have been unavailable or have
    /// wrong routes.
    async fn run_route_confirmation(&self) {
        let (mut is_told, mut changed) = (true, self.ports.routes.changed().listen());
        loop {
            match (self.ports.routes.confirm().await, is_told) {
                (Ok(()), _) => is_told = true,
                (Err(error), true) => {
                    tracing::warn!(%error, "routes could not be confirmed");
                    is_told = false;
                }
                (Err(_), false) => {}
            }
            if let Err(error) = self.ports.routes.drain_for_others().await {
                tracing::warn!(%error, "requests of other replicas could not be read");
            }
            changed.wait_timeout(self.timings.routes).await;
        }
    }

    async fn run_retention(&self) {
        loop {
            let now = self.context.clock.now();
            #[cfg(feature = "extensions")]
            if let Some(runner) = &self.runner
                && let Err(error) = runner.sweep(now - WORKSPACE_RETENTION).await
            {
                tracing::warn!(%error, "old workspaces could not be removed");
            }
            if self.context.replica.is_leader() {
                self.remove_old_records(now).await;
            }
            sleep(self.timings.retention).await;
        }
    }

    /// Removes the records whose retention has ended.
    async fn remove_old_records(&self, now: Timestamp) {
        if let Some(idempotency) = &self.ports.idempotency
            && let Err(error) = idempotency.forget(now - IdempotencyKey::KEPT).await
        {
            tracing::warn!(%error, "old requests could not be removed");
        }
        #[cfg(feature = "webhooks")]
        if let Some(deliveries) = &self.deliveries
            && let Err(error) = deliveries.forget(now - DeliveryMark::KEPT, now).await
        {
            tracing::warn!(%error, "old deliveries of code hosts could not be removed");
        }
        #[cfg(feature = "webhooks")]
        self.remove_previews().await;
        self.remove_jobs(now - self.timings.kept_jobs).await;
        self.trim_logs().await;
    }

    #[cfg(feature = "webhooks")]
    async fn remove_previews(&self) {
        let Some(previews) = &self.previews else { return };
        match previews.remove_expired().await {
            Ok(0) => {}
            Ok(previews) => tracing::info!(previews, "expired previews removed"),
            Err(error) => tracing::warn!(%error, "expired previews could not be removed"),
        }
    }

    async fn remove_jobs(&self, before: Timestamp) {
        while self.context.replica.is_leader() {
            match self.ports.queue.forget(before).await {
                Ok(0) => break,
                Ok(jobs) => tracing::info!(jobs, "old jobs removed"),
                Err(error) => {
                    tracing::warn!(%error, "old jobs could not be removed");
                    break;
                }
            }
        }
    }

    async fn trim_logs(&self) {
        while self.context.replica.is_leader() {
            match self.ports.logs.trim(self.timings.kept_lines).await {
                Ok(0) => break,
                Ok(lines) => tracing::info!(lines, "old log lines removed"),
                Err(error) => {
                    tracing::warn!(%error, "old log lines could not be removed");
                    break;
                }
            }
        }
    }
}
