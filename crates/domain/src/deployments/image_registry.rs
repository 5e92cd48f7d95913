//! The registry of an installation: the images of deployments in it.

use async_trait::async_trait;

use super::{ImageName, StepError};
use crate::{clock::Timestamp, ids::ApplicationId, store_error::StoreError};

/// The result of the deletion of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageDeletion {
    /// The registry does not have it any more.
    Deleted,
    /// It is still there, because an image that is kept has the same digest.
    Shared,
}

/// The registry that the images of deployments are pushed to.
///
/// Promises: only repositories of applications are read, by their names, and only images of deployments are listed.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ImageRegistry: Send + Sync {
    /// Returns the images of an application's deployments, by their names without digests; none if the registry does not
    /// know the application.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the registry is unreachable, [`StepError::Rejected`] if it does not let this
    /// installation list them.
    async fn images(&self, application: ApplicationId) -> Result<Vec<ImageName>, StepError>;

    /// Deletes an image, unless one of `kept`, which are other images of the same application, has the same digest: registries
    /// delete a digest with all of its tags. One that is gone counts as deleted.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the registry is unreachable, [`StepError::Rejected`] if it deletes nothing.
    async fn delete(&self, image: &ImageName, kept: &[ImageName]) -> Result<ImageDeletion, StepError>;
}

/// Lists applications whose images in a registry may not be needed any more.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ApplicationChanges: Send + Sync {
    /// Returns the applications that, or whose deployments, changed at `since` or later, deleted ones included; all
    /// applications of the installation without it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn changed_applications(&self, since: Option<Timestamp>) -> Result<Vec<ApplicationId>, StoreError>;
}
