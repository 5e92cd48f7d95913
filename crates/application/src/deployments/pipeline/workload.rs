//! Workloads: the versions that run on the engine.

use std::sync::Arc;

use async_trait::async_trait;
use launchway_domain::{
    applications::{Port, RunCommand, Variables},
    deployments::{
        Composer, CompositionPlan, Container, ContainerPlan, ContainerRecord, ContainerState, Deployer,
        DeploymentRepository, DiscoveredResource, EngineInventory, ImageName, Output, Owner, StepError,
    },
    ids::{ApplicationId, DeploymentId},
    logs::Level,
};

use super::super::log::DeploymentLog;
use crate::Terms;

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

    /// Starts the workload beside whatever else runs, and returns the container that gets the traffic.
    async fn start(&self, log: &Arc<DeploymentLog>) -> Result<Container, StepError>;

    /// Runs `command` in a container of its own and waits until it exits.
    async fn run_once(&self, command: &RunCommand, output: Arc<dyn Output>) -> Result<(), StepError>;

    /// Returns whether it can run beside the live copy of the same version: not if they would share volumes.
    async fn can_run_beside_live(&self) -> Result<bool, StepError> {
        Ok(true)
    }
}

struct ContainerWorkload {
    deployer: Arc<dyn Deployer>,
    plan: ContainerPlan,
    terms: Terms,
}

#[async_trait]
impl Workload for ContainerWorkload {
    async fn start(&self, log: &Arc<DeploymentLog>) -> Result<Container, StepError> {
        log.write_line(Level::Info, format!("Starting the {}", self.terms.instance)).await;
        self.deployer.start(&self.plan).await
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
        let started = self.composer.start_companions(&self.plan, output.clone()).await;
        output.finish().await;
        started
    }

    async fn start(&self, log: &Arc<DeploymentLog>) -> Result<Container, StepError> {
        log.write_line(Level::Info, "Starting the services").await;
        let output = log.output(Level::Runtime);
        let started = self.composer.start(&self.plan, output.clone()).await;
        output.finish().await;
        started
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
        let WorkloadSpec { owner, image, port, environment, live } = spec;
        let (image, environment) = (image.clone(), environment.clone());
        // The addresses that routes refer to.
        let reserved = self.deployments.live_addresses().await;
        let reserved = reserved.map_err(|error| StepError::failed("the database cannot be read", error))?;
        Ok(if image.is_of_service() {
            let plan = CompositionPlan { owner, port, environment, live, reserved };
            Box::new(CompositionWorkload { composer: Arc::clone(&self.composer), plan })
        } else {
            let plan = ContainerPlan { owner, image, environment, port, reserved };
            Box::new(ContainerWorkload { deployer: Arc::clone(&self.deployer), plan, terms: self.terms })
        })
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
