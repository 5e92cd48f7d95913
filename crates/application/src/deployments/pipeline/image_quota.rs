//! The quota of image bytes: checked before an image is made, and decided when its size is known.

use std::sync::Arc;

use launchway_domain::{
    applications::BuildPack,
    clock::Clock,
    deployments::{DeploymentKind, DiscoveredObject, EngineInventory, ImageRecords, StepError},
    ids::DeploymentId,
    organizations::Scope,
    quotas::Quota,
    store::StoreError,
};

use super::{JobError, subject::Attempt};

/// The records of images, and the limit of what an organization has of them.
#[derive(Clone)]
pub struct ImageQuota {
    /// The records.
    pub records: Arc<dyn ImageRecords>,
    /// The limit.
    pub quota: Quota,
}

/// Accounts for the images of deployments.
pub(super) struct ImageAccounts {
    /// The quota; images are neither recorded nor limited if absent.
    pub(super) quota: Option<ImageQuota>,
    pub(super) inventory: Arc<dyn EngineInventory>,
    pub(super) clock: Arc<dyn Clock>,
}

impl ImageAccounts {
    /// Refuses an attempt that would make an image where no byte more is left.
    pub(super) async fn require_room(&self, attempt: &Attempt<'_>) -> Result<(), JobError> {
        let makes_image = attempt.deployment.kind == DeploymentKind::Fresh
            && attempt.application.blueprint.build_pack != BuildPack::Static;
        let Some(ImageQuota { records, quota }) = self.quota.as_ref().filter(|_| makes_image) else {
            return Ok(());
        };
        if quota.is_unlimited() {
            return Ok(());
        }
        let used = records.used(Scope::of_record(attempt.owner.organization)).await?;
        quota.check(used, 1).map_err(|exceeded| JobError::Permanent(exceeded.to_string()))
    }

    /// Records the images that the attempt made. Those that the quota has no room for are removed.
    pub(super) async fn record(&self, attempt: &Attempt<'_>) -> Result<(), JobError> {
        let Some(ImageQuota { records, quota }) = &self.quota else { return Ok(()) };
        let quota = match attempt.deployment.kind {
            DeploymentKind::Fresh => *quota,
            // It takes no byte more than what exists already.
            DeploymentKind::Rollback { .. } => Quota { limit: 0, ..*quota },
        };
        let images = self.inventory.images_of(&attempt.owner).await?;
        let (scope, id) = (Scope::of_record(attempt.owner.organization), attempt.deployment.id);
        match records.record(scope, id, images, quota, self.clock.now()).await {
            Err(StoreError::QuotaExceeded(exceeded)) => {
                if let Err(error) = self.remove_images(id).await {
                    tracing::warn!(deployment.id = %id, %error, "refused image is removed later");
                }
                Err(JobError::Permanent(exceeded.to_string()))
            }
            recorded => Ok(recorded?),
        }
    }

    async fn remove_images(&self, deployment: DeploymentId) -> Result<(), StepError> {
        for found in self.inventory.everything().await? {
            if found.owner.deployment == deployment && matches!(found.what, DiscoveredObject::Image { .. }) {
                self.inventory.remove(&found).await?;
            }
        }
        Ok(())
    }

    /// Forgets the images of deployments whose images were removed.
    pub(super) async fn forget(&self, deployments: Vec<DeploymentId>) -> Result<(), JobError> {
        match &self.quota {
            Some(ImageQuota { records, .. }) if !deployments.is_empty() => {
                Ok(records.forget(deployments).await?)
            }
            _ => Ok(()),
        }
    }
}
