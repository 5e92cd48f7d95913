//! Workloads: the versions that run on the engine.

use std::sync::Arc;

use async_trait::async_trait;
use launchway_domain::{
    applications::{Port, RunCommand, Variables},
    deployments::{
        Composer, CompositionPlan, Container, ContainerId, ContainerPlan, ContainerRecord, ContainerState,
        Deployer, DeploymentRepository, DiscoveredResource, EngineInventory, ImageName, Output, Owner,
        StepError,
    },
    ids::{ApplicationId, DeploymentId},
    logs::Level,
    routes::Endpoint,
};

use tokio::task::{JoinError, JoinSet};

use super::super::log::DeploymentLog;
use crate::Terms;

/// The most copies that are started at once.
const MOST_STARTS: usize = 4;

/// A version that can be started: one container, or the services of a composition.
///
/// Kinds of workloads differ in their start only. From then on, the container that gets the traffic stands
/// for the whole workload: [`Deployer`] checks, stops, restarts and removes it with all its services.
#[async_trait]
pub(super) trait Workload: Send + Sync {
    /// Starts the services that a pre-run command may need.
    async fn prepare(&self, _log: &Arc<DeploymentLog>) -> Result<(), StepError> {
        Ok(())
    }

    /// Starts the workload beside whatever else runs, and returns the containers that get the traffic: one for
    /// each copy.
    async fn start(&self, log: &Arc<DeploymentLog>) -> Result<Vec<Container>, StepError>;

    /// Runs `command` in a container of its own and waits until it exits.
    async fn run_once(&self, command: &RunCommand, output: Arc<dyn Output>) -> Result<(), StepError>;

    /// Returns whether it can run beside the live copy of the same version: not if they would share volumes.
    async fn can_run_beside_live(&self) -> Result<bool, StepError> {
        Ok(true)
    }
}

struct ContainerWorkload {
    deployer: Arc<dyn Deployer>,
    /// The plan of the first copy.
    plan: ContainerPlan,
    /// The numbers of the copies after the first one.
    further_copies: Vec<u16>,
    terms: Terms,
}

#[async_trait]
impl Workload for ContainerWorkload {
    async fn start(&self, log: &Arc<DeploymentLog>) -> Result<Vec<Container>, StepError> {
        let (count, instance) = (1 + self.further_copies.len(), self.terms.instance);
        let text = match count {
            1 => format!("Starting the {instance}"),
            _ => format!("Starting {count} copies of the {instance}"),
        };
        log.write_line(Level::Info, text).await;
        let mut started = vec![self.deployer.start(&self.plan).await?];
        for some in self.further_copies.chunks(MOST_STARTS) {
            let mut tasks = JoinSet::new();
            for copy in some {
                let (deployer, plan) = (Arc::clone(&self.deployer), self.plan.clone());
                let plan = ContainerPlan { copy: *copy, ..plan };
                tasks.spawn(async move { (plan.copy, deployer.start(&plan).await) });
            }
            let mut together = Vec::with_capacity(some.len());
            while let Some(ended) = tasks.join_next().await {
                let (copy, container) = ended.map_err(panicked)?;
                together.push((copy, container?));
            }
            together.sort_by_key(|(copy, _)| *copy);
            started.extend(together.into_iter().map(|(_, container)| container));
        }
        Ok(started)
    }

    async fn run_once(&self, command: &RunCommand, output: Arc<dyn Output>) -> Result<(), StepError> {
        self.deployer.run_once(&self.plan, command, output).await
    }
}

struct CompositionWorkload {
    composer: Arc<dyn Composer>,
    plan: CompositionPlan,
}

#[async_trait]
impl Workload for CompositionWorkload {
    async fn prepare(&self, log: &Arc<DeploymentLog>) -> Result<(), StepError> {
        log.write_line(Level::Info, "Starting the sidecar services").await;
        let output = log.output(Level::Runtime);
        let started = self.composer.start_sidecars(&self.plan, output.clone()).await;
        output.finish().await;
        started
    }

    async fn start(&self, log: &Arc<DeploymentLog>) -> Result<Vec<Container>, StepError> {
        log.write_line(Level::Info, "Starting the services").await;
        let output = log.output(Level::Runtime);
        let started = self.composer.start(&self.plan, output.clone()).await;
        output.finish().await;
        Ok(vec![started?])
    }

    async fn run_once(&self, command: &RunCommand, output: Arc<dyn Output>) -> Result<(), StepError> {
        self.composer.run_once(&self.plan, command, output).await
    }

    async fn can_run_beside_live(&self) -> Result<bool, StepError> {
        let recalled = self.composer.recall(&self.plan, self.plan.owner.deployment).await?;
        Ok(recalled.is_some_and(|composition| composition.shared_volumes.is_empty()))
    }
}

