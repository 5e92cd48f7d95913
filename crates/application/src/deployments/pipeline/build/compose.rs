//! Reads the compose file of a version.

use std::sync::Arc;

use launchway_domain::{
    deployments::{Checkout, ComposeSource, Composer, Composition, CompositionPlan},
    ids::DeploymentId,
    logs::Level,
};

use super::{Attempt, JobError};
use crate::Homes;

/// Reads compose files, and logs what was read.
#[derive(Clone)]
pub(super) struct ComposeReader {
    pub(super) composer: Arc<dyn Composer>,
    pub(super) homes: Homes,
}

impl ComposeReader {
    /// Reads the compose file and builds the images of its services.
    pub(super) async fn compose(
        &self,
        attempt: &Attempt<'_>,
        checkout: Checkout,
    ) -> Result<Composition, JobError> {
        let blueprint = &attempt.application.blueprint;
        self.settle(attempt).await?;
        attempt.log.write_line(Level::Info, "Reading the compose file").await;
        let source = ComposeSource {
            checkout,
            base_path: blueprint.base_path.clone(),
            file: blueprint.dockerfile_path.clone(),
            variables: attempt.secrets.build_variables.clone(),
            cache: attempt.deployment.build_cache,
        };
        let output = attempt.log.output(Level::Build);
        let composed = self.composer.compose(&plan(attempt), &source, output.clone()).await;
        output.finish().await;
        let composition = composed?;
        log_composition(attempt, &composition).await;
        Ok(composition)
    }

    /// Returns the composition of an earlier deployment, if it had one.
    pub(super) async fn recall(
        &self,
        attempt: &Attempt<'_>,
        earlier: DeploymentId,
    ) -> Result<Option<Composition>, JobError> {
        let recalled = self.composer.recall(&plan(attempt), earlier).await?;
        if let Some(composition) = &recalled {
            self.settle(attempt).await?;
            log_composition(attempt, composition).await;
        }
        Ok(recalled)
    }

    /// Makes this machine the home of the application if it has none: its volumes are on one machine.
    async fn settle(&self, attempt: &Attempt<'_>) -> Result<(), JobError> {
        if let Some(home) = self.homes.settle(attempt.application.id).await? {
            let text =
                format!("The services run on machine {}, which has their volumes", home.machine.hostname);
            attempt.log.write_line(Level::Info, text).await;
        }
        Ok(())
    }
}

/// Returns the plan of services that are not started yet.
fn plan(attempt: &Attempt<'_>) -> CompositionPlan {
    CompositionPlan {
        owner: attempt.owner,
        port: attempt.application.blueprint.port,
        environment: attempt.secrets.environment_variables.clone(),
        live: attempt.application.live,
        reserved: Vec::new(),
    }
}

async fn log_composition(attempt: &Attempt<'_>, composition: &Composition) {
    for remark in &composition.remarks {
        attempt.log.write_line(Level::Warn, remark.clone()).await;
    }
    let text = format!("Traffic is routed to the service `{}`", composition.web);
    attempt.log.write_line(Level::Info, text).await;
}
