//! Checks Dockerfiles and the images that they are built from.
//!
//! **Invariant:** every build is checked here, and the engine gets the text that was rendered from the
//! checked tree ([`launchway_domain::dockerfile`]).

use std::{collections::HashMap, sync::Arc, time::Instant};

use launchway_domain::{
    applications::Variables,
    deployments::{BuildPlan, Output, StepError},
    dockerfile::{BaseImage, CheckedDockerfile, Dockerfile, DockerfileBuilder, Policy},
};
use serde_json::Value;

use super::{
    Builder, DockerEngine,
    command::ImageId,
    errors::EngineError,
    registries::{PermittedImage, Pulled},
};

/// The images that were inspected for a build, by the names under which docker lists them.
struct Inspection<'a> {
    engine: &'a DockerEngine,
    output: &'a Arc<dyn Output>,
    started: Instant,
    records: HashMap<String, Value>,
}

impl DockerEngine {
    /// Returns the Dockerfile that is built in place of the repository's, after every image that it needs
    /// was pulled and inspected: one that the builder pulls itself would not have been.
    pub(crate) async fn canonical_dockerfile(
        &self,
        dockerfile: &[u8],
        plan: &BuildPlan,
        output: &Arc<dyn Output>,
    ) -> Result<Vec<u8>, StepError> {
        let scope = format!("launchway-{}", plan.owner.application);
        let policy = self.policy(&plan.variables, &scope).await?;
        let checked = Dockerfile::parse(dockerfile).and_then(|tree| policy.check(tree));
        let mut checked = checked
            .map_err(|rejection| StepError::Rejected(format!("the Dockerfile is refused: {rejection}")))?;
        self.inspect_images_of(&mut checked, &policy, output).await?;
        Ok(checked.render().into_bytes())
    }

    /// Returns a Dockerfile that consists of `FROM` only. The image is present.
    pub(crate) async fn dockerfile_from(
        &self,
        image: &PermittedImage,
        output: &Arc<dyn Output>,
    ) -> Result<Vec<u8>, StepError> {
        let reference = image.as_str();
        let variables = Variables::default();
        let policy = self.policy(&variables, "launchway").await?;
        let mut inspection = Inspection::new(self, output);
        let record = inspection.record_of(image).await?;
        inspection.check_triggers(reference, &record, &[], &policy).await?;
        let image = match ImageId::read(&record).filter(|_| policy.builder == DockerfileBuilder::Legacy) {
            Some(id) => id.as_str().to_owned(),
            None => reference.to_owned(),
        };
        Ok(format!("FROM {image}\n").into_bytes())
    }

    async fn policy<'a>(
        &self,
        variables: &'a Variables,
        cache_scope: &'a str,
    ) -> Result<Policy<'a>, StepError> {
        let builder = match self.builder().await? {
            Builder::BuildKit => DockerfileBuilder::BuildKit,
            Builder::Auto | Builder::Legacy => DockerfileBuilder::Legacy,
        };
        Ok(Policy { variables, builder, cache_scope })
    }

    async fn inspect_images_of(
        &self,
        checked: &mut CheckedDockerfile,
        policy: &Policy<'_>,
        output: &Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let mut inspection = Inspection::new(self, output);
        let mut ids = HashMap::new();
        for base in checked.images() {
            let permitted = self.permit(&base.image)?;
            let record = inspection.record_of(&permitted).await?;
            if let Some(earlier) = &base.earlier_stages {
                check_platform(base, &record)?;
                inspection.check_triggers(permitted.as_str(), &record, earlier, policy).await?;
            }
            // BuildKit takes no id. It reads the triggers of the name at the time of the build.
            if policy.builder == DockerfileBuilder::Legacy
                && let Some(id) = ImageId::read(&record)
            {
                ids.insert(base.image.as_str().to_owned(), id.as_str().to_owned());
            }
        }
        checked.pin(|image| ids.get(image.as_str()).cloned());
        Ok(())
    }
}

impl<'a> Inspection<'a> {
    fn new(engine: &'a DockerEngine, output: &'a Arc<dyn Output>) -> Self {
        Self { engine, output, started: Instant::now(), records: HashMap::new() }
    }

    /// Checks the `ONBUILD` instructions that the image adds to the build.
    async fn check_triggers(
        &mut self,
        reference: &str,
        record: &Value,
        earlier: &[String],
        policy: &Policy<'_>,
    ) -> Result<(), StepError> {
        let refused = |why: String| {
            StepError::Rejected(format!("the `ONBUILD` trigger of the image `{reference}` is refused: {why}"))
        };
        let triggers = match record.get("triggers") {
            None | Some(Value::Null) => return Ok(()),
            Some(triggers) => triggers.as_array().ok_or_else(|| refused("it is not a list".to_owned()))?,
        };
        for trigger in triggers {
            let text = trigger.as_str().ok_or_else(|| refused("it is not a text".to_owned()))?;
            for copied in policy.check_trigger(text, earlier).map_err(refused)? {
                self.record_of(&self.engine.permit(&copied)?).await?;
            }
        }
        Ok(())
    }

    /// Returns the record of an image, which is pulled if it is not present.
    async fn record_of(&mut self, image: &PermittedImage) -> Result<Value, StepError> {
        let reference = image.as_str();
        if let Some(record) = self.records.get(reference) {
            return Ok(record.clone());
        }
        let docker = &self.engine.docker;
        let found = match docker.inspect_base(reference).await.map_err(EngineError::or_fault)? {
            Some(record) => Some(record),
            None => {
                self.pull(image).await?;
                docker.inspect_base(reference).await.map_err(EngineError::or_fault)?
            }
        };
        let record = found.ok_or_else(|| {
            StepError::Retryable(format!("the image `{reference}` was removed after it was pulled"))
        })?;
        self.records.insert(reference.to_owned(), record.clone());
        Ok(record)
    }

    async fn pull(&self, image: &PermittedImage) -> Result<(), StepError> {
        let left = self.engine.options.build_limits.time.saturating_sub(self.started.elapsed());
        match self.engine.pull_permitted(image, left, self.output).await? {
            Pulled::Fresh => Ok(()),
            Pulled::NotAsked(why) => {
                Err(StepError::Rejected(format!("there is no image `{}`: {why}", image.as_str())))
            }
        }
    }
}

/// For another platform the builder would use another image of the same name, with other triggers.
fn check_platform(base: &BaseImage, record: &Value) -> Result<(), StepError> {
    let Some(platform) = &base.platform else { return Ok(()) };
    let part = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    let own = format!("{}/{}", part("os"), part("architecture"));
    if *platform == own {
        return Ok(());
    }
    Err(StepError::Rejected(format!(
        "the Dockerfile is refused: line {}: `{}` is built for `{own}`: the platform `{platform}` cannot be chosen",
        base.line,
        base.image.as_str()
    )))
}
