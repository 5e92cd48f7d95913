//! Builds, pulls and names images.

use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use launchway_domain::{
    applications::{ImageRef, Variables},
    deployments::{BuildCache, BuildPlan, ImageBuilder, ImageName, Output, Owner, StepError},
    ids::OrganizationId,
};
use launchway_system::process::ProcessError;
use tokio::task::spawn_blocking;

use super::{
    Builder, DockerEngine,
    cgroups::CgroupParent,
    command::{ImageId, NetworkId, NewImage},
    context::BuildContext,
    environment::BuildArguments,
    errors::EngineError,
    labels::{self, Label},
    notice::WithoutNotice,
    registries::{PermittedImage, Pulled},
};

/// The number of an application's images whose layers are reused.
const MOST_KNOWN: usize = 5;

/// The reason why nothing is built with a setting that the machine does not support.
const NO_BUILDKIT: &str = "LAUNCHWAY_BUILDER is `buildkit`, but the Docker command line of the server's machine has none: install \
     its component buildx, or set LAUNCHWAY_BUILDER to `legacy`";

#[async_trait]
impl ImageBuilder for DockerEngine {
    async fn build(&self, plan: &BuildPlan, output: Arc<dyn Output>) -> Result<ImageName, StepError> {
        let name = ImageName::of(plan.owner.application, plan.owner.deployment);
        self.build_as(&name, plan, None, output).await?;
        Ok(name)
    }

    async fn obtain(
        &self,
        owner: &Owner,
        image: &ImageRef,
        output: Arc<dyn Output>,
    ) -> Result<ImageName, StepError> {
        let name = ImageName::of(owner.application, owner.deployment);
        self.obtain_as(&name, owner, image, output).await?;
        Ok(name)
    }

    async fn reuse(&self, owner: &Owner, image: &ImageName) -> Result<ImageName, StepError> {
        let name = ImageName::of(owner.application, owner.deployment);
        self.reuse_as(&name, image).await?;
        Ok(name)
    }
}

impl DockerEngine {
    /// Builds an image up to its stage `target`, or whole, and tags it.
    pub(super) async fn build_as(
        &self,
        name: &ImageName,
        plan: &BuildPlan,
        target: Option<&str>,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let arguments = BuildArguments::of(&plan.variables)?;
        let context = self.context(plan).await?;
        let (dockerfile, known) = tokio::try_join!(
            self.canonical_dockerfile(&context.dockerfile, plan, &output),
            self.known_images(&plan.owner),
        )?;
        let labels = labels::of_image(self.options.instance, &plan.owner);
        let image = NewImage {
            name,
            labels: &labels,
            arguments: &arguments,
            limits: self.options.build_limits,
            cgroup_parent: None,
            known: &known,
            cache: plan.cache,
            dockerfile,
            target,
            folder: Some(&context.folder),
        };
        self.build_image(plan.owner.organization, image, output).await?;
        self.remember_image(&plan.owner, name);
        self.remove_nameless(&plan.owner).await;
        Ok(())
    }

    /// Pulls an image, and tags and labels it by a build without any step: a second tag alone would leave
    /// it without labels.
    pub(super) async fn obtain_as(
        &self,
        name: &ImageName,
        owner: &Owner,
        image: &ImageRef,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let permitted = self.pull(image, &output).await?;
        let dockerfile = self.dockerfile_from(&permitted, &output).await?;
        let labels = labels::of_image(self.options.instance, owner);
        let marked = NewImage {
            name,
            labels: &labels,
            arguments: &BuildArguments::of(&Variables::default())?,
            limits: self.options.build_limits,
            cgroup_parent: None,
            known: &[],
            cache: BuildCache::Use,
            dockerfile,
            target: None,
            folder: None,
        };
        self.build_image(owner.organization, marked, output).await?;
        self.remove_nameless(owner).await;
        Ok(())
    }

    /// Pulls an image that no deployment built.
    async fn pull(&self, image: &ImageRef, output: &Arc<dyn Output>) -> Result<PermittedImage, StepError> {
        let permitted = self.permit(image)?;
        match self.pull_permitted(&permitted, self.options.build_limits.time, output).await? {
            Pulled::Fresh => {}
            Pulled::NotAsked(why) => self.fall_back(&permitted, &why, output).await?,
        }
        Ok(permitted)
    }

    /// Pulls an image to run it unchanged. Its id stays the same even if its tag moves.
    pub(super) async fn obtain_unmarked(
        &self,
        image: &ImageRef,
        output: &Arc<dyn Output>,
    ) -> Result<ImageId, StepError> {
        let permitted = self.pull(image, output).await?;
        let record = self.docker.inspect_image(permitted.as_str()).await.map_err(EngineError::or_fault)?;
        let record = record.ok_or_else(|| no_image(image))?;
        // The labels are those of a deployment, but the name is not ours: the image was tagged again.
        if record.get("labels").is_some_and(labels::belongs_to_deployment) {
            return Err(no_image(image));
        }
        ImageId::read(&record).ok_or_else(|| no_image(image))
    }

    /// Adds another tag to an image of ours.
    pub(super) async fn reuse_as(&self, name: &ImageName, image: &ImageName) -> Result<(), StepError> {
        match self.docker.tag(image, name).await {
            Ok(()) => Ok(()),
            Err(failure) if failure.is_gone() => {
                Err(StepError::Rejected("the image of that deployment no longer exists".to_owned()))
            }
            Err(failure) => Err(failure.or_fault()),
        }
    }

