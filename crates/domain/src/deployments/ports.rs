//! What a deployment is made with: source, images, containers and sites.
//!
//! Promises that all of these ports make:
//! - a call that is dropped ends what it started, processes included;
//! - no value that came from a user becomes part of a command line's options, of a shell's text or
//!   of a path outside its folder;
//! - whatever is made is marked with its [`Owner`], so that what no record accounts for is found;
//! - doing a thing a second time is no error.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;

use super::{CommitHash, ContainerId, ImageName, ServiceName};
use crate::{
    applications::{
        BasePath, Branch, DockerfilePath, GitCredentials, GitUrl, HealthCheckPath, ImageRef, Port,
        RunCommand, Variables,
    },
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId, OrganizationId},
    secret::Secret,
};

/// Whose something is that a deployment made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The organization.
    pub organization: OrganizationId,
    /// The application.
    pub application: ApplicationId,
    /// The deployment.
    pub deployment: DeploymentId,
    /// The attempt at it.
    pub attempt: i32,
}

/// Why a step did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The engine does not answer. Nothing is wrong with what was asked for: it is done once the
    /// engine is back.
    #[error("{0}")]
    Unavailable(String),
    /// A fault of this machine: trying again may help.
    #[error("{0}")]
    Fault(String),
    /// What was asked for cannot work. The sentence is for a person, and holds no secret.
    #[error("{0}")]
    Refused(String),
}

/// Takes what a program prints, in pieces as they come. Nothing is dropped: a call returns when
/// there is room again.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Output: Send + Sync {
    /// The next piece.
    async fn write(&self, piece: &[u8]);
}

/// A git repository and how to get in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSource {
    /// Where it is.
    pub url: GitUrl,
    /// Which branch.
    pub branch: Branch,
    /// What it wants to see over HTTP.
    pub credentials: Option<GitCredentials>,
    /// The private key for ssh, in OpenSSH's format.
    pub key: Option<Secret<String>>,
}

/// A folder with the files of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// Where.
    pub root: PathBuf,
}

/// Brings source code here.
///
/// Promises: only what the operator's policy allows is connected to, and what was checked is what
/// is connected to; nobody is ever asked anything; no hook, filter or submodule of a repository
/// runs; a repository that is too large or too slow is refused with a sentence that says so; no
/// credential reaches a command line, a file that others can read, or an error.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SourceFetcher: Send + Sync {
    /// The commit that the branch is at now.
    ///
    /// # Errors
    /// [`StepError::Refused`] when the repository or the branch is not there or does not let us
    /// in, [`StepError::Fault`] when this machine is at fault.
    async fn head(&self, source: &GitSource) -> Result<CommitHash, StepError>;

    /// Puts the files of `commit` into a fresh folder of `owner`.
    ///
    /// # Errors
    /// As [`head`](SourceFetcher::head), and [`StepError::Refused`] for a tree over the limits.
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
    /// [`StepError::Fault`] when the file system refuses.
    async fn discard(&self, deployment: DeploymentId) -> Result<(), StepError>;
}

/// An image that is to be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildPlan {
    /// For whom.
    pub owner: Owner,
    /// From which files.
    pub checkout: Checkout,
    /// From which folder of them.
    pub base_path: BasePath,
    /// By which Dockerfile.
    pub dockerfile: DockerfilePath,
    /// With which arguments.
    pub variables: Variables,
}

/// Finds out how to build source that has no Dockerfile.
///
/// Promises: nothing that the repository brings along is run; no link of the repository is followed
/// out of the checkout; no value of a variable is in a command line, or stays in the checkout.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait BuildPlanner: Send + Sync {
    /// Puts a Dockerfile into the checkout; gives `plan` with it, and with what it has to be told
    /// beside the plan's own variables.
    ///
    /// # Errors
    /// [`StepError::Refused`] when it is not recognised what this is, or when the planner is not
    /// there; [`StepError::Fault`] when this machine is at fault.
    async fn complete(&self, plan: &BuildPlan, output: Arc<dyn Output>) -> Result<BuildPlan, StepError>;
}

