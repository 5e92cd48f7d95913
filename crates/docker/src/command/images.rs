//! The commands about images.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use launchway_domain::deployments::{BuildCache, ImageName, Output, Owner};
use launchway_system::process::Invocation;
use serde_json::{Value, json};

use super::{Docker, ERROR_LINES, NetworkId, RetryBudget, unreadable, with_labels};

use crate::{
    BuildLimits, Builder,
    command::cpu_limited,
    environment::BuildArguments,
    errors::EngineError,
    labels::{self, Label},
    registries::{PermittedImage, PullError, RegistryFailure},
};

/// The longest part of an engine's message that is logged, in characters.
const LONGEST_SHOWN: usize = 500;
/// The CPU weight of a build. A service of the machine has 1024.
const BUILD_CPU_SHARES: u32 = 256;

/// An image, by the engine's id: `sha256:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageId(String);

impl ImageId {
    fn parse(text: &str) -> Option<Self> {
        let hex = text.trim().strip_prefix("sha256:")?;
        let is_id = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| Self(text.trim().to_owned()))
    }

    /// Reads the id from a record of docker.
    pub(crate) fn read(record: &Value) -> Option<Self> {
        Self::parse(record.get("id")?.as_str()?)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// An image to be built.
#[derive(Debug)]
pub(crate) struct NewImage<'a> {
    pub(crate) name: &'a ImageName,
    pub(crate) labels: &'a [Label],
    pub(crate) arguments: &'a BuildArguments,
    pub(crate) limits: BuildLimits,
    /// The parent of the control groups of its steps.
    pub(crate) cgroup_parent: Option<&'a str>,
    /// The images whose layers may be reused.
    pub(crate) known: &'a [ImageName],
    pub(crate) cache: BuildCache,
    pub(crate) dockerfile: Vec<u8>,
    /// The target stage of the build; the last one if `None`.
    pub(crate) target: Option<&'a str>,
    /// The build context; empty if `None`.
    pub(crate) folder: Option<&'a Path>,
}

