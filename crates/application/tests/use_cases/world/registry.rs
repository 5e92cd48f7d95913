//! The registry of the world.

use async_trait::async_trait;
use launchway_domain::{
    clock::Timestamp,
    deployments::{ApplicationChanges, ImageDeletion, ImageName, ImageRegistry, StepError},
    ids::ApplicationId,
    store::StoreError,
};

use super::World;

/// The images of a registry, and the applications that changed.
#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) images: Vec<ImageName>,
    /// The images whose digest another image has.
    pub(crate) shared: Vec<ImageName>,
    /// The applications that changed since the first list of them.
    pub(crate) changed: Vec<ApplicationId>,
}

#[async_trait]
impl ImageRegistry for World {
    async fn images(&self, application: ApplicationId) -> Result<Vec<ImageName>, StepError> {
        self.call("list images", "").await?;
        let state = self.state();
        let images = state.registry.iter().flat_map(|registry| &registry.images);
        let is_own = |image: &&ImageName| image.whose().is_some_and(|(owner, _)| owner == application);
        Ok(images.filter(is_own).cloned().collect())
    }

    async fn delete(&self, image: &ImageName, kept: &[ImageName]) -> Result<ImageDeletion, StepError> {
        let name = image.whose().map(|(_, deployment)| self.name_of(deployment)).unwrap_or_default();
        self.call("delete image", format!("of {name} beside {}", kept.len())).await?;
        let mut state = self.state();
        let registry = state.registry.get_or_insert_default();
        if registry.shared.contains(image) {
            return Ok(ImageDeletion::Shared);
        }
        registry.images.retain(|other| other != image);
        Ok(ImageDeletion::Deleted)
    }
}

#[async_trait]
impl ApplicationChanges for World {
    async fn changed_applications(&self, since: Option<Timestamp>) -> Result<Vec<ApplicationId>, StoreError> {
        let mut state = self.state();
        let registry = state.registry.get_or_insert_default();
        if since.is_some() {
            return Ok(std::mem::take(&mut registry.changed));
        }
        let mut all: Vec<ApplicationId> =
            registry.images.iter().filter_map(ImageName::whose).map(|(owner, _)| owner).collect();
        all.dedup();
        Ok(all)
    }
}
