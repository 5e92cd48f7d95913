//! Rolls back to the version of an earlier deployment.

use std::sync::Arc;

use launchway_domain::{
    deployments::{DeploymentRepository, ImageBuilder, Progress},
    ids::DeploymentId,
    logs::Level,
    organizations::Scope,
};

use super::{Attempt, ComposeReader, JobError, JobRecords, Version};
use crate::routes::Routes;

/// Finds the versions of earlier deployments.
pub(super) struct Rollback {
    pub(super) deployments: Arc<dyn DeploymentRepository>,
    pub(super) images: Arc<dyn ImageBuilder>,
    pub(super) compose: ComposeReader,
    pub(super) routes: Arc<Routes>,
    pub(super) records: JobRecords,
}

impl Rollback {
    /// Returns the version of an earlier deployment.
    pub(super) async fn find_again(
        &self,
        attempt: &Attempt<'_>,
        to: DeploymentId,
    ) -> Result<Version, JobError> {
        attempt.log.write_line(Level::Info, format!("Rolling back to deployment {to}")).await;
        let artifact = self.records.context.terms.artifact;
        let gone =
            || JobError::Permanent(format!("the {artifact} or the files of that deployment no longer exist"));
        let scope = Scope::of_record(attempt.owner.organization);
        let earlier = self.deployments.get(scope, to).await?.ok_or_else(gone)?;
        if let Some(commit) = &earlier.commit {
            let progress = Progress { commit: Some(commit.clone()), ..Progress::default() };
            self.records.advance(attempt, progress).await?;
        }
        if let Some(composition) = self.compose.recall(attempt, to).await? {
            return Ok(Version::Composition(composition));
        }
        match earlier.image {
            Some(image) => Ok(Version::Container(self.images.reuse(&attempt.owner, &image).await?)),
            None => Ok(Version::Site(self.routes.site(&earlier).await?.ok_or_else(gone)?)),
        }
    }
}
