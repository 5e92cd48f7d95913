//! Configures the embedded platform.

use std::{sync::Arc, time::Duration};

use chrono::{SubsecRound as _, Utc};
use launchway_application::{
    EngineStatus, Homes, LogFreshness, OwnReplica, RuntimeLogs, ServiceContext, Terms, WakeSignal,
    applications::{ApplicationPolicy, ApplicationPorts, Applications},
    audit::AuditLog,
    deployments::{Deployments, HealthTimings, Pipeline, PipelinePorts, Retirer},
    logs::Logs,
    maintenance::{Maintenance, MaintenancePorts, MaintenanceTimings},
    reconciler::{Reconciler, ReconcilerLimits, ReconcilerPorts, ReconcilerTimings},
    routes::{RoutePorts, Routes},
    worker::{JobHandlers, Worker, WorkerTimings},
};
use launchway_domain::{
    clock::Clock,
    deployments::KeptVersions,
    ids::Ids,
    jobs::{ClaimLimits, WorkerId},
    secret::{Entropy, SecretBox},
};
use uuid::Uuid;

use crate::{
    absent::{Absent, NoSecrets, OrNoSecrets},
    embedded::Embedded,
    host::{Host, HostLimits},
    hosted::Hosted,
    records::Retention,
    repositories::Repositories,
    store::Store,
};

/// The limits of deployments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The deployments that run at once.
    pub concurrency: usize,
    /// The time that a version may take until it is healthy.
    pub healthy: Duration,
    /// The time that a version without a health check path has to stay up.
    pub stable: Duration,
    /// The time that a deployment may take.
    pub deployment: Duration,
    /// The time after which the job of a worker that does not respond is taken over.
    pub lease: Duration,
    /// The time that running deployments get when the service stops.
    pub stop: Duration,
    /// The interval at which the host is compared with the records.
    pub reconcile: Duration,
    /// The grace period of a version that no record wants, before it is ended.
    pub orphan: Duration,
    /// The calls to the host.
    pub host: HostLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 4,
            healthy: Duration::from_secs(60),
            stable: Duration::from_secs(1),
            deployment: Duration::from_secs(30 * 60),
            lease: Duration::from_secs(30),
            stop: Duration::from_secs(5),
            reconcile: Duration::from_secs(10),
            orphan: Duration::from_secs(30),
            host: HostLimits::default(),
        }
    }
}

/// Configures an [`Embedded`].
///
/// ```
/// # use std::time::Duration;
/// # use launchway_embedding::{Embedded, Host, MemoryStore};
/// # fn build(host: impl Host + 'static) -> Embedded {
/// Embedded::builder(MemoryStore::new(), host)
///     .limits(|limits| limits.healthy = Duration::from_secs(10))
///     .retention(|retention| retention.log_lines = 1_000)
///     .kept_versions(3)
///     .build()
/// # }
/// ```
#[must_use]
pub struct Builder {
    store: Arc<dyn Store>,
    host: Arc<dyn Host>,
    secrets: Arc<dyn SecretBox>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    limits: Limits,
    retention: Retention,
    kept_versions: KeptVersions,
}

/// The random bytes of the operating system.
struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(clippy::expect_used, reason = "a machine without randomness must not create weak secrets")]
    fn bits_256(&self) -> [u8; 32] {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits).expect("the system provides randomness");
        bits
    }
}

