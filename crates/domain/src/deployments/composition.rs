//! Versions that are several services: what a compose file of a repository comes to.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;

use super::{Checkout, Container, ContainerId, ImageName, Output, Owner, ServiceName, StepError};
use crate::{
    applications::{BasePath, DockerfilePath, Port, RunCommand, Variables},
    ids::{ApplicationId, DeploymentId},
};

/// For whom services are run, and with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositionPlan {
    /// For whom.
    pub owner: Owner,
    /// The port by which the service is recognised that gets the traffic.
    pub port: Port,
    /// What the file may refer to, and what the service that gets the traffic is told.
    pub environment: Variables,
    /// The version that is live meanwhile.
    pub live: Option<DeploymentId>,
    /// Addresses that no service must get, because routes name them.
    pub reserved: Vec<IpAddr>,
}

/// Where a compose file is, and what its images are built with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposeSource {
    /// Among which files.
    pub checkout: Checkout,
    /// In which folder of them.
    pub base_path: BasePath,
    /// Which file; by its usual names when this is the default of a Dockerfile.
    pub file: DockerfilePath,
    /// The arguments of builds.
    pub variables: Variables,
}

/// Services that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composition {
    /// The service that gets the traffic.
    pub web: ServiceName,
    /// Its image.
    pub image: ImageName,
    /// The volumes that the live version uses too. Both must not run at the same time if there are
    /// any: two databases on the same files would destroy them.
    pub shared_volumes: Vec<String>,
    /// What of the file is done otherwise than it says, as lines for the log.
    pub remarks: Vec<String>,
}

/// A container beside the one that gets the traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// The engine's id of it.
    pub id: ContainerId,
    /// Which service it is.
    pub service: ServiceName,
}

/// Runs the services of a compose file.
///
/// Promises: the engine never sees the file of a repository, only one of our own making, in which
/// nothing is that was not allowed by name; a file may refer to the variables of its plan and to no
/// others; every service keeps the promises of [`Deployer`](super::Deployer) and
/// [`ImageBuilder`](super::ImageBuilder), but is in a network of its composition alone; no value of
/// the plan's environment is kept on disk. Named volumes belong to the application and outlive its
/// deployments.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Composer: Send + Sync {
    /// Reads and checks a compose file, makes the image of each service, and keeps what is needed
    /// to start them, now or later.
    ///
    /// # Errors
    /// [`StepError::Refused`] when there is no such file, when something in it is not allowed, when
    /// it is not one service that gets the traffic, or when a build fails; [`StepError::Fault`]
    /// when the engine is not there.
    async fn compose(
        &self,
        plan: &CompositionPlan,
        source: &ComposeSource,
        output: Arc<dyn Output>,
    ) -> Result<Composition, StepError>;

    /// What `earlier` was composed of, for the deployment of `plan` too; `None` when it was no
    /// composition.
    ///
    /// # Errors
    /// [`StepError::Refused`] when an image is gone or the file is not allowed any more,
    /// [`StepError::Fault`] when the engine is not there.
    async fn recall(
        &self,
        plan: &CompositionPlan,
        earlier: DeploymentId,
    ) -> Result<Option<Composition>, StepError>;

    /// Starts the services that can run without the one that gets the traffic, and waits until those
    /// are ready that it waits for.
    ///
    /// # Errors
    /// As [`start`](Composer::start).
    async fn start_companions(
        &self,
        plan: &CompositionPlan,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError>;

    /// Starts all services beside whatever else runs, and gives the container that gets the
    /// traffic. Those of the same attempt that run already go on.
    ///
    /// # Errors
    /// [`StepError::Refused`] when a service cannot be run or one that others depend on fails,
    /// [`StepError::Fault`] when the engine is not there.
    async fn start(&self, plan: &CompositionPlan, output: Arc<dyn Output>) -> Result<Container, StepError>;

    /// Runs `command` by `/bin/sh -c` in a container of its own to its end: of the image, in the
    /// network and with the environment of the service that gets the traffic.
    ///
    /// # Errors
    /// [`StepError::Refused`] when it fails or takes too long, [`StepError::Fault`] when the engine
    /// is not there.
    async fn run_once(
        &self,
        plan: &CompositionPlan,
        command: &RunCommand,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError>;

    /// Removes everything that is kept of an application, its volumes included. Its containers are
    /// gone already.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the engine is not there or the file system refuses.
    async fn forget(&self, application: ApplicationId) -> Result<(), StepError>;
}
