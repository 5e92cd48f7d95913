//! Archives of published sites, which every server of an installation can read.

use async_trait::async_trait;

use crate::{
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId, SiteUploadId},
    store_error::StoreError,
};

/// A complete archive of a release: the bytes of its parts, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteArchive {
    /// The application.
    pub application: ApplicationId,
    /// The deployment of the release.
    pub deployment: DeploymentId,
    /// The upload that wrote the parts.
    pub upload: SiteUploadId,
    /// The number of parts.
    pub parts: u32,
    /// The number of bytes.
    pub size: u64,
    /// The SHA-256 of all bytes.
    pub sha256: [u8; 32],
}

impl SiteArchive {
    /// The size in bytes of every part but the last, which may be smaller.
    pub const PART: usize = 1024 * 1024;
}

/// The state of the archive of a release that a server has as a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveState {
    /// It is complete.
    Complete,
    /// There is none, and the release may be needed.
    Missing,
    /// It was removed, because the release is no longer needed.
    Removed,
}

/// Stores the archives of published sites.
///
/// Promises: an archive is found completely or not at all; the parts of an upload that is not completed are never part
/// of an archive.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SiteArchives: Send + Sync {
    /// Returns the archive of a deployment; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn find(&self, deployment: DeploymentId) -> Result<Option<SiteArchive>, StoreError>;

    /// Returns every archive, by its application and deployment.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn all(&self) -> Result<Vec<(ApplicationId, DeploymentId)>, StoreError>;

    /// Returns the state of the archive of each of `deployments`. Those that are unknown, or that need none, are left
    /// out.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn states(
        &self,
        deployments: &[DeploymentId],
    ) -> Result<Vec<(DeploymentId, ArchiveState)>, StoreError>;

    /// Stores a part of an upload; the first one has the number 0.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], [`StoreError::StorageFull`] or [`StoreError::Internal`].
    async fn add_part(
        &self,
        upload: SiteUploadId,
        part: u32,
        bytes: Vec<u8>,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Returns a part of an upload; `None` if there is no such part.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn part(&self, upload: SiteUploadId, part: u32) -> Result<Option<Vec<u8>>, StoreError>;

    /// Makes an upload the archive of its deployment, in place of an earlier one.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if the application has no such deployment or parts are missing,
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn complete(&self, archive: SiteArchive) -> Result<(), StoreError>;

    /// Removes the archive of a deployment, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn remove(&self, deployment: DeploymentId) -> Result<(), StoreError>;

    /// Removes the archives of an application.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn remove_all(&self, application: ApplicationId) -> Result<(), StoreError>;

    /// Removes the parts of uploads that began before `before` and are no archive.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn remove_incomplete(&self, before: Timestamp) -> Result<(), StoreError>;
}
