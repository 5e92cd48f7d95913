//! Compositions of the world.

use std::sync::Arc;

use async_trait::async_trait;
use launchway_domain::{
    applications::RunCommand,
    deployments::{
        ComposeSource, Composer, Composition, CompositionPlan, Container, ImageName, Output, StepError,
    },
    ids::{ApplicationId, DeploymentId},
};
use launchway_testkit::builders::parsed;

use super::{World, a_started_container};

impl World {
    fn composition(&self, plan: &CompositionPlan) -> Composition {
        let web = parsed("web");
        let mut state = self.state();
        state.composed.push(plan.owner.deployment);
        Composition {
            image: ImageName::of_service(plan.owner.application, plan.owner.deployment, &web),
            web,
            shared_volumes: state.shared_volumes.clone(),
            remarks: vec!["`ports` are not published".to_owned()],
        }
    }
}

#[async_trait]
impl Composer for World {
    async fn compose(
        &self,
        plan: &CompositionPlan,
        source: &ComposeSource,
        output: Arc<dyn Output>,
    ) -> Result<Composition, StepError> {
        self.give_output("compose", &output).await;
        let live = plan.live.map(|live| self.name_of(live)).unwrap_or_default();
        self.call("compose", format!("{} beside {live}", source.file)).await?;
        Ok(self.composition(plan))
    }

    async fn recall(
        &self,
        plan: &CompositionPlan,
        earlier: DeploymentId,
    ) -> Result<Option<Composition>, StepError> {
        if !self.state().composed.contains(&earlier) {
            return Ok(None);
        }
        self.call("recall", self.name_of(earlier)).await?;
        Ok(Some(self.composition(plan)))
    }

    async fn start_sidecars(&self, _: &CompositionPlan, output: Arc<dyn Output>) -> Result<(), StepError> {
        self.give_output("start sidecars", &output).await;
        self.call("start sidecars", "").await
    }

    async fn start(&self, plan: &CompositionPlan, output: Arc<dyn Output>) -> Result<Container, StepError> {
        self.give_output("start services", &output).await;
        let names: Vec<&str> = plan.environment.iter().map(|(name, _)| name).collect();
        self.call("start services", format!("on {} with {}", plan.port.get(), names.join(" "))).await?;
        Ok(a_started_container())
    }

    async fn run_once(
        &self,
        _: &CompositionPlan,
        command: &RunCommand,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        self.give_output("run beside", &output).await;
        self.call("run beside", command).await
    }

    async fn forget(&self, _: ApplicationId) -> Result<(), StepError> {
        self.call("forget compositions", "").await
    }
}
