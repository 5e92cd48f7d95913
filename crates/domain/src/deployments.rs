//! Deployments: building and starting a version of an application.

mod composition;
mod deployment;
mod end;
mod image_records;
mod image_registry;
mod ports;
mod site_archives;
mod state;
mod step_error;

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;

#[cfg(feature = "mock")]
pub use self::composition::{MockComposer, MockCompositionRepository};
#[cfg(feature = "mock")]
pub use self::image_records::MockImageRecords;
#[cfg(feature = "mock")]
pub use self::image_registry::{MockApplicationChanges, MockImageRegistry};
#[cfg(feature = "mock")]
pub use self::ports::{
    MockBuildPlanner, MockDeployer, MockEngineInventory, MockHealthProbe, MockImageBuilder, MockOutput,
    MockSiteStore, MockSourceFetcher,
};
#[cfg(feature = "mock")]
pub use self::site_archives::MockSiteArchives;
pub use self::{
    composition::{ComposeSource, Composer, Composition, CompositionPlan, CompositionRepository, Sidecar},
    deployment::{
        BuildCache, CommitHash, ContainerId, ContainerRecord, ContainerState, Deployment, DeploymentKind,
        DeploymentStatus, ImageDigest, ImageName, ServiceName, SourceDigest,
    },
    end::EndCause,
    image_records::{EngineImageId, ImageRecord, ImageRecords, ImageSize},
    image_registry::{ApplicationChanges, ImageDeletion, ImageRegistry},
    ports::{
        BuildPlan, BuildPlanner, Checkout, Condition, Container, ContainerPlan, Deployer, DiscoveredObject,
        DiscoveredResource, EngineInventory, Exit, GitSource, HealthProbe, ImageBuilder, Output, Owner,
        PrintedLine, ProbeTarget, SiteStore, SourceFetcher,
    },
    site_archives::{ArchiveState, SiteArchive, SiteArchives},
    state::{DeploymentState, IllegalMove},
    step_error::StepError,
};
use crate::{
    applications::{Application, ApplicationSummary},
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId},
    logs::LogLine,
    organizations::Scope,
    page::{Page, PageRequest},
    store_error::StoreError,
};

/// A deployment with its application and log lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentDetail {
    /// The deployment.
    pub deployment: Deployment,
    /// The application, with its organization and creator.
    pub application: ApplicationSummary,
    /// The newest lines of its log, at most [`DeploymentDetail::LOGS`], oldest first.
    pub logs: Vec<LogLine>,
}

impl DeploymentDetail {
    /// The maximum number of log lines shown with a deployment.
    pub const LOGS: i64 = 1000;
}

/// A version that serves, or would if its application were not stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveVersion {
    /// The application.
    pub application: Application,
    /// The deployment of the version.
    pub deployment: Deployment,
}

/// The retention status of a deployment, for resources of it that are found on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionStatus {
    /// The id of the deployment.
    pub deployment: DeploymentId,
    /// True if its version is the live one of an existing application.
    pub is_live: bool,
    /// True if it is queued or a worker runs it.
    pub is_open: bool,
    /// True if its artifacts may be needed again: its version is live or one of the newest that were
    /// deployed, or such a version, or one that is about to be, rolls back to it; and its application
    /// exists.
    pub is_worth_keeping: bool,
}

/// The number of versions of an application that are kept for rollbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptVersions(pub u16);

impl Default for KeptVersions {
    fn default() -> Self {
        Self(10)
    }
}

