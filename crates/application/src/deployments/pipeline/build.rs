//! Builds a version from source.

use std::path::PathBuf;

use launchway_domain::{
    applications::{BuildPack, GitUrl, ImageRef, Repository},
    deployments::{
        BuildPlan, Checkout, CommitHash, Composition, DeploymentKind, DeploymentState, GitSource, ImageName,
        Progress, StepError,
    },
    ids::DeploymentId,
    logs::Level,
    organizations::{DeployKey, Scope},
    secret::Secret,
};

use super::{Attempt, JobError, Pipeline};

/// The result of a build.
pub(super) enum Version {
    /// An image to run as one container.
    Container(ImageName),
    /// The services of a compose file.
    Composition(Composition),
    /// A directory of static files.
    Site(PathBuf),
}

impl Pipeline {
    /// Builds the version, and returns it with the progress to record.
    pub(super) async fn make(&self, attempt: &Attempt<'_>) -> Result<(Version, Progress), JobError> {
        self.require_image_room(attempt).await?;
        let (version, mut made) = match (attempt.deployment.kind, &attempt.application.blueprint.repository) {
            (DeploymentKind::Rollback { to }, _) => {
                self.record(attempt, entering(DeploymentState::Deploying)).await?;
                (self.find_again(attempt, to).await?, Progress::default())
            }
            (DeploymentKind::Fresh, Repository::Image(image)) => {
                let obtained = self.obtain(attempt, image);
                let image =
                    self.while_recorded(attempt, entering(DeploymentState::Deploying), obtained).await?;
                (Version::Container(image), Progress::default())
            }
            (DeploymentKind::Fresh, Repository::Git(url)) => {
                (self.build(attempt, url).await?, entering(DeploymentState::Deploying))
            }
        };
        if let Version::Container(image) | Version::Composition(Composition { image, .. }) = &version {
            made.image = Some(image.clone());
            self.record_images(attempt).await?;
        }
        Ok((version, made))
    }

    async fn obtain(&self, attempt: &Attempt<'_>, image: &ImageRef) -> Result<ImageName, StepError> {
        attempt.log.write_line(Level::Info, format!("Pulling the image {image}")).await;
        let output = attempt.log.output(Level::Build);
        let obtained = self.ports.images.obtain(&attempt.owner, image, output.clone()).await;
        output.finish().await;
        obtained
    }

    /// Returns the version of an earlier deployment.
    async fn find_again(&self, attempt: &Attempt<'_>, to: DeploymentId) -> Result<Version, JobError> {
        attempt.log.write_line(Level::Info, format!("Rolling back to deployment {to}")).await;
        let gone =
            || JobError::Permanent("the image or the files of that deployment no longer exist".to_owned());
        let scope = Scope::of_record(attempt.owner.organization);
        let earlier = self.ports.deployments.get(scope, to).await?.ok_or_else(gone)?;
        if let Some(commit) = &earlier.commit {
            self.record(attempt, Progress { commit: Some(commit.clone()), ..Progress::default() }).await?;
        }
        if let Some(composition) = self.recall(attempt, to).await? {
            return Ok(Version::Composition(composition));
        }
        match earlier.image {
            Some(image) => Ok(Version::Container(self.ports.images.reuse(&attempt.owner, &image).await?)),
            None => Ok(Version::Site(self.ports.routes.site(&earlier).await?.ok_or_else(gone)?)),
        }
    }

    async fn build(&self, attempt: &Attempt<'_>, url: &GitUrl) -> Result<Version, JobError> {
        let checkout = self.fetch(attempt, url).await?;
        let built = self.build_from(attempt, checkout);
        let version = self.while_recorded(attempt, entering(DeploymentState::Building), built).await?;
        self.ports.source.discard(attempt.deployment.id).await?;
        Ok(version)
    }