impl Docker {
    /// Returns whether the client can build with BuildKit: since version 23 it needs the component buildx. Does not involve the
    /// engine.
    pub(crate) async fn has_buildkit(&self) -> Result<bool, EngineError> {
        match self.answer(self.call(&["build", "--help"]).env("DOCKER_BUILDKIT", "1")).await {
            Ok(_help) => Ok(true),
            Err(failure) if failure.says("buildx component is missing") => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Returns whether the client can build without BuildKit. Does not involve the engine.
    pub(crate) async fn has_legacy_builder(&self) -> Result<bool, EngineError> {
        let help = self.answer(self.call(&["build", "--help"]).env("DOCKER_BUILDKIT", "0")).await?;
        // BuildKit takes this option too, ignores it, and does not show it.
        Ok(help.contains("--memory-swap"))
    }

    /// Returns the cgroup driver, the cgroup version, the kernel and the host name of the engine.
    pub(crate) async fn cgroup_settings(&self) -> Result<String, EngineError> {
        const FORMAT: &str = "{{.CgroupDriver}} {{.CgroupVersion}} {{.KernelVersion}} {{.Name}}";
        self.answer(self.call(&["info", "--format", FORMAT])).await
    }

    /// Returns the id of the engine.
    pub(crate) async fn engine_id(&self) -> Result<String, EngineError> {
        self.answer(self.call(&["info", "--format", "{{.ID}}"])).await
    }

    /// Builds an image whose steps run in `network`.
    pub(crate) async fn build(
        &self,
        image: &NewImage<'_>,
        network: &NetworkId,
        builder: Builder,
        limit: Duration,
        output: Arc<dyn Output>,
    ) -> Result<(), EngineError> {
        let mut retries = RetryBudget::new();
        loop {
            match self.stream(self.build_call(image, network, builder, limit), output.clone()).await {
                Err(failure) if retries.should_retry(&failure).await => {}
                done => return done,
            }
        }
    }

    fn build_call(
        &self,
        image: &NewImage<'_>,
        network: &NetworkId,
        builder: Builder,
        limit: Duration,
    ) -> Invocation {
        let call = self.call_within(limit, &["build"]);
        let mut call = if builder == Builder::BuildKit {
            // The builder inside the engine, whatever the operator's default: only its images can be run.
            call.env("DOCKER_BUILDKIT", "1").env("BUILDX_BUILDER", "default").args(["--progress", "plain"])
        } else {
            let memory = image.limits.memory.to_string();
            let call = cpu_limited(call.env("DOCKER_BUILDKIT", "0"), image.limits.cpus, BUILD_CPU_SHARES);
            let call = match image.cgroup_parent {
                Some(parent) => call.args(["--cgroup-parent", parent]),
                None => call,
            };
            let call = call
                .args(["--force-rm", "--memory", &memory, "--memory-swap", &memory])
                // Not the engine's own network, which the builds of all organizations would share.
                .args(["--network", network.as_str()]);
            // Layers of other applications are not reused. A name that does not exist yet has no effect,
            // but without any name the engine would consider all images.
            let names = std::iter::once(image.name).chain(image.known);
            names.fold(call, |call, name| call.args(["--cache-from", name.as_str()]))
        };
        if image.cache == BuildCache::Ignore {
            call = call.arg("--no-cache");
        }
        for argument in &image.arguments.options {
            call = call.arg("--build-arg").arg(argument);
        }
        for (name, value) in &image.arguments.inherited {
            call = call.env(name, value);
        }
        let mut dockerfile = image.dockerfile.clone();
        match image.target {
            // The last stage is built: one instruction for all labels is one step, and one for each option would be several.
            None => dockerfile.extend(labels::instruction(image.labels).into_bytes()),
            Some(target) => {
                for label in image.labels {
                    call = call.args(["--label", label.as_str()]);
                }
                call = call.args(["--target", target]);
            }
        }
        call = call.args(["--tag", image.name.as_str()]);
        call = match image.folder {
            Some(folder) => call.args(["--file", "-"]).arg(folder),
            None => call.arg("-"),
        };
        call.input(dockerfile)
    }

    /// Pulls an image. The engine's message of a failure may quote a registry, and goes to the server's log
    /// only.
    pub(crate) async fn pull(&self, image: &PermittedImage, limit: Duration) -> Result<(), PullError> {
        let call = self.call_within(limit, &["pull", "--quiet", "--", image.as_str()]);
        let finished = match call.run().await {
            Ok(finished) if finished.succeeded() => return Ok(()),
            Ok(finished) => finished,
            Err(error) => return Err(PullError::Engine(self.diagnose(EngineError::Client(error)).await)),
        };
        // The message alone does not distinguish an engine that is down from a registry that says so.
        if let Err(why) = self.ping().await {
            return Err(PullError::Engine(EngineError::Unavailable(why)));
        }
        let error_text = finished.last_error_lines(ERROR_LINES);
        let failure = RegistryFailure::classify(&error_text);
        let shown: String = error_text.chars().filter(|c| !c.is_control()).take(LONGEST_SHOWN).collect();
        tracing::debug!(image = image.as_str(), ?failure, engine = shown, "image pull failed");
        Err(PullError::Registry(failure))
    }

    pub(crate) async fn tag(&self, image: &ImageName, name: &ImageName) -> Result<(), EngineError> {
        self.answer(self.call(&["tag", image.as_str(), name.as_str()])).await.map(drop)
    }

    /// Returns whether an image has exactly this reference. An id, or the beginning of one, does not count.
    pub(crate) async fn has_image(&self, reference: &str) -> Result<bool, EngineError> {
        let call = self.call(&["image", "ls", "--no-trunc", "--format", "{{.ID}}", "--filter"]);
        let listed = self.answer(call.arg(format!("reference={reference}"))).await?;
        Ok(listed.lines().any(|line| ImageId::parse(line).is_some()))
    }

    /// Returns the images that were built for an application, newest first.
    pub(crate) async fn images_of(&self, owner: &Owner) -> Result<Vec<ImageName>, EngineError> {
        let call = self.call(&["image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "--filter"]);
        let listed = self.answer(call.arg(format!("reference=launchway/{}:*", owner.application))).await?;
        Ok(listed.lines().filter_map(|name| name.trim().parse().ok()).collect())
    }

    /// Returns the images with all of these labels, whether they have a name or not.
    pub(crate) async fn images(&self, labels: &[Label]) -> Result<Vec<ImageId>, EngineError> {
        let call = self.call(&["image", "ls", "--no-trunc", "--format", "{{.ID}}"]);
        let listed = self.listed(with_labels(call, labels)).await?;
        let ids = listed.lines().filter(|line| !line.trim().is_empty()).map(ImageId::parse);
        ids.collect::<Option<Vec<_>>>().ok_or_else(unreadable)
    }

    /// Returns the images that have a name of the deployment of `owner`, one for each of its services.
    pub(crate) async fn images_of_deployment(&self, owner: &Owner) -> Result<Vec<ImageId>, EngineError> {
        let call = self.call(&["image", "ls", "--no-trunc", "--format", "{{.ID}}", "--filter"]);
        let reference = format!("reference=launchway/{}:{}*", owner.application, owner.deployment);
        let listed = self.listed(call.arg(reference)).await?;
        let lines = listed.lines().filter(|line| !line.trim().is_empty());
        // An image is listed once for each of its names.
        let ids: BTreeSet<&str> = lines.collect();
        ids.into_iter().map(ImageId::parse).collect::<Option<Vec<_>>>().ok_or_else(unreadable)
    }

    /// Returns the labels, names and size of each image that still exists.
    pub(crate) async fn inspect_images(&self, images: &[ImageId]) -> Result<Vec<Value>, EngineError> {
        const FORMAT: &str = r#"{"id":{{json .Id}},"labels":{{json .Config.Labels}},"names":{{json .RepoTags}},"size":{{json .Size}}}"#;
        if images.is_empty() {
            return Ok(Vec::new());
        }
        let call = self.call(&["image", "inspect", "--format", FORMAT]);
        self.existing_records(call.args(images.iter().map(ImageId::as_str))).await
    }

    /// Returns the id and the labels of the image that has exactly this reference, in the form that docker
    /// lists; `None` if it is not present.
    pub(crate) async fn inspect_image(&self, reference: &str) -> Result<Option<Value>, EngineError> {
        const FORMAT: &str = r#"{"id":{{json .Id}},"labels":{{json .Config.Labels}}}"#;
        let call = self.call(&["image", "inspect", "--format", FORMAT, reference]);
        Ok(self.existing_records(call).await?.pop())
    }

    /// Returns the id, the triggers and the platform of an image; `None` if it is not present. The
    /// reference is in the form that docker lists, so that it is neither an option nor an id.
    pub(crate) async fn inspect_base(&self, reference: &str) -> Result<Option<Value>, EngineError> {
        const FORMAT: &str = r#"{"id":{{json .Id}},"triggers":{{json .Config.OnBuild}},"os":{{json .Os}},"architecture":{{json .Architecture}}}"#;
        if let Some(record) = self.base_by_socket(reference).await {
            return Ok(Some(record));
        }
        let call = self.call(&["image", "inspect", "--format", FORMAT, reference]);
        Ok(self.existing_records(call).await?.pop())
    }

    async fn base_by_socket(&self, reference: &str) -> Option<Value> {
        let image = self.socket().await?.image(reference).await?;
        let triggers = image.get("Config")?.as_object()?.get("OnBuild");
        Some(json!({
            "id": image.get("Id")?,
            "triggers": triggers,
            "os": image.get("Os")?,
            "architecture": image.get("Architecture")?,
        }))
    }

    /// Removes a name of an image, and the image with its last name.
    pub(crate) async fn remove_image(&self, image: &ImageName) -> Result<(), EngineError> {
        self.answer(self.call(&["image", "rm", image.as_str()])).await.map(drop)
    }

    /// Removes an image that has no name.
    pub(crate) async fn remove_nameless(&self, image: &ImageId) -> Result<(), EngineError> {
        self.answer(self.call(&["image", "rm", image.as_str()])).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_id_is_a_whole_hash() {
        let id = format!("sha256:{}", "a".repeat(64));
        assert_eq!(ImageId::parse(&format!("{id}\n")).unwrap().as_str(), id);
        for text in ["", "sha256:12", "--help", &"a".repeat(64), &format!("sha256:{}", "g".repeat(64))] {
            assert_eq!(ImageId::parse(text), None);
        }
    }
}
