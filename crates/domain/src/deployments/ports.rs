//! Ports for deployments: source, images, containers and sites.
//!
//! **Invariant:** a dropped call of any of these ports, and of the `Composer`, ends what it started,
//! processes included. No value from a user becomes part of a command line's options, of a shell script or
//! of a path outside its folder.
//!
//! **Invariant:** every created object is labelled with its [`Owner`], so that orphans are found, and every
//! operation is idempotent.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;

use super::{BuildCache, CommitHash, ContainerId, ImageName, ImageSize, ServiceName, StepError};
use crate::{
    applications::{
        BasePath, Branch, DockerfilePath, GitCredentials, GitUrl, HealthCheckPath, ImageRef, Port,
        RunCommand, Variables,
    },
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId, OrganizationId},
    secret::Secret,
};

/// The owner of an object that a deployment created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The organization.
    pub organization: OrganizationId,
    /// The application.
    pub application: ApplicationId,
    /// The deployment.
    pub deployment: DeploymentId,
    /// The number of the attempt.
    pub attempt: i32,
}

/// Receives the output of a program in chunks. Nothing is dropped: a call returns when there is room again.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Output: Send + Sync {
    /// Writes the next chunk.
    async fn write(&self, piece: &[u8]);
}

/// A git repository with its credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSource {
    /// The address of the repository.
    pub url: GitUrl,
    /// The branch.
    pub branch: Branch,
    /// The credentials for HTTP.
    pub credentials: Option<GitCredentials>,
    /// The private key for ssh, in OpenSSH's format.
    pub key: Option<Secret<String>>,
}

/// A folder with the files of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The path of the folder.
    pub root: PathBuf,
}

/// Fetches source code.
///
/// Promises: only what the operator's policy allows is connected to, and the address that was checked is
/// the one that is connected to; git never prompts; no hook, filter or submodule of a repository runs; a
/// repository that is too large or too slow is refused with a sentence that says so; no credential reaches
/// a command line, a file that others can read, or an error.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SourceFetcher: Send + Sync {
    /// Returns the commit at the head of the branch.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if the repository or the branch does not exist or denies access,
    /// [`StepError::Retryable`] for an error of this machine.
    async fn head(&self, source: &GitSource) -> Result<CommitHash, StepError>;

    /// Checks out the files of `commit` into a fresh folder of `owner`.
    ///
    /// # Errors
    /// As [`head`](SourceFetcher::head), and [`StepError::Rejected`] for a tree over the limits.
    async fn fetch(
        &self,
        source: &GitSource,
        commit: &CommitHash,
        owner: &Owner,
        output: Arc<dyn Output>,
    ) -> Result<Checkout, StepError>;

    /// Removes the folders of every attempt at `deployment`.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn discard(&self, deployment: DeploymentId) -> Result<(), StepError>;
}

/// The input of an image build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildPlan {
    /// The owner of the image.
    pub owner: Owner,
    /// The checkout to build from.
    pub checkout: Checkout,
    /// The folder in the checkout.
    pub base_path: BasePath,
    /// The Dockerfile.
    pub dockerfile: DockerfilePath,
    /// The build arguments.
    pub variables: Variables,
    /// The use of cached steps.
    pub cache: BuildCache,
}

/// Generates Dockerfiles for source that has none.
///
/// Promises: nothing that the repository includes is run; no link of the repository is followed out of the
/// checkout; no value of a variable is in a command line, or stays in the checkout.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait BuildPlanner: Send + Sync {
    /// Writes a Dockerfile into the checkout. Returns `plan` with it, and with the variables that it needs
    /// beside the plan's own.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if the kind of project is not recognised, or if the planner is not installed;
    /// [`StepError::Retryable`] for an error of this machine.
    async fn complete(&self, plan: &BuildPlan, output: Arc<dyn Output>) -> Result<BuildPlan, StepError>;
}

/// Builds and pulls images.
///
/// Promises: no byte from outside the checkout gets into an image, the log or an error, whatever links the
/// repository holds; a build ends within its limits of time and, where the engine can, of memory; each line
/// is written to the output as it appears.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ImageBuilder: Send + Sync {
    /// Builds an image and tags it with its deployment's name.
    ///
    /// # Errors
    /// [`StepError::Rejected`] when the Dockerfile is missing or fails, [`StepError::Retryable`] when the engine
    /// is not there.
    async fn build(&self, plan: &BuildPlan, output: Arc<dyn Output>) -> Result<ImageName, StepError>;

    /// Pulls a prebuilt image, or uses the local one if the registry cannot be asked, and tags it with its
    /// deployment's name.
    ///
    /// # Errors
    /// [`StepError::Rejected`] when there is no such image, [`StepError::Retryable`] when the engine is not
    /// there.
    async fn obtain(
        &self,
        owner: &Owner,
        image: &ImageRef,
        output: Arc<dyn Output>,
    ) -> Result<ImageName, StepError>;

    /// Tags the image of an earlier deployment with the name of this one.
    ///
    /// # Errors
    /// [`StepError::Rejected`] when the image is gone, [`StepError::Retryable`] when the engine is not there.
    async fn reuse(&self, owner: &Owner, image: &ImageName) -> Result<ImageName, StepError>;
}

