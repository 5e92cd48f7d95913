//! The comparison of two commits.

use async_trait::async_trait;

use crate::{
    applications::WatchPaths,
    deployments::{CommitHash, GitSource, StepError},
    ids::OrganizationId,
};

/// Two commits of a repository, and the paths that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The repository, with what is needed to read it.
    pub source: GitSource,
    /// The organization that reads it.
    pub organization: OrganizationId,
    /// The earlier commit.
    pub old: CommitHash,
    /// The later commit.
    pub new: CommitHash,
    /// The paths that matter.
    pub watched: WatchPaths,
}

/// Compares commits.
///
/// Promises: the files of both commits are compared, whatever happened in between; a file that was added, changed,
/// renamed or removed counts, and so does a submodule; git decides which patterns match. What
/// [`SourceFetcher`](crate::deployments::SourceFetcher) promises holds as well.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ChangeDetector: Send + Sync {
    /// Returns whether a watched path differs between the commits; `None` if the repository does not give the earlier
    /// one any more.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if the repository denies access, does not give the later commit, or more differs than can
    /// be listed; [`StepError::Retryable`] for an error of this machine.
    async fn touches(&self, comparison: &Comparison) -> Result<Option<bool>, StepError>;
}