    async fn context(&self, plan: &BuildPlan) -> Result<BuildContext, StepError> {
        let (root, base_path) = (plan.checkout.root.clone(), plan.base_path.clone());
        let (dockerfile, largest) = (plan.dockerfile.clone(), self.options.build_limits.context);
        spawn_blocking(move || BuildContext::find(&root, &base_path, &dockerfile, largest))
            .await
            .map_err(|error| StepError::failed("the checkout cannot be read", error))?
    }

    async fn build_image(
        &self,
        organization: OrganizationId,
        image: NewImage<'_>,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let limits = self.options.build_limits;
        let (builder, mut network) = tokio::try_join!(self.builder(), self.network(organization, &[]))?;
        // For a build without a step, too: its image may include steps (`ONBUILD`).
        let cgroup = match builder {
            Builder::BuildKit => None,
            Builder::Auto | Builder::Legacy => self.cgroup_parent().await?,
        };
        let image = &NewImage { cgroup_parent: cgroup.as_ref().map(CgroupParent::as_str), ..image };
        let output = Arc::new(WithoutNotice(output));
        let build = |network: NetworkId| {
            let output = output.clone();
            async move { self.docker.build(image, &network, builder, limits.time, output).await }
        };
        let mut built = build(network.id.clone()).await;
        if self.has_lost(organization, &network, &built).await {
            network = self.network(organization, &[]).await?;
            built = build(network.id).await;
        }
        let Err(failure) = built else { return Ok(()) };
        let was_killed = failure.says("returned a non-zero code: 137");
        Err(match failure {
            EngineError::Client(ProcessError::TookTooLong(..)) => {
                StepError::Rejected(format!("the build took longer than {:?}", limits.time))
            }
            failure => match failure.or_refused() {
                StepError::Rejected(sentence) if was_killed => StepError::Rejected(format!(
                    "the build failed: {sentence}: it was killed, most likely because it wanted more than \
                     {} MiB of memory",
                    limits.memory / 1024 / 1024
                )),
                StepError::Rejected(sentence) if cgroup.as_ref().is_some_and(CgroupParent::reached_limit) => {
                    let pids = limits.pids;
                    StepError::Rejected(format!(
                        "the build failed: {sentence}: it had {pids} processes and threads, and no build may have \
                         more (LAUNCHWAY_BUILD_PIDS)"
                    ))
                }
                StepError::Rejected(sentence) => StepError::Rejected(format!("the build failed: {sentence}")),
                fault => fault,
            },
        })
    }

    /// Returns the newest images of an application. Some may be gone by now, which the builder tolerates.
    async fn known_images(&self, owner: &Owner) -> Result<Vec<ImageName>, StepError> {
        let remembered = || self.images.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = remembered().get(&owner.application) {
            return Ok(known.clone());
        }
        let mut found = self.docker.images_of(owner).await.map_err(EngineError::or_fault)?;
        found.truncate(MOST_KNOWN);
        remembered().insert(owner.application, found.clone());
        Ok(found)
    }

    fn remember_image(&self, owner: &Owner, name: &ImageName) {
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        let known = images.entry(owner.application).or_default();
        known.retain(|known| known != name);
        known.insert(0, name.clone());
        known.truncate(MOST_KNOWN);
    }

    pub(super) async fn builder(&self) -> Result<Builder, StepError> {
        let choose = async || match self.options.builder {
            Builder::Auto => match self.docker.has_legacy_builder().await {
                Ok(true) => Ok(Builder::Legacy),
                Ok(false) => Ok(Builder::BuildKit),
                Err(failure) => Err(failure.or_fault()),
            },
            Builder::BuildKit => match self.docker.has_buildkit().await {
                Ok(true) => Ok(Builder::BuildKit),
                Ok(false) => Err(StepError::Rejected(NO_BUILDKIT.to_owned())),
                Err(failure) => Err(failure.or_fault()),
            },
            Builder::Legacy => Ok(Builder::Legacy),
        };
        self.builder.get_or_try_init(choose).await.copied()
    }

    /// Falls back to the local image if the registry could not be reached.
    async fn fall_back(
        &self,
        image: &PermittedImage,
        why: &str,
        output: &Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let image = image.as_str();
        if !self.docker.has_image(image).await.map_err(EngineError::or_fault)? {
            return Err(StepError::Rejected(format!("there is no image `{image}`: {why}")));
        }
        let line = format!("The registry is not available; the local image `{image}` is used.\n");
        output.write(line.as_bytes()).await;
        Ok(())
    }

    /// Removes the images of earlier attempts at the deployment: they have lost their tag to this one.
    async fn remove_nameless(&self, owner: &Owner) {
        if owner.attempt < 2 {
            return;
        }
        let found = match self.docker.images(&[Label::of_instance(self.options.instance)]).await {
            Ok(found) => self.docker.inspect_images(&found).await,
            Err(failure) => Err(failure),
        };
        for record in found.unwrap_or_default() {
            let whose = record.get("labels").and_then(labels::owner_of_image);
            if whose.is_none_or(|whose| whose.deployment != owner.deployment) {
                continue;
            }
            let is_nameless =
                record.get("names").and_then(|names| names.as_array()).is_none_or(Vec::is_empty);
            if let Some(id) = ImageId::read(&record).filter(|_| is_nameless) {
                // A container of the earlier attempt may still use it.
                let _in_use = self.docker.remove_nameless(&id).await;
            }
        }
    }
}

fn no_image(image: &ImageRef) -> StepError {
    StepError::Rejected(format!("there is no image `{}`", image.as_str()))
}