/// The configuration of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerPlan {
    /// The owner of the container.
    pub owner: Owner,
    /// The image that it runs.
    pub image: ImageName,
    /// The environment variables. Every value arrives byte for byte.
    pub environment: Variables,
    /// The port that it should listen on.
    pub port: Port,
    /// Addresses that it may not get, because routes use them.
    pub reserved: Vec<IpAddr>,
    /// The number of the copy among those of its attempt, from 1.
    pub copy: u16,
}

/// A container that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The engine's id of it.
    pub id: ContainerId,
    /// Its name.
    pub name: String,
    /// The address at which it is reached.
    pub address: IpAddr,
    /// The port at which it is reached; `None` if it is the one of its plan.
    pub port: Option<Port>,
}

impl Container {
    /// Returns the address and port at which it is reached, if its plan has the port `planned`.
    #[must_use]
    pub fn endpoint(&self, planned: Port) -> SocketAddr {
        SocketAddr::new(self.address, self.port.unwrap_or(planned).get())
    }
}

/// The state of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It is running.
    Running {
        /// The address at which it is reached.
        address: IpAddr,
        /// The number of times that the engine had to restart it.
        restarts: u32,
    },
    /// It is running, but in none of its networks.
    Detached,
    /// It is running, and its processes are frozen.
    Paused,
    /// It was created, and never started.
    Created,
    /// It exited, and the engine is about to restart it.
    Restarting(Exit),
    /// It exited, and the engine does not restart it.
    Exited(Exit),
    /// It does not exist.
    Gone,
}

/// The exit of a container's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The exit code.
    pub code: i32,
    /// True if it was killed because it exceeded its memory limit.
    pub out_of_memory: bool,
    /// The number of times that the engine had to restart the container.
    pub restarts: u32,
}

/// Runs containers.
///
/// Promises: a container is in the network of its organization and reaches no other organization's; it has
/// limits of memory, processes and log size, and cannot gain privileges; the engine does not restart it
/// until its restart policy is [enabled](Deployer::enable_restart_policy). Operations on the container of a
/// [composition](super::Composer) that gets the traffic apply to all its services: they are started in the
/// order of their dependencies, and stopped in the reverse order.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Deployer: Send + Sync {
    /// Starts a container beside whatever else runs. An existing one of the same attempt and copy is replaced.
    /// The first copy is started before the others, and replaces all of its attempt.
    ///
    /// # Errors
    /// [`StepError::Rejected`] when the image cannot be run, [`StepError::Retryable`] when the engine is not
    /// there.
    async fn start(&self, plan: &ContainerPlan) -> Result<Container, StepError>;

    /// Runs `command` by `/bin/sh -c` in a container of its own, in the same network and with the same
    /// environment, and waits until it exits.
    ///
    /// # Errors
    /// [`StepError::Rejected`] when it fails or takes too long, [`StepError::Retryable`] when the engine is not
    /// there.
    async fn run_once(
        &self,
        plan: &ContainerPlan,
        command: &RunCommand,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError>;

    /// Enables the restart policy: the engine restarts the container whenever it exits, and after a reboot.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the engine is unreachable or the container is gone.
    async fn enable_restart_policy(&self, container: &ContainerId) -> Result<(), StepError>;

    /// Returns the state of the container.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the engine is unreachable.
    async fn condition(&self, container: &ContainerId) -> Result<Condition, StepError>;

    /// Resumes a container that is paused, exited or never started, with the services that it needs;
    /// running ones stay as they are.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if it does not exist, or cannot be resumed as it is,
    /// [`StepError::Unavailable`] or [`StepError::Retryable`] if the engine is unreachable.
    async fn resume(&self, container: &ContainerId) -> Result<Container, StepError>;

    /// Starts a stopped container, or restarts a running one.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if it does not exist or cannot be started, [`StepError::Retryable`] if the engine
    /// is unreachable.
    async fn restart(&self, container: &ContainerId) -> Result<Container, StepError>;

    /// Stops the container: asks its program to exit, waits, and kills it. The container is kept and not
    /// restarted.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the engine is unreachable.
    async fn stop(&self, container: &ContainerId) -> Result<(), StepError>;

    /// Stops and removes every container of `deployment`, of whichever attempt, and the network of its
    /// composition. Named volumes are kept.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the engine is unreachable.
    async fn remove(&self, deployment: DeploymentId) -> Result<(), StepError>;

    /// Stops and removes every container of one attempt, and the network of its composition. Named volumes
    /// are kept.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] or [`StepError::Retryable`] if the engine is unreachable.
    async fn remove_attempt(&self, owner: &Owner) -> Result<(), StepError>;
}