/// The configuration of a workload.
pub(super) struct WorkloadSpec<'a> {
    pub(super) owner: Owner,
    pub(super) image: &'a ImageName,
    pub(super) port: Port,
    pub(super) environment: &'a Variables,
    /// The deployment that is live meanwhile.
    pub(super) live: Option<DeploymentId>,
    /// The numbers of the copies to start; the only one of a composition.
    pub(super) copies: Copies,
}

/// The numbers of copies; at least one.
pub(super) struct Copies {
    pub(super) first: u16,
    pub(super) further: Vec<u16>,
}

impl Copies {
    /// Returns the numbers of all copies of a version.
    pub(super) fn all(count: u16) -> Self {
        Self { first: 1, further: (2..=count).collect() }
    }

    /// Returns these numbers; `None` if there are none.
    pub(super) fn these(numbers: &[u16]) -> Option<Self> {
        let (first, further) = numbers.split_first()?;
        Some(Self { first: *first, further: further.to_vec() })
    }
}

/// Plans workloads, and finds and removes those of an application.
pub(super) struct Workloads {
    pub(super) deployer: Arc<dyn Deployer>,
    pub(super) composer: Arc<dyn Composer>,
    pub(super) inventory: Arc<dyn EngineInventory>,
    pub(super) deployments: Arc<dyn DeploymentRepository>,
    pub(super) terms: Terms,
}

impl Workloads {
    /// Returns the workload of `spec`: a composition if its image was built for one of several services.
    pub(super) async fn plan(&self, spec: WorkloadSpec<'_>) -> Result<Box<dyn Workload>, StepError> {
        let WorkloadSpec { owner, image, port, environment, live, copies } = spec;
        let (image, environment) = (image.clone(), environment.clone());
        // The addresses that routes refer to.
        let reserved = self.deployments.live_addresses().await;
        let reserved = reserved.map_err(|error| StepError::failed("the database cannot be read", error))?;
        Ok(if image.is_of_service() {
            let plan = CompositionPlan { owner, port, environment, live, reserved };
            Box::new(CompositionWorkload { composer: Arc::clone(&self.composer), plan })
        } else {
            let plan = ContainerPlan { owner, image, environment, port, reserved, copy: copies.first };
            let (deployer, terms) = (Arc::clone(&self.deployer), self.terms);
            Box::new(ContainerWorkload { deployer, plan, further_copies: copies.further, terms })
        })
    }

    /// Enables the restart policy of every copy.
    pub(super) async fn enable_restart_policies(
        &self,
        copies: impl Iterator<Item = &ContainerId>,
    ) -> Result<(), StepError> {
        for copy in copies {
            self.deployer.enable_restart_policy(copy).await?;
        }
        Ok(())
    }

    /// Returns the containers of an application.
    pub(super) async fn containers_of(
        &self,
        application: ApplicationId,
    ) -> Result<Vec<DiscoveredResource>, StepError> {
        let found = self.inventory.containers().await?;
        Ok(found.into_iter().filter(|found| found.owner.application == application).collect())
    }

    /// Removes the containers of the other versions of an application. A lost attempt may have left a
    /// database that still uses the volumes.
    pub(super) async fn remove_all_but(
        &self,
        application: ApplicationId,
        known: &[DeploymentId],
    ) -> Result<(), StepError> {
        let found = self.containers_of(application).await?;
        let mut others: Vec<DeploymentId> = found.iter().map(|found| found.owner.deployment).collect();
        others.retain(|other| !known.contains(other));
        others.sort_unstable();
        others.dedup();
        for other in others {
            self.deployer.remove(other).await?;
        }
        Ok(())
    }
}

/// Converts the error of a task that started or checked a copy.
pub(super) fn panicked(error: JoinError) -> StepError {
    StepError::failed("a copy could not be started", error)
}

/// Returns the endpoints of containers whose plan has the port `port`.
pub(super) fn endpoints(containers: &[Container], port: Port) -> Vec<Endpoint> {
    let endpoint =
        |container: &Container| Endpoint { id: container.id.clone(), address: container.endpoint(port) };
    containers.iter().map(endpoint).collect()
}

/// Returns the addresses of endpoints for a message.
pub(super) fn addresses(endpoints: &[Endpoint]) -> String {
    let addresses = endpoints.iter().map(|endpoint| format!("http://{}", endpoint.address));
    addresses.collect::<Vec<_>>().join(", ")
}

/// Returns the record of a container that was just started.
pub(super) fn running(container: &Container, port: Port) -> ContainerRecord {
    ContainerRecord {
        id: container.id.clone(),
        name: container.name.clone(),
        state: ContainerState::Running,
        address: Some(container.address),
        port: container.port.unwrap_or(port),
    }
}