    async fn build_from(&self, attempt: &Attempt<'_>, checkout: Checkout) -> Result<Version, JobError> {
        let blueprint = &attempt.application.blueprint;
        match blueprint.build_pack {
            BuildPack::Static => {
                attempt.log.write_line(Level::Info, "Publishing the files").await;
                let folder = &blueprint.base_path;
                Ok(Version::Site(self.ports.sites.publish(&attempt.owner, &checkout, folder).await?))
            }
            BuildPack::DockerCompose => Ok(Version::Composition(self.compose(attempt, checkout).await?)),
            pack @ (BuildPack::Dockerfile | BuildPack::Image | BuildPack::Nixpacks) => {
                let mut plan = BuildPlan {
                    owner: attempt.owner,
                    checkout,
                    base_path: blueprint.base_path.clone(),
                    dockerfile: blueprint.dockerfile_path.clone(),
                    variables: attempt.secrets.build_variables.clone(),
                };
                if pack == BuildPack::Nixpacks {
                    plan = self.complete(attempt, &plan).await?;
                }
                attempt.log.write_line(Level::Info, "Building the image").await;
                let output = attempt.log.output(Level::Build);
                let built = self.ports.images.build(&plan, output.clone()).await;
                output.finish().await;
                Ok(Version::Container(built?))
            }
        }
    }

    /// Completes the build plan of source without a Dockerfile.
    async fn complete(&self, attempt: &Attempt<'_>, plan: &BuildPlan) -> Result<BuildPlan, JobError> {
        attempt.log.write_line(Level::Info, "Planning the build").await;
        let output = attempt.log.output(Level::Build);
        let completed = self.ports.planner.complete(plan, output.clone()).await;
        output.finish().await;
        Ok(completed?)
    }

    async fn fetch(&self, attempt: &Attempt<'_>, url: &GitUrl) -> Result<Checkout, JobError> {
        let blueprint = &attempt.application.blueprint;
        let Some(branch) = blueprint.branch.clone() else {
            return Err(JobError::Permanent("the application has no branch to deploy".to_owned()));
        };
        let source = GitSource {
            url: url.clone(),
            branch,
            credentials: attempt.secrets.credentials.clone(),
            key: self.deploy_key(attempt).await?,
        };
        let asked = self.ports.source.head(&source);
        let commit = self.while_recorded(attempt, entering(DeploymentState::Cloning), asked).await?;
        let progress = Progress { commit: Some(commit.clone()), ..Progress::default() };
        self.while_recorded(attempt, progress, self.fetch_commit(attempt, &source, &commit)).await
    }

    async fn fetch_commit(
        &self,
        attempt: &Attempt<'_>,
        source: &GitSource,
        commit: &CommitHash,
    ) -> Result<Checkout, StepError> {
        let text = format!("Fetching commit {} of {}", commit.short(), source.branch);
        attempt.log.write_line(Level::Info, text).await;
        let output = attempt.log.output(Level::Info);
        let fetched = self.ports.source.fetch(source, commit, &attempt.owner, output.clone()).await;
        output.finish().await;
        fetched
    }

    async fn deploy_key(&self, attempt: &Attempt<'_>) -> Result<Option<Secret<String>>, JobError> {
        let organization = attempt.owner.organization;
        let Some(key) = self.ports.deploy_keys.deploy_key(Scope::of_record(organization)).await? else {
            return Ok(None);
        };
        let unreadable =
            || JobError::Permanent("the organization's deploy key cannot be decrypted".to_owned());
        let opened = self.ports.secrets.open(&DeployKey::associated_data(organization), &key.private_key);
        let bytes = opened.map_err(|_broken| unreadable())?;
        let text = String::from_utf8(bytes.expose().clone()).map_err(|_broken| unreadable())?;
        Ok(Some(Secret::new(text)))
    }
}

/// Returns the progress that enters `state`.
fn entering(state: DeploymentState) -> Progress {
    Progress { state: Some(state), ..Progress::default() }
}
