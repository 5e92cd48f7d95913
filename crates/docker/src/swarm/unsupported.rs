//! The composer of an installation on several machines, where compositions do not run.

use std::sync::Arc;

use async_trait::async_trait;
use launchway_domain::{
    applications::RunCommand,
    deployments::{ComposeSource, Composer, Composition, CompositionPlan, Container, Output, StepError},
    ids::{ApplicationId, DeploymentId},
};

use crate::Compositions;

/// Rejects compositions: their services share volumes, which are on one machine. Those of a time before the Swarm can be
/// removed.
#[derive(Debug)]
pub struct NoCompositions(pub Arc<Compositions>);

fn rejected() -> StepError {
    StepError::Rejected(
        "applications with a compose file do not run on Docker Swarm: deploy its services as applications of their own, \
         or use an installation with LAUNCHWAY_ENGINE=docker"
            .to_owned(),
    )
}

#[async_trait]
impl Composer for NoCompositions {
    async fn compose(
        &self,
        _plan: &CompositionPlan,
        _source: &ComposeSource,
        _output: Arc<dyn Output>,
    ) -> Result<Composition, StepError> {
        Err(rejected())
    }

    /// A deployment that was no composition can be rolled back to.
    async fn recall(
        &self,
        plan: &CompositionPlan,
        earlier: DeploymentId,
    ) -> Result<Option<Composition>, StepError> {
        match self.0.is_stored(plan, earlier).await? {
            true => Err(rejected()),
            false => Ok(None),
        }
    }

    async fn start_companions(&self, _: &CompositionPlan, _: Arc<dyn Output>) -> Result<(), StepError> {
        Err(rejected())
    }

    async fn start(&self, _: &CompositionPlan, _: Arc<dyn Output>) -> Result<Container, StepError> {
        Err(rejected())
    }

    async fn run_once(
        &self,
        _: &CompositionPlan,
        _: &RunCommand,
        _: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        Err(rejected())
    }

    async fn forget(&self, application: ApplicationId) -> Result<(), StepError> {
        self.0.forget(application).await
    }
}
