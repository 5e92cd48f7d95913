//! Inbound webhooks: what code hosts report about pushes and requests, and the authentication of it.

mod change;
mod code_host;
mod delivery;
mod pull_request;
mod repository;
mod secret;

use async_trait::async_trait;

pub use self::{
    change::{Change, Push},
    code_host::CodeHost,
    delivery::{Delivery, DeliveryId, DeliveryMark},
    pull_request::{HeadCommit, PullRequest, RequestEvent, RequestNumber},
    repository::RepositoryKey,
    secret::{KeptSecret, WebhookSecret},
};
use crate::{
    applications::{Application, Branch, GitUrl},
    clock::Timestamp,
    deployments::CommitHash,
    ids::ApplicationId,
    organizations::Scope,
    store_error::StoreError,
};

/// The head commit of a branch, which an application that follows the branch may have missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchHead {
    /// The application.
    pub application: ApplicationId,
    /// The repository.
    pub repository: GitUrl,
    /// The branch.
    pub branch: Branch,
    /// The commit.
    pub commit: CommitHash,
}

/// Reads webhooks. Every method sees what `commit` last made durable, and nothing of deleted
/// applications and organizations.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait WebhookRepository: Send + Sync {
    /// Returns the current secret for the code host, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn secret(
        &self,
        scope: Scope,
        repository: &RepositoryKey,
    ) -> Result<Option<KeptSecret>, StoreError>;

    /// Returns every secret of one of `repositories` that is valid at `now`, of all organizations.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn secrets(
        &self,
        repositories: &[RepositoryKey],
        now: Timestamp,
    ) -> Result<Vec<KeptSecret>, StoreError>;

    /// Returns the organization's applications from `repository`, in the order of their ids.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn applications_of(
        &self,
        scope: Scope,
        repository: &RepositoryKey,
    ) -> Result<Vec<Application>, StoreError>;

    /// Returns those of `applications` for which such a delivery was accepted after `since`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn taken(
        &self,
        applications: &[ApplicationId],
        mark: &DeliveryMark,
        since: Timestamp,
    ) -> Result<Vec<ApplicationId>, StoreError>;
}

/// Reads the branches that applications follow, for work without a caller.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait FollowedBranches: Send + Sync {
    /// Returns every application with auto-deploy from a repository of which a push was
    /// [verified](Write::Confirm), in the order of their ids.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn followers(&self) -> Result<Vec<Application>, StoreError>;

    /// Returns whether [`Write::RequireMissed`] would succeed.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn is_missed(&self, head: &BranchHead) -> Result<bool, StoreError>;
}

/// Deletes old records of webhooks. It writes nothing but the tables of webhooks.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DeliveryMemory: Send + Sync {
    /// Deletes deliveries that were accepted before `deliveries`, and secrets that were valid only before
    /// `secrets`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forget(&self, deliveries: Timestamp, secrets: Timestamp) -> Result<(), StoreError>;
}

/// Changes to webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Inserts the first secret of a repository. `Stale` if it has one, or the organization is gone.
    FirstSecret(KeptSecret),
    /// Replaces the secret of a repository. The previous one stays valid until `until`, and those before
    /// that as long as they were, except for the oldest if there are more than
    /// [allowed](KeptSecret::MOST_REPLACED). `Stale` if the organization is gone.
    ReplaceSecret {
        /// The new secret.
        secret: KeptSecret,
        /// When the previous secret expires.
        until: Timestamp,
    },
    /// Records that a push of the repository was verified: the webhook is set up. Changes nothing if it was
    /// before.
    Confirm {
        /// The organization that it belongs to.
        scope: Scope,
        /// The repository.
        repository: RepositoryKey,
        /// The time of the change.
        at: Timestamp,
    },
    /// Accepts a delivery for an application. `Taken(WebhookDelivery)` if one with the same mark was, after
    /// `since`. Marks by the body of earlier deliveries count no longer.
    Take {
        /// The application.
        application: ApplicationId,
        /// The identity of the delivery.
        mark: DeliveryMark,
        /// Older deliveries do not count.
        since: Timestamp,
        /// The time of the change.
        at: Timestamp,
    },
    /// Records that a commit asks not to be deployed, so that it does not count as missed.
    PassOver {
        /// The application.
        application: ApplicationId,
        /// The commit.
        commit: CommitHash,
        /// The time of the change.
        at: Timestamp,
    },
    /// Changes nothing, but fails unless the commit was missed. `Stale` if the application
    /// - is gone, has no auto-deploy, or follows another branch by now;
    /// - has a deployment of the commit, in whatever state, or one that has not finished;
    /// - was to [pass over](Write::PassOver) the commit;
    /// - was rolled back or stopped since its last fresh deployment, or had that deployment cancelled
    ///   before its commit was known.
    RequireMissed(BranchHead),
}

impl Write {
    /// Returns whether the change requires an entry in the audit log. The result of a push has an entry of
    /// its own.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        matches!(self, Self::FirstSecret(_) | Self::ReplaceSecret { .. })
    }
}
