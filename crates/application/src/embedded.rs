//! Embeds Launchway in another service: deployments of prebuilt images, with as few ports as possible.
//!
//! The service provides the [records](RecordKeeper) and the [host](Host) of the versions, and gets the use
//! cases of deployments and the worker that executes them. A service that needs more assembles [`Pipeline`]
//! and [`Services`](crate::Services) over its own ports.

mod absent;
mod host;
mod keeper;

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    clock::Clock,
    deployments::Write as DeploymentWrite,
    ids::Ids,
    jobs::{ClaimLimits, JobQueue as _, WorkerId},
    secret::{Entropy, SecretBox},
    store::UnitOfWork as _,
};
use uuid::Uuid;

use self::{absent::Absent, host::Hosted, keeper::Kept};
pub use self::{
    absent::NoSecrets,
    host::{Host, Version},
    keeper::{RecordKeeper, Visit},
};
use crate::{
    EngineStatus, Error, ServiceContext, WakeSignal,
    applications::{ApplicationPolicy, ApplicationPorts, Applications},
    deployments::{Deployments, HealthTimings, Pipeline, PipelinePorts},
    routes::{RoutePorts, Routes},
    worker::{JobHandlers, Worker, WorkerTimings},
};

/// The time that a version may take until it is healthy.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The number of deployments that run at once.
const AT_ONCE: usize = 4;

/// Applications and their deployments inside another service.
pub struct Embedded {
    /// Creates, reads, updates and deletes applications.
    pub applications: Applications,
    /// Requests, reads and cancels deployments.
    pub deployments: Deployments,
    /// Executes deployments: in the background by [`Worker::run`], or those that are due now by
    /// [`Worker::drain`].
    pub worker: Arc<Worker>,
    kept: Kept,
    identity: WorkerId,
    context: ServiceContext,
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

impl Embedded {
    /// Assembles the parts. Nothing runs before a method of the parts is called.
    ///
    /// Applications have secrets only if `secrets` accepts them: [`NoSecrets`] does not.
    #[must_use]
    pub fn new(
        keeper: impl RecordKeeper + 'static,
        host: impl Host + 'static,
        secrets: impl SecretBox + 'static,
        clock: impl Clock + 'static,
        ids: impl Ids + 'static,
    ) -> Self {
        let kept = Kept(Arc::new(keeper));
        let secrets: Arc<dyn SecretBox> = Arc::new(secrets);
        // A service has one worker; the boot id distinguishes its runs.
        let identity = WorkerId { instance: Uuid::nil().into(), boot: ids.next().into(), worker: 1 };
        let repository = || Arc::new(kept.clone());
        let context = ServiceContext {
            store: repository(),
            clock: Arc::new(clock),
            ids: Arc::new(ids),
            entropy: Arc::new(SystemEntropy),
            wake: WakeSignal::default(),
            engine: EngineStatus::default(),
        };
        let ports = pipeline_ports(&kept, Arc::new(host), Arc::clone(&secrets));
        let of_applications =
            ApplicationPorts { applications: repository(), routes: Arc::clone(&ports.routes) };
        let policy = ApplicationPolicy::default();
        let kept_versions = policy.kept_versions;
        let pipeline = Pipeline::new(ports, HealthTimings::within(TIMEOUT), context.clone());
        let pipeline = pipeline.without_reconciler();
        let handlers = JobHandlers { pipeline: Arc::new(pipeline), runs: None };
        let limits = ClaimLimits { builds: AT_ONCE, operations: AT_ONCE, per_organization: AT_ONCE };
        let timings = WorkerTimings::default();
        let worker = Worker::new(repository(), handlers, identity, limits, timings, context.clone());
        Self {
            applications: Applications::new(of_applications, secrets, policy, context.clone()),
            deployments: Deployments::new(repository(), repository(), kept_versions, context.clone()),
            worker: Arc::new(worker),
            kept,
            identity,
            context,
        }
    }

    /// Takes over the jobs that an earlier run of the service left running. Needed if records outlive one
    /// run: call it once, before the worker starts.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::Internal`], as the keeper of records returns.
    pub async fn take_over(&self) -> Result<(), Error> {
        let WorkerId { instance, boot, .. } = self.identity;
        let at = self.context.clock.now();
        self.kept.rescue(instance, boot, at).await?;
        let follow = DeploymentWrite::FollowJobs { application: None, at };
        Ok(self.kept.commit(vec![follow.into()]).await?)
    }
}

fn pipeline_ports(kept: &Kept, host: Arc<dyn Host>, secrets: Arc<dyn SecretBox>) -> PipelinePorts {
    let hosted = Arc::new(Hosted { host, kept: kept.clone() });
    let (kept, absent) = (Arc::new(kept.clone()), Arc::new(Absent));
    let routes = RoutePorts {
        applications: kept.clone(),
        deployments: kept.clone(),
        extensions: None,
        sites: absent.clone(),
        router: hosted.clone(),
    };
    PipelinePorts {
        applications: kept.clone(),
        deployments: kept.clone(),
        logs: kept,
        runtime_logs: None,
        deploy_keys: absent.clone(),
        secrets,
        source: absent.clone(),
        planner: absent.clone(),
        images: hosted.clone(),
        image_quota: None,
        composer: absent.clone(),
        deployer: hosted.clone(),
        inventory: hosted.clone(),
        probe: hosted,
        sites: absent,
        routes: Arc::new(Routes::new(routes, None)),
    }
}