/// Reads deployments. Every method sees what `commit` last made durable, and no deployment of a deleted
/// application unless stated otherwise.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DeploymentRepository: Send + Sync {
    /// Returns a page of an application's deployments, newest first, ties by id; empty when the
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

    /// Returns one deployment; `None` if the organization has none with that id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn get(&self, scope: Scope, id: DeploymentId) -> Result<Option<Deployment>, StoreError>;

    /// Returns those of `ids` that the organization has, in no order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn many(&self, scope: Scope, ids: &[DeploymentId]) -> Result<Vec<Deployment>, StoreError>;

    /// Returns the newest deployment of each of `applications` that the organization has, in no order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn newest(
        &self,
        scope: Scope,
        applications: &[ApplicationId],
    ) -> Result<Vec<Deployment>, StoreError>;

    /// Returns one deployment with its details, in a bounded number of queries.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn detail(&self, scope: Scope, id: DeploymentId) -> Result<Option<DeploymentDetail>, StoreError>;

    /// Returns every live version of the installation, for supervision. Calls without a change in between may
    /// share one result.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn live(&self) -> Result<Arc<[LiveVersion]>, StoreError>;

    /// Returns the deployments of the installation whose version was live once, is not any more, and whose
    /// container is not recorded as removed: their retirement was interrupted, or is still running.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn unretired(&self) -> Result<Vec<Deployment>, StoreError>;

    /// Returns the addresses that routes use, in the whole installation: those recorded for the containers
    /// of live versions and of extensions.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn live_addresses(&self) -> Result<Vec<IpAddr>, StoreError>;

    /// Returns the retention status of `deployments`, those of deleted applications included. An unknown
    /// one is left out.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn retention_status(
        &self,
        deployments: &[DeploymentId],
        kept: KeptVersions,
    ) -> Result<Vec<RetentionStatus>, StoreError>;
}

/// An update of a deployment. Absent values stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The new state.
    pub state: Option<DeploymentState>,
    /// The commit that it is built from.
    pub commit: Option<CommitHash>,
    /// The image that it runs.
    pub image: Option<ImageName>,
    /// The container that runs it; the first of several copies.
    pub container: Option<ContainerRecord>,
    /// The containers of its copies after the first one, if there is a `container`.
    pub further_copies: Vec<ContainerRecord>,
}

/// Changes to deployments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Inserts a deployment. Its application, unless a version of it runs, becomes
    /// [queued](crate::applications::Progress::Queued). `Stale` if the application is gone.
    Insert(Deployment),
    /// Advances a deployment. Its application's state follows unless a version of it runs. `Stale` if its
    /// state [may not move](DeploymentState::advance) there, or if it is unknown.
    Advance {
        /// The id of the deployment.
        id: DeploymentId,
        /// The update.
        progress: Progress,
        /// The time of the change.
        at: Timestamp,
    },
    /// Makes its version the live one. Its application
    /// [runs](crate::applications::ApplicationState::Running) and is not stopped any more. `Stale` if it is
    /// not [deploying](DeploymentState::Deploying) or its application is gone.
    GoLive {
        /// The id of the deployment.
        id: DeploymentId,
        /// The time of the change.
        at: Timestamp,
    },
    /// Records another state of a recorded container, of whichever copy. Changes nothing if the deployment
    /// has other containers now.
    RecordContainer {
        /// The id of the deployment.
        id: DeploymentId,
        /// The container with its new state.
        container: ContainerRecord,
        /// The time of the change.
        at: Timestamp,
    },
    /// Replaces the containers of the live version. `Stale` if the deployment is not the live one of its
    /// application.
    ReplaceContainer {
        /// The deployment.
        id: DeploymentId,
        /// The new container; the first of several copies.
        container: ContainerRecord,
        /// The containers of the copies after the first one.
        further_copies: Vec<ContainerRecord>,
        /// The time of the change.
        at: Timestamp,
    },
    /// Reconciles deployments with their jobs: they are queued again if the job is, cancelled if it was
    /// cancelled or superseded by a newer one (with a line in the log), and failed if it failed (with its
    /// reason in the log). One whose version is live only moves forward: it is not queued again, and is
    /// deployed when its job has finished. The states of their applications follow.
    FollowJobs {
        /// The application whose deployments to reconcile; all if `None`.
        application: Option<ApplicationId>,
        /// The time of the change.
        at: Timestamp,
    },
}

impl Write {
    /// Returns whether the change requires an entry in the audit log. The request and the outcome carry an
    /// entry of their own.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        matches!(self, Self::Insert(_))
    }
}
