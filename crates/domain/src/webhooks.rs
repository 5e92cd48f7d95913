//! Webhooks: what code hosts tell of pushes, and how they prove that it was them.

mod change;
mod code_host;
mod delivery;
mod repository;
mod secret;

use async_trait::async_trait;

pub use self::{
    change::{Change, Push},
    code_host::CodeHost,
    delivery::{Delivery, DeliveryId, DeliveryMark},
    repository::RepositoryKey,
    secret::{KeptSecret, WebhookSecret},
};
use crate::{
    applications::{Application, Branch, GitUrl},
    clock::Timestamp,
    deployments::CommitHash,
    ids::ApplicationId,
    organizations::Scope,
    store::{self, StoreError},
};

/// A commit that a branch is at, and that an application which follows the branch may have missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchHead {
    /// Of which application.
    pub application: ApplicationId,
    /// In which repository.
    pub repository: GitUrl,
    /// Which branch.
    pub branch: Branch,
    /// Where it is.
    pub commit: CommitHash,
}

/// Reads webhooks. Every method sees what `commit` last made durable, and nothing of deleted
/// applications and organizations.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait WebhookRepository: Send + Sync {
    /// The secret that the code host is to be told, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn secret(
        &self,
        scope: Scope,
        repository: &RepositoryKey,
    ) -> Result<Option<KeptSecret>, StoreError>;

    /// Every secret of one of `repositories` that is valid at `now`, whoever has it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn secrets(
        &self,
        repositories: &[RepositoryKey],
        now: Timestamp,
    ) -> Result<Vec<KeptSecret>, StoreError>;

    /// The organization's applications from `repository`, in the order of their ids.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn applications_of(
        &self,
        scope: Scope,
        repository: &RepositoryKey,
    ) -> Result<Vec<Application>, StoreError>;

    /// Those of `applications` for which such a delivery was taken after `since`.
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

/// Reads which branches are followed, for no caller.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait FollowedBranches: Send + Sync {
    /// Every application that pushes deploy, from a repository of which a push was
    /// [verified](Write::Confirm), in the order of their ids.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn followers(&self) -> Result<Vec<Application>, StoreError>;

    /// Whether [`Write::RequireMissed`] would hold.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn is_missed(&self, head: &BranchHead) -> Result<bool, StoreError>;
}

/// Forgets what was remembered. It writes nothing but the tables of webhooks.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DeliveryMemory: Send + Sync {
    /// Forgets deliveries that were taken before `deliveries`, and secrets that were valid only
    /// before `secrets`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forget(&self, deliveries: Timestamp, secrets: Timestamp) -> Result<(), StoreError>;
}

/// Changes that webhooks bring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// The first secret of a repository. `Stale` when it has one, or the organization is gone.
    FirstSecret(KeptSecret),
    /// The secret of a repository from now on. The one before stays valid until `until`, and those
    /// before that as long as they were, but for the oldest when there are more than
    /// [enough](KeptSecret::MOST_REPLACED). `Stale` when the organization is gone.
    ReplaceSecret {
        /// The new one.
        secret: KeptSecret,
        /// How long the one before stays valid.
        until: Timestamp,
    },
    /// A push of the repository was verified: the code host knows the way. Changes nothing when it
    /// was before.
    Confirm {
        /// Whose.
        scope: Scope,
        /// Which.
        repository: RepositoryKey,
        /// When.
        at: Timestamp,
    },
    /// A delivery is taken for an application. `Taken(WebhookDelivery)` when one with the same id or
    /// the same body was, after `since`.
    Take {
        /// Which application.
        application: ApplicationId,
        /// What recognises the delivery.
        mark: DeliveryMark,
        /// What is older does not count.
        since: Timestamp,
        /// When.
        at: Timestamp,
    },
    /// Who pushed this commit does not want it deployed: nobody misses it.
    PassOver {
        /// Which application.
        application: ApplicationId,
        /// Which commit.
        commit: CommitHash,
        /// When.
        at: Timestamp,
    },
    /// Nothing, if the commit was missed. `Stale` when the application
    /// - is gone, is not deployed by pushes, or follows another branch by now;
    /// - has a deployment of the commit, in whatever state, or one that is not over;
    /// - was told to [pass over](Write::PassOver) the commit;
    /// - was rolled back or stopped since it was last deployed afresh, or had that deployment
    ///   cancelled before it was known what it is made of.
    RequireMissed(BranchHead),
}

impl Write {
    /// Whether the trail has to tell of it. What a push leads to has an entry of its own.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        matches!(self, Self::FirstSecret(_) | Self::ReplaceSecret { .. })
    }
}

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::Webhook(write)
    }
}
