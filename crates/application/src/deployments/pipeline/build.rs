//! Makes the version of a deployment: from source, from a prebuilt image, or from an earlier deployment.

mod checkout;
mod compose;
mod git;
mod rollback;

use std::{path::PathBuf, sync::Arc};

use launchway_domain::{
    applications::{ImageRef, Repository},
    deployments::{
        Composition, DeploymentKind, DeploymentState, ImageBuilder, ImageName, Progress, StepError,
    },
    ids::DeploymentId,
    logs::Level,
};

use self::{checkout::Checkouts, compose::ComposeReader, git::GitBuilder, rollback::Rollback};
use super::{JobError, PipelinePorts, image_quota::ImageAccounts, records::JobRecords, subject::Attempt};

/// The result of a build.
pub(super) enum Version {
    /// An image to run as one container.
    Container(ImageName),
    /// The services of a compose file.
    Composition(Composition),
    /// A directory of static files.
    Site(PathBuf),
}

/// Makes versions.
pub(super) struct Builder {
    git: GitBuilder,
    images: Arc<dyn ImageBuilder>,
    rollback: Rollback,
    accounts: Arc<ImageAccounts>,
    records: JobRecords,
}

impl Builder {
    pub(super) fn new(ports: &PipelinePorts, accounts: Arc<ImageAccounts>, records: &JobRecords) -> Self {
        let compose =
            ComposeReader { composer: Arc::clone(&ports.composer), homes: records.context.homes.clone() };
        let checkouts = Checkouts {
            source: Arc::clone(&ports.source),
            deploy_keys: Arc::clone(&ports.deploy_keys),
            secrets: Arc::clone(&ports.secrets),
            records: records.clone(),
        };
        let git = GitBuilder {
            checkouts,
            planner: Arc::clone(&ports.planner),
            images: Arc::clone(&ports.images),
            compose: compose.clone(),
            sites: Arc::clone(&ports.sites),
            records: records.clone(),
        };
        let rollback = Rollback {
            deployments: Arc::clone(&ports.deployments),
            images: Arc::clone(&ports.images),
            compose,
            routes: Arc::clone(&ports.routes),
            records: records.clone(),
        };
        Self { git, images: Arc::clone(&ports.images), rollback, accounts, records: records.clone() }
    }

    /// Makes the version, and returns it with the progress to record.
    pub(super) async fn make(&self, attempt: &Attempt<'_>) -> Result<(Version, Progress), JobError> {
        self.accounts.require_room(attempt).await?;
        let (version, mut made) = match (attempt.deployment.kind, &attempt.application.blueprint.repository) {
            (DeploymentKind::Rollback { to }, _) => {
                self.records.advance(attempt, entering(DeploymentState::Deploying)).await?;
                (self.rollback.find_again(attempt, to).await?, Progress::default())
            }
            (DeploymentKind::Fresh, Repository::Image(image)) => {
                let obtained = self.obtain(attempt, image);
                let deploying = entering(DeploymentState::Deploying);
                let image = self.records.while_recorded(attempt, deploying, obtained).await?;
                (Version::Container(image), Progress::default())
            }
            (DeploymentKind::Fresh, Repository::Git(url)) => {
                (self.git.build(attempt, url).await?, entering(DeploymentState::Deploying))
            }
        };
        if let Version::Container(image) | Version::Composition(Composition { image, .. }) = &version {
            made.image = Some(image.clone());
            self.accounts.record(attempt).await?;
        }
        Ok((version, made))
    }

    async fn obtain(&self, attempt: &Attempt<'_>, image: &ImageRef) -> Result<ImageName, StepError> {
        let artifact = self.records.context.terms.artifact;
        attempt.log.write_line(Level::Info, format!("Pulling the {artifact} {image}")).await;
        let output = attempt.log.output(Level::Build);
        let obtained = self.images.obtain(&attempt.owner, image, output.clone()).await;
        output.finish().await;
        obtained
    }

    /// Removes the source that attempts at a deployment fetched.
    pub(super) async fn discard(&self, deployment: DeploymentId) -> Result<(), StepError> {
        self.git.checkouts.source.discard(deployment).await
    }
}

/// Returns the progress that enters `state`.
fn entering(state: DeploymentState) -> Progress {
    Progress { state: Some(state), ..Progress::default() }
}
