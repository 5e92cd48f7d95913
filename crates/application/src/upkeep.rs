//! Upkeep: what has to be looked after again and again, whoever asks.

mod extensions;
mod reaper;
mod records;
mod stability;

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    clock::Timestamp,
    deployments::{
        ContainerId, ContainerState, Deployer, DeploymentRepository, EngineInventory, Found, ImageName,
        KeptVersions, LiveVersion, SiteStore, Write as DeploymentWrite,
    },
    extensions::{ExtensionRepository, ExtensionRunner, Write as ExtensionWrite},
    idempotency::{IdempotencyKey, IdempotencyStore},
    ids::{ApplicationId, BootId, InstanceId},
    jobs::{Job, JobKind, JobQueue, JobState, Rescued, Write as JobWrite},
    logs::{Level, LogSink, NewLine},
    store::StoreError,
    webhooks::{DeliveryMark, DeliveryMemory},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

pub use self::stability::StabilityLimits;
use self::{records::conditions_of, stability::Stability};
use crate::{
    Tools, companions::companions_of, deployments::job_about, routes::Routes, runtime_logs::RuntimeLogs,
};

/// What upkeep works with.
pub struct UpkeepPorts {
    /// The jobs of lost workers.
    pub queue: Arc<dyn JobQueue>,
    /// Which versions are live, and what the records account for.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// What extensions made.
    pub extensions: Arc<dyn ExtensionRepository>,
    /// Removes what no run accounts for.
    pub runner: Arc<dyn ExtensionRunner>,
    /// Asks how containers are.
    pub deployer: Arc<dyn Deployer>,
    /// What is on the engine.
    pub inventory: Arc<dyn EngineInventory>,
    /// Removes published folders that are kept no longer.
    pub sites: Arc<dyn SiteStore>,
    /// Leads traffic to where containers are now.
    pub routes: Arc<Routes>,
    /// Keeps logs within bounds.
    pub logs: Arc<dyn LogSink>,
    /// Collects what containers print.
    pub runtime_logs: Arc<RuntimeLogs>,
    /// Forgets old requests.
    pub idempotency: Arc<dyn IdempotencyStore>,
    /// Forgets old deliveries of code hosts.
    pub deliveries: Arc<dyn DeliveryMemory>,
}

/// How often things are looked after.
#[derive(Debug, Clone, Copy)]
pub struct UpkeepTimings {
    /// Jobs of lost workers.
    pub rescue: Duration,
    /// What containers print.
    pub rounds: Duration,
    /// Routes that differ from the records.
    pub routes: Duration,
    /// How containers are, when there is no news of them.
    pub look: Duration,
    /// What no record accounts for.
    pub reap: Duration,
    /// What is too old.
    pub forget: Duration,
}

impl Default for UpkeepTimings {
    fn default() -> Self {
        Self {
            rescue: Duration::from_secs(10),
            rounds: Duration::from_secs(2),
            routes: Duration::from_secs(5),
            look: Duration::from_secs(10),
            reap: Duration::from_secs(60),
            forget: Duration::from_secs(60 * 60),
        }
    }
}

/// When something is broken, and how much is kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct UpkeepLimits {
    /// When a container does not stay up.
    pub stability: StabilityLimits,
    /// How many versions of an application are kept.
    pub kept_versions: KeptVersions,
}

/// How many log lines each application keeps.
const KEPT_LINES: i64 = 200_000;

/// How long a start waits for the engine.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// Looks after jobs, containers, logs and leftovers.
pub struct Upkeep {
    ports: UpkeepPorts,
    identity: (InstanceId, BootId),
    timings: UpkeepTimings,
    limits: UpkeepLimits,
    tools: Tools,
}

impl Upkeep {
    /// Looks after what `instance`, in its run `boot`, is responsible for.
    pub fn new(
        ports: UpkeepPorts,
        (instance, boot): (InstanceId, BootId),
        timings: UpkeepTimings,
        limits: UpkeepLimits,
        tools: Tools,
    ) -> Self {
        Self { ports, identity: (instance, boot), timings, limits, tools }
    }