/// Makes images.
///
/// Promises: no byte from outside the checkout gets into an image, the log or an error, whatever
/// links the repository holds; a build ends within its limits of time and, where the engine can,
/// of memory; each line is given to the output as it appears.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ImageBuilder: Send + Sync {
    /// Builds an image and gives it its deployment's name.
    ///
    /// # Errors
    /// [`StepError::Refused`] when the Dockerfile is missing or fails, [`StepError::Fault`] when
    /// the engine is not there.
    async fn build(&self, plan: &BuildPlan, output: Arc<dyn Output>) -> Result<ImageName, StepError>;

    /// Gets a prebuilt image, from the registry or, when that cannot be asked, as it is here, and
    /// gives it its deployment's name.
    ///
    /// # Errors
    /// [`StepError::Refused`] when there is no such image, [`StepError::Fault`] when the engine is
    /// not there.
    async fn obtain(
        &self,
        owner: &Owner,
        image: &ImageRef,
        output: Arc<dyn Output>,
    ) -> Result<ImageName, StepError>;

    /// Gives the image of an earlier deployment the name of this one too.
    ///
    /// # Errors
    /// [`StepError::Refused`] when the image is gone, [`StepError::Fault`] when the engine is not
    /// there.
    async fn reuse(&self, owner: &Owner, image: &ImageName) -> Result<ImageName, StepError>;
}

/// A container that is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerPlan {
    /// For whom.
    pub owner: Owner,
    /// From which image.
    pub image: ImageName,
    /// With which environment. Every value arrives byte for byte.
    pub environment: Variables,
    /// Where it is to listen.
    pub port: Port,
    /// Addresses that it must not get, because routes name them.
    pub reserved: Vec<IpAddr>,
}

/// A container that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The engine's id of it.
    pub id: ContainerId,
    /// Its name.
    pub name: String,
    /// Where it is reached.
    pub address: IpAddr,
}

/// The state of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It is up.
    Running {
        /// Where it is reached.
        address: IpAddr,
        /// How often the engine had to start it again.
        restarts: u32,
    },
    /// It is up, but in none of its networks.
    Detached,
    /// It is up, and its processes are frozen.
    Paused,
    /// It was made, and never started.
    Created,
    /// It ended, and the engine is about to start it again.
    Restarting(Exit),
    /// It ended, and the engine leaves it so.
    Exited(Exit),
    /// There is none.
    Gone,
}

/// The end of a container's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The exit code.
    pub code: i32,
    /// True if it was ended because it used more memory than it may.
    pub out_of_memory: bool,
    /// The number of times that the engine had to start the container again.
    pub restarts: u32,
}

/// Runs containers.
///
/// Promises: a container is in the network of its organization and reaches no other
/// organization's; it has limits of memory, processes and log size, and cannot gain privileges; it
/// is not started again by the engine until it is [kept](Deployer::keep). What is done to the
/// container of a [composition](super::Composer) that gets the traffic is done to all its services:
/// they are kept and started in the order of their dependencies, and stopped against it.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Deployer: Send + Sync {
    /// Starts a container beside whatever else runs. One of the same attempt that is there already
    /// is replaced.
    ///
    /// # Errors
    /// [`StepError::Refused`] when the image cannot be run, [`StepError::Fault`] when the engine is
    /// not there.
    async fn start(&self, plan: &ContainerPlan) -> Result<Container, StepError>;

    /// Runs `command` by `/bin/sh -c` in a container of its own, in the same network and with the
    /// same environment, to its end.
    ///
    /// # Errors
    /// [`StepError::Refused`] when it fails or takes too long, [`StepError::Fault`] when the engine
    /// is not there.
    async fn run_once(
        &self,
        plan: &ContainerPlan,
        command: &RunCommand,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError>;

    /// Lets the engine start the container again whenever it ends, and after a reboot.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the engine is not there or the container is gone.
    async fn keep(&self, container: &ContainerId) -> Result<(), StepError>;

    /// How the container is.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the engine is not there.
    async fn condition(&self, container: &ContainerId) -> Result<Condition, StepError>;

    /// Brings a container up that is paused, ended or was never started, with the services that it
    /// needs; what is up stays as it is.
    ///
    /// # Errors
    /// [`StepError::Refused`] when it is gone, or cannot be brought up as it is,
    /// [`StepError::Unavailable`] or [`StepError::Fault`] when the engine is not there.
    async fn resume(&self, container: &ContainerId) -> Result<Container, StepError>;

    /// True if two containers of one deployment can run beside each other.
    fn can_run_beside(&self) -> bool {
        true
    }

    /// Starts a container that stands still, or starts a running one anew.
    ///
    /// # Errors
    /// [`StepError::Refused`] when it is gone or cannot be started, [`StepError::Fault`] when the
    /// engine is not there.
    async fn restart(&self, container: &ContainerId) -> Result<Container, StepError>;

    /// Asks the container's program to end, waits, and ends it. It stays, and stays still.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the engine is not there.
    async fn stop(&self, container: &ContainerId) -> Result<(), StepError>;

    /// Ends and removes every container of `deployment`, whichever attempt made it, and the network
    /// of its composition. Named volumes stay.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the engine is not there.
    async fn remove(&self, deployment: DeploymentId) -> Result<(), StepError>;

    /// Ends and removes every container that one attempt made, and the network of its composition.
    /// Named volumes stay.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] or [`StepError::Fault`] when the engine is not there.
    async fn remove_attempt(&self, owner: &Owner) -> Result<(), StepError>;
}

