//! The records of images of the world.

use async_trait::async_trait;
use launchway_domain::{
    clock::Timestamp,
    deployments::{ImageRecord, ImageRecords, ImageSize},
    ids::DeploymentId,
    organizations::Scope,
    quotas::Quota,
    store::StoreError,
};

use super::World;

#[async_trait]
impl ImageRecords for World {
    async fn used(&self, _: Scope) -> Result<u64, StoreError> {
        Ok(self.state().image_bytes)
    }

    async fn record(
        &self,
        _: Scope,
        deployment: DeploymentId,
        images: Vec<ImageSize>,
        quota: Quota,
        _: Timestamp,
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        let wanted = images.iter().map(|image| image.bytes).sum();
        quota.check(state.image_bytes, wanted).map_err(StoreError::QuotaExceeded)?;
        state.images.retain(|record| record.deployment != deployment);
        state.images.extend(images.into_iter().map(|image| ImageRecord { deployment, image }));
        Ok(())
    }

    async fn synchronize(&self, found: Vec<ImageRecord>, _: Timestamp) -> Result<(), StoreError> {
        self.state().images = found;
        Ok(())
    }

    async fn forget(&self, deployments: Vec<DeploymentId>) -> Result<(), StoreError> {
        self.state().images.retain(|record| !deployments.contains(&record.deployment));
        Ok(())
    }
}
