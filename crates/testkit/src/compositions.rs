//! Stored compositions without a database.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use launchway_domain::{
    deployments::CompositionRepository,
    ids::{ApplicationId, DeploymentId},
    secret::Sealed,
    store::StoreError,
};

/// Stores compositions in memory, of any application and deployment.
#[derive(Debug, Default)]
pub struct MemoryCompositions(Mutex<BTreeMap<(ApplicationId, DeploymentId), Sealed>>);

impl MemoryCompositions {
    /// Returns everything that is stored.
    #[must_use]
    pub fn all(&self) -> BTreeMap<(ApplicationId, DeploymentId), Sealed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces what is stored for a deployment.
    pub fn insert(&self, application: ApplicationId, deployment: DeploymentId, sealed: Sealed) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((application, deployment), sealed);
    }
}

#[async_trait]
impl CompositionRepository for MemoryCompositions {
    async fn keep(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
        sealed: Sealed,
        _most: usize,
    ) -> Result<(), StoreError> {
        self.insert(application, deployment, sealed);
        Ok(())
    }

    async fn find(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
    ) -> Result<Option<Sealed>, StoreError> {
        Ok(self.all().remove(&(application, deployment)))
    }

    async fn forget(&self, application: ApplicationId) -> Result<(), StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, _), _| *of != application);
        Ok(())
    }
}
