//! Versions with several services: the compose file of a repository.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;

use super::{BuildCache, Checkout, Container, ContainerId, ImageName, Output, Owner, ServiceName, StepError};
use crate::{
    applications::{BasePath, DockerfilePath, Port, RunCommand, Variables},
    ids::{ApplicationId, DeploymentId},
    secret::Sealed,
    store_error::StoreError,
};

/// The owner and configuration of a composition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositionPlan {
    /// The owner.
    pub owner: Owner,
    /// The port that identifies the service that gets the traffic.
    pub port: Port,
    /// The variables that the file may refer to, and the environment of the service that gets the traffic.
    pub environment: Variables,
    /// The deployment that is live meanwhile.
    pub live: Option<DeploymentId>,
    /// Addresses that no service may get, because routes use them.
    pub reserved: Vec<IpAddr>,
}

/// The location of a compose file, and the build arguments of its images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposeSource {
    /// The checkout with the file.
    pub checkout: Checkout,
    /// The folder in the checkout.
    pub base_path: BasePath,
    /// The path of the file; looked up by its usual names if this is the default of a Dockerfile.
    pub file: DockerfilePath,
    /// The build arguments.
    pub variables: Variables,
    /// The use of cached build steps.
    pub cache: BuildCache,
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
    /// Deviations from the file, as lines for the log.
    pub remarks: Vec<String>,
}

/// A sidecar: a container beside the one that gets the traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidecar {
    /// The engine's id of it.
    pub id: ContainerId,
    /// The name of the service.
    pub service: ServiceName,
}

/// Runs the services of a compose file.
///
/// Promises: the engine never sees the file of a repository, only a generated one with nothing that is not
/// on an allowlist; a file may refer to the variables of its plan and to no others; every service keeps the
/// promises of [`Deployer`](super::Deployer) and [`ImageBuilder`](super::ImageBuilder), but is in a network
/// of its composition alone; no value of the plan's environment is stored on disk. Named volumes belong to
/// the application and outlive its deployments.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Composer: Send + Sync {
    /// Reads and checks a compose file, builds the image of each service, and stores what is needed to
    /// start them, now or later.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if there is no such file, if something in it is not allowed, if it does not
    /// have exactly one service that gets the traffic, or if a build fails; [`StepError::Retryable`] if the
    /// engine is unreachable.
    async fn compose(
        &self,
        plan: &CompositionPlan,
        source: &ComposeSource,
        output: Arc<dyn Output>,
    ) -> Result<Composition, StepError>;

    /// Restores the composition of `earlier` for the deployment of `plan`; `None` if it was not a
    /// composition.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if an image is gone or the file is not allowed any more, [`StepError::Retryable`]
    /// if the engine is unreachable.
    async fn recall(
        &self,
        plan: &CompositionPlan,
        earlier: DeploymentId,
    ) -> Result<Option<Composition>, StepError>;

    /// Starts the services that can run without the one that gets the traffic, and waits until its
    /// dependencies are ready.
    ///
    /// # Errors
    /// As [`start`](Composer::start).
    async fn start_sidecars(&self, plan: &CompositionPlan, output: Arc<dyn Output>) -> Result<(), StepError>;

    /// Starts all services beside whatever else runs, and returns the container that gets the traffic.
    /// Running services of the same attempt keep running.
    ///
    /// # Errors
    /// [`StepError::Rejected`] when a service cannot be run or one that others depend on fails,
    /// [`StepError::Retryable`] if the engine is unreachable.
    async fn start(&self, plan: &CompositionPlan, output: Arc<dyn Output>) -> Result<Container, StepError>;

    /// Runs `command` by `/bin/sh -c` in a container of its own and waits until it exits. The container has
    /// the image, the network and the environment of the service that gets the traffic.
    ///
    /// # Errors
    /// [`StepError::Rejected`] when it fails or takes too long, [`StepError::Retryable`] when the engine is not
    /// there.
    async fn run_once(
        &self,
        plan: &CompositionPlan,
        command: &RunCommand,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError>;

    /// Removes everything that is stored for an application, its volumes included. Its containers are
    /// removed already.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the engine is unreachable or the file system refuses.
    async fn forget(&self, application: ApplicationId) -> Result<(), StepError>;
}

/// Stores the files and images of compositions, so that every server can start them again.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait CompositionRepository: Send + Sync {
    /// Stores the composition of a deployment in place of an earlier one. Only the `most` newest of the application are
    /// kept.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if the application has no such deployment, [`StoreError::Unavailable`],
    /// [`StoreError::StorageFull`] or [`StoreError::Internal`].
    async fn keep(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
        sealed: Sealed,
        most: usize,
    ) -> Result<(), StoreError>;

    /// Returns the composition of a deployment; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn find(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
    ) -> Result<Option<Sealed>, StoreError>;

    /// Deletes the compositions of an application.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forget(&self, application: ApplicationId) -> Result<(), StoreError>;
}
