//! Builds a version from a git repository.

use std::sync::Arc;

use launchway_domain::{
    applications::{BuildPack, GitUrl},
    deployments::{BuildPlan, BuildPlanner, Checkout, DeploymentState, ImageBuilder, SiteStore},
    logs::Level,
};

use super::{Attempt, Checkouts, ComposeReader, JobError, JobRecords, Version, entering};

/// Builds the source of an application by its build pack.
pub(super) struct GitBuilder {
    pub(super) checkouts: Checkouts,
    pub(super) planner: Arc<dyn BuildPlanner>,
    pub(super) images: Arc<dyn ImageBuilder>,
    pub(super) compose: ComposeReader,
    pub(super) sites: Arc<dyn SiteStore>,
    pub(super) records: JobRecords,
}

impl GitBuilder {
    pub(super) async fn build(&self, attempt: &Attempt<'_>, url: &GitUrl) -> Result<Version, JobError> {
        let checkout = self.checkouts.fetch(attempt, url).await?;
        let built = self.build_from(attempt, checkout);
        let building = entering(DeploymentState::Building);
        let version = self.records.while_recorded(attempt, building, built).await?;
        self.checkouts.source.discard(attempt.deployment.id).await?;
        Ok(version)
    }

    async fn build_from(&self, attempt: &Attempt<'_>, checkout: Checkout) -> Result<Version, JobError> {
        let blueprint = &attempt.application.blueprint;
        match blueprint.build_pack {
            BuildPack::Static => {
                attempt.log.write_line(Level::Info, "Publishing the files").await;
                let folder = &blueprint.base_path;
                Ok(Version::Site(self.sites.publish(&attempt.owner, &checkout, folder).await?))
            }
            BuildPack::DockerCompose => {
                Ok(Version::Composition(self.compose.compose(attempt, checkout).await?))
            }
            pack @ (BuildPack::Dockerfile | BuildPack::Image | BuildPack::Nixpacks) => {
                let mut plan = BuildPlan {
                    owner: attempt.owner,
                    checkout,
                    base_path: blueprint.base_path.clone(),
                    dockerfile: blueprint.dockerfile_path.clone(),
                    variables: attempt.secrets.build_variables.clone(),
                    cache: attempt.deployment.build_cache,
                };
                if pack == BuildPack::Nixpacks {
                    plan = self.complete(attempt, &plan).await?;
                }
                attempt.log.write_line(Level::Info, "Building the image").await;
                let output = attempt.log.output(Level::Build);
                let built = self.images.build(&plan, output.clone()).await;
                output.finish().await;
                Ok(Version::Container(built?))
            }
        }
    }

    /// Completes the build plan of source without a Dockerfile.
    async fn complete(&self, attempt: &Attempt<'_>, plan: &BuildPlan) -> Result<BuildPlan, JobError> {
        attempt.log.write_line(Level::Info, "Planning the build").await;
        let output = attempt.log.output(Level::Build);
        let completed = self.planner.complete(plan, output.clone()).await;
        output.finish().await;
        Ok(completed?)
    }
}