/// What of a deployment is found on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Whose.
    pub owner: Owner,
    /// What.
    pub what: FoundObject,
}

/// A thing that the engine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundObject {
    /// A container.
    Container {
        /// Which.
        id: ContainerId,
        /// How it is.
        condition: Condition,
        /// When it was made.
        created_at: Timestamp,
        /// Which service of a composition it is; none for a container that stands alone.
        service: Option<ServiceName>,
        /// True if it is to be up as long as its version is: a service that has done its work, or is
        /// not started again by its file, is not.
        stays_up: bool,
    },
    /// The image of a deployment.
    Image(ImageName),
    /// The network of a composition, by its name.
    Network(String),
}

/// A line that a container printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedLine {
    /// When.
    pub at: Timestamp,
    /// What, as it came.
    pub text: Vec<u8>,
}

/// Looks at what this installation has on the engine, and at nothing else.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait EngineInventory: Send + Sync {
    /// Everything that is marked as this installation's.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the engine is not there.
    async fn everything(&self) -> Result<Vec<Found>, StepError>;

    /// The containers among that, for who asks often.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the engine is not there.
    async fn containers(&self) -> Result<Vec<Found>, StepError>;

    /// Removes one thing.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the engine is not there or refuses.
    async fn remove(&self, found: &Found) -> Result<(), StepError>;

    /// What a container printed after `since` (from its beginning without), oldest first, at most
    /// `limit` lines. One that is gone printed nothing.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the engine is not there.
    async fn printed(
        &self,
        container: &ContainerId,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<PrintedLine>, StepError>;

    /// The last lines that a container printed, at most `lines`.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the engine is not there.
    async fn last_words(&self, container: &ContainerId, lines: usize) -> Result<Vec<PrintedLine>, StepError>;

    /// Returns when something has happened to a container of this installation, or when `patience`
    /// is over; tells whether something has. What happens within a moment is told together.
    async fn wait_for_news(&self, patience: Duration) -> bool;
}

/// What is asked to learn whether a container works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeTarget {
    /// Where the container listens.
    pub address: SocketAddr,
    /// What to ask by HTTP; without, it is enough that somebody listens.
    pub path: Option<HealthCheckPath>,
}

/// Asks a container once whether it works.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait HealthProbe: Send + Sync {
    /// Whether it works now.
    ///
    /// # Errors
    /// A sentence that says what was answered instead.
    async fn probe(&self, target: &ProbeTarget) -> Result<(), String>;
}

/// Keeps published folders, each as it was in one deployment.
///
/// Promises: a release appears whole or not at all; nothing in it leads out of it.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SiteStore: Send + Sync {
    /// Publishes a folder of a checkout as the release of its deployment.
    ///
    /// # Errors
    /// [`StepError::Refused`] when there is no such folder or a link leads out of it,
    /// [`StepError::Fault`] when the file system refuses.
    async fn publish(
        &self,
        owner: &Owner,
        checkout: &Checkout,
        folder: &BasePath,
    ) -> Result<PathBuf, StepError>;

    /// The release of a deployment, if there is one.
    async fn release(&self, application: ApplicationId, deployment: DeploymentId) -> Option<PathBuf>;

    /// Every release that is there, by the application and the deployment that it is of.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the file system refuses.
    async fn releases(&self) -> Result<Vec<(ApplicationId, DeploymentId)>, StepError>;

    /// Removes one release.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the file system refuses.
    async fn withdraw(&self, application: ApplicationId, deployment: DeploymentId) -> Result<(), StepError>;

    /// Removes the releases of an application.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the file system refuses.
    async fn remove(&self, application: ApplicationId) -> Result<(), StepError>;
}
