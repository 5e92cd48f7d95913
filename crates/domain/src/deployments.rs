//! Deployments: bringing a version of an application to life.

mod composition;
mod deployment;
mod ports;
mod state;

use std::net::IpAddr;

use async_trait::async_trait;

#[cfg(feature = "mock")]
pub use self::composition::MockComposer;
#[cfg(feature = "mock")]
pub use self::ports::{
    MockBuildPlanner, MockDeployer, MockEngineInventory, MockHealthProbe, MockImageBuilder, MockOutput,
    MockSiteStore, MockSourceFetcher,
};
pub use self::{
    composition::{Companion, ComposeSource, Composer, Composition, CompositionPlan},
    deployment::{
        CommitHash, ContainerId, ContainerRecord, ContainerState, Deployment, DeploymentKind,
        DeploymentStatus, ImageName, ServiceName,
    },
    ports::{
        BuildPlan, BuildPlanner, Checkout, Condition, Container, ContainerPlan, Deployer, EngineInventory,
        Exit, Found, FoundObject, GitSource, HealthProbe, ImageBuilder, Output, Owner, PrintedLine,
        ProbeTarget, SiteStore, SourceFetcher, StepError,
    },
    state::{DeploymentState, IllegalMove},
};
use crate::{
    applications::{Application, ApplicationSummary},
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId},
    logs::LogLine,
    organizations::Scope,
    page::{Page, PageRequest},
    store::{self, StoreError},
};

/// A deployment with everything around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentDetail {
    /// The deployment.
    pub deployment: Deployment,
    /// Of what, and whose.
    pub application: ApplicationSummary,
    /// The newest lines of its log, at most [`DeploymentDetail::LOGS`], oldest first.
    pub logs: Vec<LogLine>,
}

impl DeploymentDetail {
    /// How many log lines are shown with a deployment.
    pub const LOGS: i64 = 1000;
}

/// A version that serves, or would if its application were not stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveVersion {
    /// Of what.
    pub application: Application,
    /// Which.
    pub deployment: Deployment,
}

/// What is left on a machine of a deployment, and what the records say about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Which deployment.
    pub deployment: DeploymentId,
    /// Whether its version is the live one of an application that is there.
    pub is_live: bool,
    /// Whether it waits or a worker is at it.
    pub is_open: bool,
    /// Whether what it made may be wanted again: its version is live or one of the newest that were deployed, or such a
    /// version, or one that is about to be, goes back to it; and its application is there.
    pub is_worth_keeping: bool,
}

/// How many versions of an application are kept, so that they can be gone back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptVersions(pub u16);

impl Default for KeptVersions {
    fn default() -> Self {
        Self(10)
    }
}

/// Reads deployments. Every method sees what `commit` last made durable, and no deployment of a
/// deleted application unless it says so.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DeploymentRepository: Send + Sync {
    /// A page of an application's deployments, newest first, ties by id; empty when the
    /// organization has no such application.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn page(
        &self,
        scope: Scope,
        application: ApplicationId,
        page: PageRequest,
    ) -> Result<Page<Deployment>, StoreError>;

    /// One deployment; `None` when the organization has none with that id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn get(&self, scope: Scope, id: DeploymentId) -> Result<Option<Deployment>, StoreError>;

    /// Those of `ids` that the organization has, in no order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn many(&self, scope: Scope, ids: &[DeploymentId]) -> Result<Vec<Deployment>, StoreError>;

    /// One deployment with everything around it, in a bounded number of queries.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn detail(&self, scope: Scope, id: DeploymentId) -> Result<Option<DeploymentDetail>, StoreError>;

    /// Every live version of the installation, for who keeps them up.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn live(&self) -> Result<Vec<LiveVersion>, StoreError>;

    /// The deployments of the installation whose version was live once, is not any more, and whose
    /// container is not recorded as removed: their retirement was interrupted, or goes on.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn unretired(&self) -> Result<Vec<Deployment>, StoreError>;

    /// The addresses that routes name, in the whole installation: those that the containers of live
    /// versions, and of extensions, are recorded with.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn live_addresses(&self) -> Result<Vec<IpAddr>, StoreError>;

    /// What the records say about `deployments`, those of deleted applications included. One that
    /// is unknown is left out.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn standing(
        &self,
        deployments: &[DeploymentId],
        kept: KeptVersions,
    ) -> Result<Vec<Standing>, StoreError>;
}

/// What is new about a deployment. What is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Where it is now.
    pub state: Option<DeploymentState>,
    /// What it is made of.
    pub commit: Option<CommitHash>,
    /// What it runs.
    pub image: Option<ImageName>,
    /// What runs it.
    pub container: Option<ContainerRecord>,
}

/// Changes to deployments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A new one. Its application, unless a version of it runs, is
    /// [queued](crate::applications::Progress::Queued). `Stale` when the application is gone.
    Insert(Deployment),
    /// A deployment goes on. Its application's state follows unless a version of it runs. `Stale`
    /// when it is not in a state that [may move](DeploymentState::advance) there, or is unknown.
    Advance {
        /// Which.
        id: DeploymentId,
        /// What is new.
        progress: Progress,
        /// When.
        at: Timestamp,
    },
    /// Its version is the live one from now on, its application
    /// [runs](crate::applications::ApplicationState::Running) and is not stopped any more. `Stale`
    /// when it is not [deploying](DeploymentState::Deploying) or its application is gone.
    GoLive {
        /// Which.
        id: DeploymentId,
        /// When.
        at: Timestamp,
    },
    /// Another state of a container that was recorded. Changes nothing when the deployment has
    /// another container now.
    RecordContainer {
        /// Which.
        id: DeploymentId,
        /// How its container is.
        container: ContainerRecord,
        /// When.
        at: Timestamp,
    },
    /// The live version runs in another container from now on. `Stale` when the deployment is not the
    /// live one of its application.
    ReplaceContainer {
        /// The deployment.
        id: DeploymentId,
        /// The container that runs it from now on.
        container: ContainerRecord,
        /// When.
        at: Timestamp,
    },
    /// Deployments whose job went its own way follow it: they wait again when it does, are
    /// cancelled when it was or a newer one took its place (with a line in the log that says so),
    /// and fail when it did (with its reason in the log). One whose version is live only goes forward:
    /// it does not wait again, and is deployed when its job is over. Their applications' states
    /// follow.
    FollowJobs {
        /// Those of one application, or of all.
        application: Option<ApplicationId>,
        /// When.
        at: Timestamp,
    },
}

impl Write {
    /// Whether the trail has to tell of it. It tells of the wish and of the end, which carry an
    /// entry of their own.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        matches!(self, Self::Insert(_))
    }
}

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::Deployment(write)
    }
}