/// A resource of a deployment that was discovered on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredResource {
    /// The owner.
    pub owner: Owner,
    /// The resource.
    pub what: DiscoveredObject,
}

/// An object of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiscoveredObject {
    /// A container.
    Container {
        /// The id of the container.
        id: ContainerId,
        /// Its state.
        condition: Condition,
        /// When it was created.
        created_at: Timestamp,
        /// The port that it was started for; `None` for one of a composition or of an earlier release.
        port: Option<Port>,
        /// The service of a composition that it runs; `None` for a single container.
        service: Option<ServiceName>,
        /// True if it should run as long as its version does: false for a service that has completed, or
        /// that its file does not restart.
        stays_up: bool,
    },
    /// The image of a deployment, under one of its names.
    Image {
        /// The name.
        name: ImageName,
        /// The image.
        size: ImageSize,
    },
    /// The network of a composition, by its name.
    Network(String),
}

/// A line that a container printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedLine {
    /// When it was printed.
    pub at: Timestamp,
    /// The bytes of the line.
    pub text: Vec<u8>,
}

/// Lists the objects of this installation on the engine, and no others.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait EngineInventory: Send + Sync {
    /// Returns everything that is labelled as this installation's.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the engine is unreachable.
    async fn everything(&self) -> Result<Vec<DiscoveredResource>, StepError>;

    /// Returns the containers among that; cheaper, for frequent calls.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the engine is unreachable.
    async fn containers(&self) -> Result<Vec<DiscoveredResource>, StepError>;

    /// Returns the images that have a name of the deployment of `owner`, each once.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] or [`StepError::Retryable`] if the engine is unreachable.
    async fn images_of(&self, owner: &Owner) -> Result<Vec<ImageSize>, StepError>;

    /// Removes one object.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the engine is unreachable or refuses.
    async fn remove(&self, found: &DiscoveredResource) -> Result<(), StepError>;

    /// Returns the lines that a container printed after `since` (from its beginning if `None`), oldest
    /// first, at most `limit`. A container that does not exist printed nothing.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the engine is unreachable.
    async fn printed(
        &self,
        container: &ContainerId,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<PrintedLine>, StepError>;

    /// Returns the last lines that a container printed, at most `lines`.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the engine is unreachable.
    async fn tail_logs(&self, container: &ContainerId, lines: usize) -> Result<Vec<PrintedLine>, StepError>;

    /// Waits until something has happened to a container of this installation, or until the timeout
    /// `max_wait`; returns whether something has. Events in quick succession are reported together.
    async fn wait_for_events(&self, max_wait: Duration) -> bool;
}

/// The target of a health check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeTarget {
    /// The address that the container listens on.
    pub address: SocketAddr,
    /// The path of the HTTP check; without, an open port is enough.
    pub path: Option<HealthCheckPath>,
}

/// Performs health checks.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait HealthProbe: Send + Sync {
    /// Checks once whether the container works.
    ///
    /// # Errors
    /// A sentence that describes the response.
    async fn probe(&self, target: &ProbeTarget) -> Result<(), String>;
}

/// Stores published sites, one release for each deployment.
///
/// Promises: a release is published completely or not at all, and every server of the installation has it; no link in it
/// points outside it.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SiteStore: Send + Sync {
    /// Publishes a folder of a checkout as the release of its deployment.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if there is no such folder or a link points outside it, [`StepError::Retryable`]
    /// on a file system error.
    async fn publish(
        &self,
        owner: &Owner,
        checkout: &Checkout,
        folder: &BasePath,
    ) -> Result<PathBuf, StepError>;

    /// Returns the release of a deployment, if there is one. One that only another server has is fetched first; the fetch
    /// goes on if the call is dropped, because other calls may wait for it.
    ///
    /// # Errors
    /// [`StepError::Retryable`] or [`StepError::Failed`] if it cannot be fetched.
    async fn release(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
    ) -> Result<Option<PathBuf>, StepError>;

    /// Returns every release that this server or the installation has, by its application and deployment.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn releases(&self) -> Result<Vec<(ApplicationId, DeploymentId)>, StepError>;

    /// Removes one release.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn withdraw(&self, application: ApplicationId, deployment: DeploymentId) -> Result<(), StepError>;

    /// Removes the releases of an application.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn remove(&self, application: ApplicationId) -> Result<(), StepError>;
}
