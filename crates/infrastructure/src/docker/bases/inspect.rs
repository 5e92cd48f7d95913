//! Has the images here that a build needs, and looks at what they tell whoever builds on them.

use std::{sync::Arc, time::Instant};

use launchway_domain::{
    applications::Variables,
    deployments::{Output, StepError},
};
use serde_json::Value;

use super::{Base, bases_of, bases_of_trigger};
use crate::{
    docker::{DockerEngine, complaints::Failure},
    process::ProcessError,
};

impl DockerEngine {
    /// Refuses a Dockerfile from which another organization's image could be read, and has every
    /// image here that it needs: one that the builder gets by itself would not have been looked at.
    pub(in crate::docker) async fn check_bases(
        &self,
        dockerfile: &[u8],
        variables: &Variables,
        output: &Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let text = String::from_utf8_lossy(dockerfile);
        let bases = bases_of(&text, variables).map_err(StepError::Refused)?;
        self.look_at(bases, output).await
    }

    /// The same for a build that has nothing but `FROM reference`. The image is here.
    pub(in crate::docker) async fn check_triggers(
        &self,
        reference: &str,
        output: &Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let base = Base { reference: reference.to_owned(), begins_after: Some(Vec::new()), platform: None };
        self.look_at(vec![base], output).await
    }

    async fn look_at(&self, bases: Vec<Base>, output: &Arc<dyn Output>) -> Result<(), StepError> {
        let started = Instant::now();
        for base in &bases {
            let record = self.record_of(base, started, output).await?;
            let Some(earlier) = &base.begins_after else { continue };
            check_platform(base, &record)?;
            let triggers = record.get("triggers").and_then(Value::as_array).cloned().unwrap_or_default();
            for trigger in &triggers {
                let refused = |why: String| {
                    let reference = &base.reference;
                    StepError::Refused(format!(
                        "what the image `{reference}` has done `ONBUILD` is refused: {why}"
                    ))
                };
                let text = trigger.as_str().ok_or_else(|| refused("it is no text".to_owned()))?;
                for copied in bases_of_trigger(text, earlier).map_err(refused)? {
                    self.record_of(&copied, started, output).await?;
                }
            }
        }
        Ok(())
    }

    /// What docker knows of the image, which is got if it is not here.
    async fn record_of(
        &self,
        base: &Base,
        started: Instant,
        output: &Arc<dyn Output>,
    ) -> Result<Value, StepError> {
        let reference = base.reference.as_str();
        if let Some(record) = self.docker.inspect_base(reference).await.map_err(Failure::or_fault)? {
            return Ok(record);
        }
        let left = self.options.build_limits.time.saturating_sub(started.elapsed());
        if let Err(failure) = self.docker.pull(reference, left, output.clone()).await {
            if let Failure::Client(ProcessError::TookTooLong(..)) = failure {
                return Err(StepError::Refused(format!("getting the image `{reference}` took too long")));
            }
            return Err(match failure.or_refused() {
                StepError::Refused(why) => {
                    StepError::Refused(format!("there is no image `{reference}`: {why}"))
                }
                fault => fault,
            });
        }
        let record = self.docker.inspect_base(reference).await.map_err(Failure::or_fault)?;
        record.ok_or_else(|| StepError::Fault(format!("the image `{reference}` is gone again")))
    }
}

/// For another platform the builder would get another image of the same name, which may tell
/// something else.
fn check_platform(base: &Base, record: &Value) -> Result<(), StepError> {
    let Some(platform) = &base.platform else { return Ok(()) };
    let part = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    let own = format!("{}/{}", part("os"), part("architecture"));
    if *platform == own {
        return Ok(());
    }
    Err(StepError::Refused(format!(
        "`{}` is built for `{own}`: the platform `{platform}` cannot be chosen",
        base.reference
    )))
}
