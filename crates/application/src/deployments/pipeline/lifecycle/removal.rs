//! Removes the resources of a deleted application.

use std::sync::Arc;

use launchway_domain::{
    deployments::{Composer, DiscoveredObject, EngineInventory, SiteStore},
    ids::ApplicationId,
};

use super::{ImageAccounts, JobError, Routes};
use crate::Homes;

/// Removes the resources of applications.
pub(super) struct Removal {
    pub(super) routes: Arc<Routes>,
    pub(super) sites: Arc<dyn SiteStore>,
    pub(super) inventory: Arc<dyn EngineInventory>,
    pub(super) accounts: Arc<ImageAccounts>,
    pub(super) composer: Arc<dyn Composer>,
    pub(super) homes: Homes,
}

impl Removal {
    /// Removes the resources of the deleted application `id`.
    pub(super) async fn remove(&self, id: ApplicationId) -> Result<(), JobError> {
        self.routes.forget(id).await?;
        self.routes.drain_for_retirement(id, None).await;
        // Before anything that needs the engine: an unavailable engine must not delay the removal of a
        // site's files.
        self.sites.remove(id).await?;
        let found = self.inventory.everything().await?;
        let of_it = || found.iter().filter(|found| found.owner.application == id);
        // Containers first: an image that runs cannot be removed.
        let is_container = |what: &DiscoveredObject| matches!(what, DiscoveredObject::Container { .. });
        for found in of_it().filter(|found| is_container(&found.what)) {
            self.inventory.remove(found).await?;
        }
        for found in of_it().filter(|found| !is_container(&found.what)) {
            self.inventory.remove(found).await?;
        }
        self.accounts.forget(of_it().map(|found| found.owner.deployment).collect()).await?;
        self.composer.forget(id).await?;
        Ok(self.homes.leave(id).await?)
    }
}
