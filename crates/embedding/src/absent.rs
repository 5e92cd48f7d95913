//! Ports that an embedding service does not have. They reject every call.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use launchway_domain::{
    applications::{BasePath, RunCommand},
    deployments::{
        BuildPlan, BuildPlanner, Checkout, CommitHash, ComposeSource, Composer, Composition, CompositionPlan,
        Container, GitSource, Output, Owner, SiteStore, SourceFetcher, StepError,
    },
    ids::{ApplicationId, DeploymentId},
    organizations::{DeployKey, DeployKeyRepository, Scope},
    secret::{Sealed, Secret, SecretBox, SecretBoxError},
    store::StoreError,
};

/// The plaintext of the variables of an application that has none.
const NO_VARIABLES: &[u8] = b"{}";

/// A [`SecretBox`] for applications without secrets. It accepts only the empty value.
pub struct NoSecrets;

impl SecretBox for NoSecrets {
    fn seal(&self, _: &str, plain: &[u8]) -> Result<Sealed, SecretBoxError> {
        if plain == NO_VARIABLES { Ok(Sealed(String::new())) } else { Err(SecretBoxError::CannotSeal) }
    }

    fn open(&self, _: &str, sealed: &Sealed) -> Result<Secret<Vec<u8>>, SecretBoxError> {
        if sealed.0.is_empty() {
            Ok(Secret::new(NO_VARIABLES.to_vec()))
        } else {
            Err(SecretBoxError::CannotOpen)
        }
    }
}

/// A box that also opens what [`NoSecrets`] has sealed, for a service that gets a box later.
pub(crate) struct OrNoSecrets<B>(pub(crate) B);

impl<B: SecretBox> SecretBox for OrNoSecrets<B> {
    fn seal(&self, associated: &str, plain: &[u8]) -> Result<Sealed, SecretBoxError> {
        self.0.seal(associated, plain)
    }

    fn open(&self, associated: &str, sealed: &Sealed) -> Result<Secret<Vec<u8>>, SecretBoxError> {
        if sealed.0.is_empty() { NoSecrets.open(associated, sealed) } else { self.0.open(associated, sealed) }
    }
}

/// A port that is absent: it rejects every request, and has nothing to remove.
pub(crate) struct Absent;

fn absent<T>(what: &str) -> Result<T, StepError> {
    Err(StepError::Rejected(format!("{what} here")))
}

#[async_trait]
impl SourceFetcher for Absent {
    async fn head(&self, _: &GitSource) -> Result<CommitHash, StepError> {
        absent("no source is fetched")
    }

    async fn fetch(
        &self,
        _: &GitSource,
        _: &CommitHash,
        _: &Owner,
        _: Arc<dyn Output>,
    ) -> Result<Checkout, StepError> {
        absent("no source is fetched")
    }

    async fn discard(&self, _: DeploymentId) -> Result<(), StepError> {
        Ok(())
    }
}

#[async_trait]
impl BuildPlanner for Absent {
    async fn complete(&self, _: &BuildPlan, _: Arc<dyn Output>) -> Result<BuildPlan, StepError> {
        absent("no build is planned")
    }
}

#[async_trait]
impl Composer for Absent {
    async fn compose(
        &self,
        _: &CompositionPlan,
        _: &ComposeSource,
        _: Arc<dyn Output>,
    ) -> Result<Composition, StepError> {
        absent("no compose file is read")
    }

    async fn recall(&self, _: &CompositionPlan, _: DeploymentId) -> Result<Option<Composition>, StepError> {
        Ok(None)
    }

    async fn start_sidecars(&self, _: &CompositionPlan, _: Arc<dyn Output>) -> Result<(), StepError> {
        absent("no services are composed")
    }

    async fn start(&self, _: &CompositionPlan, _: Arc<dyn Output>) -> Result<Container, StepError> {
        absent("no services are composed")
    }

    async fn run_once(
        &self,
        _: &CompositionPlan,
        _: &RunCommand,
        _: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        absent("no services are composed")
    }

    async fn forget(&self, _: ApplicationId) -> Result<(), StepError> {
        Ok(())
    }
}

#[async_trait]
impl SiteStore for Absent {
    async fn publish(&self, _: &Owner, _: &Checkout, _: &BasePath) -> Result<PathBuf, StepError> {
        absent("no files are published")
    }

    async fn release(&self, _: ApplicationId, _: DeploymentId) -> Result<Option<PathBuf>, StepError> {
        Ok(None)
    }

    async fn releases(&self) -> Result<Vec<(ApplicationId, DeploymentId)>, StepError> {
        Ok(Vec::new())
    }

    async fn withdraw(&self, _: ApplicationId, _: DeploymentId) -> Result<(), StepError> {
        Ok(())
    }

    async fn remove(&self, _: ApplicationId) -> Result<(), StepError> {
        Ok(())
    }
}

#[async_trait]
impl DeployKeyRepository for Absent {
    async fn deploy_key(&self, _: Scope) -> Result<Option<DeployKey>, StoreError> {
        Ok(None)
    }
}