impl Builder {
    #[expect(
        clippy::disallowed_methods,
        reason = "an embedding service has the clock of the system by default"
    )]
    pub(crate) fn new(store: impl Store + 'static, host: impl Host + 'static) -> Self {
        Self {
            store: Arc::new(store),
            host: Arc::new(host),
            secrets: Arc::new(NoSecrets),
            clock: Arc::new(|| Utc::now().trunc_subsecs(6)),
            ids: Arc::new(Uuid::now_v7),
            limits: Limits::default(),
            retention: Retention::default(),
            kept_versions: KeptVersions::default(),
        }
    }

    /// Sets the box that seals the variables of applications. By default, applications cannot have any.
    pub fn secrets(mut self, secrets: impl SecretBox + 'static) -> Self {
        self.secrets = Arc::new(OrNoSecrets(secrets));
        self
    }

    /// Sets the clock; the one of the system by default.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the ids; UUIDs of version 7 by default.
    pub fn ids(mut self, ids: impl Ids + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Changes the limits: `builder.limits(|limits| limits.healthy = Duration::from_secs(5))`.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Changes the retention of records.
    pub fn retention(mut self, change: impl FnOnce(&mut Retention)) -> Self {
        change(&mut self.retention);
        self
    }

    /// Sets the number of versions of each application that can be rolled back to; 10 by default.
    pub fn kept_versions(mut self, versions: u16) -> Self {
        self.kept_versions = KeptVersions(versions);
        self
    }

    /// Assembles the parts. Nothing runs before [`Embedded::run`].
    #[must_use]
    pub fn build(self) -> Embedded {
        let repositories = Repositories(self.store);
        let port = || Arc::new(repositories.clone());
        let limits = self.limits;
        let hosted =
            Arc::new(Hosted { host: self.host, limits: limits.host, repositories: repositories.clone() });
        let context = ServiceContext {
            store: port(),
            clock: self.clock,
            ids: self.ids,
            entropy: Arc::new(SystemEntropy),
            wake: WakeSignal::default(),
            engine: EngineStatus::default(),
            replica: OwnReplica::default(),
            homes: Homes::default(),
            terms: Terms::NEUTRAL,
        };
        // A service has one worker; the boot id distinguishes its runs.
        let identity = WorkerId { instance: Uuid::nil().into(), boot: context.ids.next().into(), worker: 1 };
        let absent = Arc::new(Absent);
        let routes = Arc::new(Routes::new(
            RoutePorts {
                applications: port(),
                deployments: port(),
                sites: absent.clone(),
                router: hosted.clone(),
            },
            None,
        ));
        let runtime_logs =
            Arc::new(RuntimeLogs::new(hosted.clone(), port(), port(), Arc::clone(&self.secrets)));
        let ports = PipelinePorts {
            applications: port(),
            deployments: port(),
            logs: port(),
            runtime_logs: Some(Arc::clone(&runtime_logs)),
            deploy_keys: absent.clone(),
            secrets: Arc::clone(&self.secrets),
            source: absent.clone(),
            planner: absent.clone(),
            images: hosted.clone(),
            image_quota: None,
            composer: absent.clone(),
            deployer: hosted.clone(),
            inventory: hosted.clone(),
            probe: hosted.clone(),
            sites: absent.clone(),
            routes: Arc::clone(&routes),
        };
        let health = HealthTimings { stability: limits.stable, ..HealthTimings::within(limits.healthy) };
        let pipeline = Arc::new(Pipeline::new(ports, health, context.clone()));
        let retirer = Retirer {
            applications: port(),
            deployments: port(),
            deployer: hosted.clone(),
            inventory: hosted.clone(),
            runtime_logs: Some(Arc::clone(&runtime_logs)),
            routes: Arc::clone(&routes),
            context: context.clone(),
        };
        let reconciler = Arc::new(Reconciler::new(
            ReconcilerPorts {
                queue: port(),
                applications: port(),
                deployments: port(),
                image_records: None,
                deployer: hosted.clone(),
                inventory: hosted.clone(),
                registry: None,
                probe: hosted,
                sites: absent,
                routes: Arc::clone(&routes),
                logs: port(),
                retirer: Arc::new(retirer),
            },
            reconciler_timings(&limits),
            ReconcilerLimits {
                start_period: limits.healthy,
                kept_versions: self.kept_versions,
                ..ReconcilerLimits::default()
            },
            context.clone(),
        ));
        let freshness = LogFreshness::default();
        let maintenance = Maintenance::new(
            MaintenancePorts {
                queue: port(),
                routes: Arc::clone(&routes),
                logs: port(),
                runtime_logs,
                log_freshness: freshness.clone(),
                idempotency: None,
            },
            (identity.instance, identity.boot),
            MaintenanceTimings {
                rescue: limits.lease / 3,
                kept_lines: self.retention.log_lines,
                kept_jobs: self.retention.jobs,
                ..MaintenanceTimings::default()
            },
            reconciler.snapshot(),
            context.clone(),
        );
        let claims = ClaimLimits {
            builds: limits.concurrency,
            operations: limits.concurrency,
            per_organization: limits.concurrency,
        };
        let timings = WorkerTimings {
            lease: limits.lease,
            heartbeat: limits.lease / 3,
            job: limits.deployment,
            grace: limits.stop,
            ..WorkerTimings::default()
        };
        let handlers = JobHandlers::new(pipeline);
        let worker = Arc::new(Worker::new(port(), handlers, identity, claims, timings, context.clone()));
        let policy = ApplicationPolicy {
            kept_versions: self.kept_versions,
            images_only: true,
            ..ApplicationPolicy::default()
        };
        let of_applications = ApplicationPorts { applications: port(), routes };
        Embedded {
            applications: Applications::new(of_applications, self.secrets, policy, context.clone()),
            deployments: Deployments::new(port(), port(), self.kept_versions, context.clone()),
            logs: Logs::new(port(), port(), port(), freshness),
            audit: AuditLog::new(port()),
            worker,
            reconciler,
            maintenance,
            repositories,
            retention: self.retention,
            kept_versions: self.kept_versions,
            context,
        }
    }
}

fn reconciler_timings(limits: &Limits) -> ReconcilerTimings {
    let default = ReconcilerTimings::with_grace(limits.orphan);
    ReconcilerTimings {
        look: limits.reconcile,
        round: default.round.min(limits.reconcile),
        engine: limits.host.call,
        ..default
    }
}
