//! Builds images on this machine, and publishes them to the registry that the nodes pull from.

use std::sync::Arc;

use async_trait::async_trait;
use launchway_domain::{
    applications::ImageRef,
    deployments::{BuildPlan, ImageBuilder, ImageDigest, ImageName, Output, Owner, StepError},
};

use super::SwarmEngine;
use crate::{errors::EngineError, registries::RegistryFailure};

/// An image in the registry, by its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublishedImage(String);

impl PublishedImage {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[async_trait]
impl ImageBuilder for SwarmEngine {
    async fn build(&self, plan: &BuildPlan, output: Arc<dyn Output>) -> Result<ImageName, StepError> {
        let name = self.engine.build(plan, Arc::clone(&output)).await?;
        self.publish(&name, Some(&output)).await
    }

    async fn obtain(
        &self,
        owner: &Owner,
        image: &ImageRef,
        output: Arc<dyn Output>,
    ) -> Result<ImageName, StepError> {
        let name = self.engine.obtain(owner, image, Arc::clone(&output)).await?;
        self.publish(&name, Some(&output)).await
    }

    /// The image keeps its digest, so that nothing is pushed. It may have been built on another manager.
    async fn reuse(&self, owner: &Owner, image: &ImageName) -> Result<ImageName, StepError> {
        self.fetch(image).await?;
        let name = self.engine.reuse(owner, &image.without_digest()).await?;
        match image.digest() {
            Some(digest) => Ok(name.with_digest(&digest)),
            // It was built before the installation had a registry.
            None => self.publish(&name, None).await,
        }
    }
}

impl SwarmEngine {
    /// Returns the image as the nodes pull it. One that was built before the installation had a registry is published first.
    pub(super) async fn published(&self, image: &ImageName) -> Result<PublishedImage, StepError> {
        let name = match image.digest() {
            Some(_) => image.clone(),
            None => self.publish(image, None).await?,
        };
        let digest =
            name.digest().ok_or_else(|| StepError::Retryable("the image has no digest".to_owned()))?;
        Ok(self.reference(&name, &digest))
    }

    fn reference(&self, image: &ImageName, digest: &ImageDigest) -> PublishedImage {
        let registry = self.options.registry.as_str();
        PublishedImage(format!("{registry}/{}@{digest}", image.repository()))
    }

    /// Pushes an image of this machine, and returns its name with the digest of the registry.
    async fn publish(
        &self,
        image: &ImageName,
        output: Option<&Arc<dyn Output>>,
    ) -> Result<ImageName, StepError> {
        let (docker, registry) = (&self.engine.docker, &self.options.registry);
        let pushed = format!("{registry}/{}", image.as_str());
        match docker.tag_for_push(image, &pushed).await {
            Err(failure) if failure.is_gone() => return Err(no_image()),
            tagged => tagged.map_err(EngineError::or_fault)?,
        }
        if let Some(output) = output {
            output.write(format!("Pushing the image to {}\n", registry.host()).as_bytes()).await;
        }
        let answer = docker.push(&pushed, self.engine.options.build_limits.time).await;
        // The name of the deployment stays; the image can be removed by that one alone.
        let removed = docker.remove_pushed_name(&pushed).await;
        if let Err(error) = removed {
            tracing::warn!(image = pushed, error = ?error, "name of a pushed image could not be removed");
        }
        let answer = answer.map_err(|failure| self.not_pushed(failure))?;
        let digest = pushed_digest(&answer).ok_or_else(|| {
            StepError::Retryable("docker reported no digest of the pushed image".to_owned())
        })?;
        Ok(image.with_digest(&digest))
    }

    /// Makes sure that this machine has an image under the name of its deployment.
    pub(super) async fn fetch(&self, image: &ImageName) -> Result<(), StepError> {
        let (docker, name) = (&self.engine.docker, image.without_digest());
        if docker.has_image(name.as_str()).await.map_err(EngineError::or_fault)? {
            return Ok(());
        }
        let reference = self.reference(image, &image.digest().ok_or_else(no_image)?);
        let limit = self.engine.options.build_limits.time;
        docker.pull_published(&reference, limit).await.map_err(|failure| self.not_pulled(failure))?;
        docker.tag_pulled(&reference, &name).await.map_err(EngineError::or_fault)
    }

    fn not_pushed(&self, failure: EngineError) -> StepError {
        let host = self.options.registry.host();
        let reason = match self.class(&failure) {
            Ok(RegistryFailure::Unreachable) => format!("the registry `{host}` cannot be reached"),
            Ok(RegistryFailure::Unauthorized) => {
                format!("the registry `{host}` does not let this installation push (`docker login {host}`)")
            }
            Ok(_) => format!("the registry `{host}` did not take it"),
            Err(()) => return failure.or_fault(),
        };
        StepError::Rejected(format!("the image cannot be pushed: {reason}"))
    }

    fn not_pulled(&self, failure: EngineError) -> StepError {
        let host = self.options.registry.host();
        let reason = match self.class(&failure) {
            Ok(RegistryFailure::Unreachable) => format!("the registry `{host}` cannot be reached"),
            Ok(RegistryFailure::NotFound) => format!("the registry `{host}` does not have it any more"),
            Ok(_) => format!("the registry `{host}` did not return it"),
            Err(()) => return failure.or_fault(),
        };
        StepError::Rejected(format!("the image of that deployment cannot be pulled: {reason}"))
    }

    /// Classifies an error of a push or a pull; `Err` if it is not one of the registry.
    fn class(&self, failure: &EngineError) -> Result<RegistryFailure, ()> {
        let EngineError::Message(error_text) = failure else { return Err(()) };
        if failure.unavailability().is_some() {
            return Err(());
        }
        tracing::warn!(registry = %self.options.registry, error = error_text, "registry request failed");
        match RegistryFailure::classify(error_text) {
            RegistryFailure::Machine | RegistryFailure::Engine => Err(()),
            class => Ok(class),
        }
    }
}

/// Returns the digest from the last line of a push: `<tag>: digest: sha256:… size: 528`.
fn pushed_digest(answer: &str) -> Option<ImageDigest> {
    let line = answer.lines().rfind(|line| line.contains(" digest: "))?;
    line.split_once(" digest: ")?.1.split_whitespace().next()?.parse().ok()
}

fn no_image() -> StepError {
    StepError::Rejected("the image of that deployment no longer exists".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_in_the_last_line_of_a_push() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let answer =
            format!("The push refers to repository [r/x]\n5f70: Pushed\n1: digest: {digest} size: 528\n");
        assert_eq!(pushed_digest(&answer).unwrap().as_str(), digest);
        for answer in ["", "5f70: Pushed\n", "1: digest: sha256:12 size: 3\n"] {
            assert_eq!(pushed_digest(answer), None);
        }
    }
}