    /// Takes over what an earlier run of this instance left: before the first job is claimed.
    ///
    /// # Errors
    /// [`StoreError`] when the database cannot be asked.
    pub async fn begin(&self) -> Result<(), StoreError> {
        self.rescue().await?;
        // After a reboot the address in a record may be that of another's container.
        if timeout(FIRST_LOOK, self.look_once()).await.is_err() {
            tracing::warn!("the engine does not answer: containers are looked at later");
        }
        // Who asks from now on is to find what is there.
        if let Err(error) = self.ports.routes.follow_all().await {
            tracing::warn!(%error, "traffic is not led by the records yet");
        }
        Ok(())
    }

    /// Looks after everything until `stop` says so.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = async {
                tokio::join!(
                    self.keep_rescuing(),
                    self.keep_watching(),
                    self.keep_routing(),
                    self.keep_reaping(),
                    self.keep_forgetting(),
                );
            } => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    async fn keep_rescuing(&self) {
        loop {
            sleep(self.timings.rescue).await;
            if let Err(error) = self.rescue().await {
                tracing::warn!(%error, "lost jobs could not be looked for");
            }
        }
    }

    async fn rescue(&self) -> Result<(), StoreError> {
        let (instance, boot) = self.identity;
        let now = self.tools.clock.now();
        let rescued = self.ports.queue.rescue(instance, boot, now).await?;
        for rescued in &rescued {
            let (job, state) = (rescued.job.id, rescued.job.state.as_str());
            tracing::info!(job.id = %job, state, lost_by = %rescued.lost_by, "took a job from a lost worker");
        }
        let followed = vec![
            DeploymentWrite::FollowJobs { application: None, at: now }.into(),
            ExtensionWrite::FollowJobs { at: now }.into(),
        ];
        self.tools.store.commit(followed).await?;
        self.bring_back(&rescued).await?;
        if !rescued.is_empty() {
            self.tools.bell.ring();
        }
        Ok(())
    }

    /// Has versions started again that were stopped for one that was lost for good.
    async fn bring_back(&self, rescued: &[Rescued]) -> Result<(), StoreError> {
        let lost = rescued.iter().map(|rescued| &rescued.job);
        let lost: Vec<ApplicationId> = lost
            .filter(|job| job.kind == JobKind::Deploy && job.state != JobState::Queued)
            .map(|job| job.subject.into())
            .collect();
        if lost.is_empty() {
            return Ok(());
        }
        let live = self.ports.deployments.live().await?;
        let stand_still = live.iter().filter(|version| {
            let LiveVersion { application, deployment } = version;
            let is_composition = deployment.image.as_ref().is_some_and(ImageName::is_of_service);
            let container = deployment.container.as_ref();
            let stands_still = container.is_some_and(|container| container.state == ContainerState::Exited);
            lost.contains(&application.id) && !application.is_stopped && is_composition && stands_still
        });
        let restarts = stand_still
            .map(|version| job_about(&version.application, JobKind::Restart, &self.tools))
            .map(|job| JobWrite::Enqueue(job).into());
        match restarts.collect::<Vec<_>>() {
            none if none.is_empty() => Ok(()),
            restarts => self.tools.store.commit(restarts).await,
        }
    }

    /// Collects what containers print, notices those that do not stay up, and keeps their records true.
    async fn keep_watching(&self) {
        let (mut stability, mut last_look) = (Stability::default(), None);
        let mut found = Vec::new();
        loop {
            let has_news = self.ports.inventory.wait_for_news(self.timings.rounds).await;
            let round = Instant::now();
            // Without news containers are as they were, unless news were missed.
            let is_due = last_look.is_none_or(|last| round - last >= self.timings.look);
            match self.ports.deployments.live().await {
                Ok(live) => {
                    let running: Vec<&LiveVersion> =
                        live.iter().filter(|version| !version.application.is_stopped).collect();
                    let fresh = match has_news || is_due {
                        true => self.found().await,
                        false => None,
                    };
                    self.collect(&running, fresh.as_deref().unwrap_or(&found)).await;
                    if let Some(fresh) = fresh {
                        found = fresh;
                        last_look = Some(round);
                        let conditions = conditions_of(&found);
                        self.check_stability(&mut stability, &running, &conditions).await;
                        self.check_companions(&mut stability, &running, &found).await;
                        self.correct_records(&running, &conditions).await;
                        self.follow_extensions().await;
                    }
                }
                Err(error) => tracing::warn!(%error, "live versions could not be looked for"),
            }
            // News may come thick and fast; a round costs a question to the engine.
            sleep(Duration::from_millis(500).saturating_sub(round.elapsed())).await;
        }
    }

    /// Tells the router again and again what the records say: it may have been away, or told wrongly.
    async fn keep_routing(&self) {
        let mut is_told = true;
        loop {
            match (self.ports.routes.follow_all().await, is_told) {
                (Ok(()), _) => is_told = true,
                (Err(error), true) => {
                    tracing::warn!(%error, "traffic is not led by the records until the router answers");
                    is_told = false;
                }
                (Err(_), false) => {}
            }
            sleep(self.timings.routes).await;
        }
    }

    /// Takes what the containers of `live` have printed since the last round.
    async fn collect(&self, live: &[&LiveVersion], found: &[Found]) {
        let mut containers: Vec<ContainerId> = Vec::new();
        for version in live {
            let LiveVersion { application, deployment } = version;
            let (companions, now) = (companions_of(deployment, found), self.tools.clock.now());
            let logs = &self.ports.runtime_logs;
            if let Err(reason) = logs.collect(application, deployment, &companions, now).await {
                tracing::warn!(deployment.id = %version.deployment.id, reason, "output could not be collected");
            }
            containers.extend(deployment.container.iter().map(|container| container.id.clone()));
            containers.extend(companions.into_iter().map(|companion| companion.id));
        }
        self.ports.runtime_logs.forget_others(&containers).await;
    }

    /// A line of Launchway's own in the log of a version.
    async fn note(&self, version: &LiveVersion, level: Level, text: String) {
        let (application_id, deployment_id) = (version.application.id, version.deployment.id);
        let line = NewLine { application_id, deployment_id, level, text, at: self.tools.clock.now() };
        if let Err(error) = self.ports.logs.append(vec![line]).await {
            tracing::warn!(%error, deployment.id = %deployment_id, "a log line could not be kept");
        }
    }

    async fn keep_reaping(&self) {
        loop {
            if let Err(reason) = self.reap().await {
                tracing::warn!(reason, "leftovers could not be removed");
            }
            if let Err(reason) = self.reap_releases().await {
                tracing::warn!(reason, "old releases of sites could not be removed");
            }
            sleep(self.timings.reap).await;
        }
    }

    async fn forget_jobs(&self, before: Timestamp) {
        loop {
            match self.ports.queue.forget(before).await {
                Ok(0) => break,
                Ok(jobs) => tracing::info!(jobs, "forgot old jobs"),
                Err(error) => {
                    tracing::warn!(%error, "old jobs could not be forgotten");
                    break;
                }
            }
        }
    }

    async fn keep_forgetting(&self) {
        loop {
            self.sweep_workspaces().await;
            let now = self.tools.clock.now();
            if let Err(error) = self.ports.idempotency.forget(now - IdempotencyKey::KEPT).await {
                tracing::warn!(%error, "old requests could not be forgotten");
            }
            if let Err(error) = self.ports.deliveries.forget(now - DeliveryMark::KEPT, now).await {
                tracing::warn!(%error, "old deliveries of code hosts could not be forgotten");
            }
            self.forget_jobs(now - Job::KEPT).await;
            loop {
                match self.ports.logs.trim(KEPT_LINES).await {
                    Ok(0) => break,
                    Ok(lines) => tracing::info!(lines, "forgot old log lines"),
                    Err(error) => {
                        tracing::warn!(%error, "old log lines could not be forgotten");
                        break;
                    }
                }
            }
            sleep(self.timings.forget).await;
        }
    }
}
