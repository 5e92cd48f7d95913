//! The only way in which the engine gets images: from registries that the operator allows, at addresses
//! that the policy permits.
//!
//! **Invariant:** [`super::command::Docker::pull`] takes a [`PermittedImage`], which only this module
//! creates. The text that the engine gets is rendered from the parsed reference.
//!
//! **Invariant:** no answer of a registry reaches a tenant. A registry may make the engine fetch any URL
//! (`WWW-Authenticate: Bearer realm=…`), and the engine repeats the body of the response when that fails.

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    applications::{ImageRef, Reference, Registry, RegistryAccess},
    deployments::{Output, StepError},
};
use launchway_system::{process::ProcessError, resolver::look_up};

use super::{DockerEngine, errors::EngineError, references};

/// The timeout of resolving the name of a registry.
const LOOKUP_TIME: Duration = Duration::from_secs(5);

/// An image that may be pulled, by the name that the engine lists it under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PermittedImage {
    text: String,
    registry: Registry,
    access: RegistryAccess,
}

impl PermittedImage {
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

/// An error of pulling an image.
#[derive(Debug)]
pub(super) enum PullError {
    /// The client or the engine failed.
    Engine(EngineError),
    /// The registry answered with an error, or could not be reached.
    Registry(RegistryFailure),
}

/// The class of a registry's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegistryFailure {
    NotFound,
    Unauthorized,
    RateLimited,
    Unreachable,
    /// This machine has no space, or no more of another resource.
    Machine,
    /// The engine failed before it contacted a registry.
    Engine,
    Other,
}

/// Parts of the engine's messages in lower case. The first match counts.
const CLASSES: &[(&str, RegistryFailure)] = &[
    ("for api route and version", RegistryFailure::Engine),
    ("toomanyrequests", RegistryFailure::RateLimited),
    ("too many requests", RegistryFailure::RateLimited),
    ("manifest unknown", RegistryFailure::NotFound),
    ("name unknown", RegistryFailure::NotFound),
    ("repository does not exist", RegistryFailure::NotFound),
    ("no matching manifest", RegistryFailure::NotFound),
    ("no such host", RegistryFailure::Unreachable),
    ("dial tcp", RegistryFailure::Unreachable),
    ("i/o timeout", RegistryFailure::Unreachable),
    ("tls handshake timeout", RegistryFailure::Unreachable),
    ("connection refused", RegistryFailure::Unreachable),
    ("connection reset", RegistryFailure::Unreachable),
    ("network is unreachable", RegistryFailure::Unreachable),
    ("client.timeout", RegistryFailure::Unreachable),
    ("request canceled", RegistryFailure::Unreachable),
    ("server misbehaving", RegistryFailure::Unreachable),
    ("proxyconnect", RegistryFailure::Unreachable),
    ("bad gateway", RegistryFailure::Unreachable),
    ("service unavailable", RegistryFailure::Unreachable),
    ("unauthorized", RegistryFailure::Unauthorized),
    ("denied", RegistryFailure::Unauthorized),
    ("authentication required", RegistryFailure::Unauthorized),
    ("no basic auth credentials", RegistryFailure::Unauthorized),
    ("no space left on device", RegistryFailure::Machine),
    ("disk quota exceeded", RegistryFailure::Machine),
    ("too many open files", RegistryFailure::Machine),
    ("not found", RegistryFailure::NotFound),
];

impl RegistryFailure {
    /// Classifies the engine's message after a pull that failed.
    pub(super) fn classify(error_text: &str) -> Self {
        let text = error_text.to_lowercase();
        let known = CLASSES.iter().find(|(words, _)| text.contains(words));
        known.map_or(Self::Other, |(_, class)| *class)
    }

    /// Returns whether the registry was not reached, and so may have the image.
    fn is_unreachable(self) -> bool {
        matches!(self, Self::Unreachable | Self::RateLimited)
    }

    fn describe(self, registry: &Registry) -> String {
        match self {
            Self::NotFound => format!("the registry `{registry}` does not have it"),
            Self::Unauthorized => {
                format!(
                    "the registry `{registry}` does not have it, or does not let this installation read it"
                )
            }
            Self::RateLimited => format!("the registry `{registry}` has had too many requests"),
            Self::Unreachable => format!("the registry `{registry}` cannot be reached"),
            Self::Machine => "this machine has no room for it".to_owned(),
            Self::Engine => "the Docker engine failed to pull it".to_owned(),
            Self::Other => format!("the registry `{registry}` gave no usable answer"),
        }
    }
}

impl DockerEngine {
    /// Checks whether an image may come from its registry. Every image that is used by a name from outside
    /// is checked here, even if it is on this machine already.
    pub(super) fn permit(&self, image: &ImageRef) -> Result<PermittedImage, StepError> {
        let reference = references::parse(image)
            .ok_or_else(|| StepError::Rejected(format!("there is no image `{}`", image.as_str())))?;
        self.permit_reference(&reference)
    }

    fn permit_reference(&self, reference: &Reference) -> Result<PermittedImage, StepError> {
        let registry = reference.registry();
        match self.options.registries.access(registry) {
            Some(access) => {
                Ok(PermittedImage { text: reference.to_string(), registry: registry.clone(), access })
            }
            None => Err(StepError::Rejected(format!(
                "the image `{reference}` is refused: no image may come from the registry `{registry}` \
                 (LAUNCHWAY_IMAGE_REGISTRIES)"
            ))),
        }
    }

    /// Pulls an image. Returns whether it was pulled; if its registry could not be reached, it may be
    /// present locally.
    pub(super) async fn pull_permitted(
        &self,
        image: &PermittedImage,
        limit: Duration,
        output: &Arc<dyn Output>,
    ) -> Result<Pulled, StepError> {
        let registry = &image.registry;
        if image.access != RegistryAccess::Anywhere {
            let addresses = look_up(&*self.options.resolver, registry.host(), LOOKUP_TIME).await;
            if !image.access.permits(addresses.as_deref()) {
                let reason = match addresses {
                    Some(_) => "has an address that is not public, and the operator has not named it",
                    None => "has no address",
                };
                return Err(StepError::Rejected(format!(
                    "the image `{}` is refused: the registry `{registry}` {reason} (LAUNCHWAY_IMAGE_REGISTRIES)",
                    image.as_str()
                )));
            }
        }
        output.write(format!("Pulling the image `{}`\n", image.as_str()).as_bytes()).await;
        match self.docker.pull(image, limit).await {
            Ok(()) => Ok(Pulled::Fresh),
            Err(PullError::Engine(EngineError::Client(ProcessError::TookTooLong(..)))) => {
                Err(StepError::Rejected(format!("pulling the image `{}` took too long", image.as_str())))
            }
            Err(PullError::Engine(failure)) => Err(failure.or_fault()),
            Err(PullError::Registry(failure)) if failure.is_unreachable() => {
                Ok(Pulled::NotAsked(failure.describe(registry)))
            }
            Err(PullError::Registry(failure @ (RegistryFailure::Machine | RegistryFailure::Engine))) => Err(
                StepError::Retryable(format!("image `{}`: {}", image.as_str(), failure.describe(registry))),
            ),
            Err(PullError::Registry(failure)) => Err(StepError::Rejected(format!(
                "there is no image `{}`: {}",
                image.as_str(),
                failure.describe(registry)
            ))),
        }
    }
}

/// The result of a pull that was not rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pulled {
    Fresh,
    /// The registry could not be reached, for this reason.
    NotAsked(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_registries_are_classified() {
        for (text, class) in [
            (
                "manifest for nginx:nope not found: manifest unknown: manifest unknown",
                RegistryFailure::NotFound,
            ),
            (
                "pull access denied for x, repository does not exist or may require 'docker login'",
                RegistryFailure::NotFound,
            ),
            ("Get \"https://r/v2/\": dial tcp: lookup r: no such host", RegistryFailure::Unreachable),
            ("Get \"https://r/v2/x/manifests/1\": unauthorized: access to it", RegistryFailure::Unauthorized),
            ("toomanyrequests: You have reached your pull rate limit", RegistryFailure::RateLimited),
            ("write /x: no space left on device", RegistryFailure::Machine),
            (
                "request returned 500 Internal Server Error for API route and version http://x/v1.41/y",
                RegistryFailure::Engine,
            ),
            ("error parsing HTTP 418 response body: secret", RegistryFailure::Other),
        ] {
            assert_eq!(RegistryFailure::classify(text), class, "{text}");
        }
    }

    #[test]
    fn descriptions_hold_nothing_of_an_answer() {
        let image: ImageRef = "registry.example/a".parse().unwrap();
        let registry = references::parse(&image).unwrap().registry().clone();
        let described =
            RegistryFailure::classify("HTTP 418: the secret of the metadata service").describe(&registry);
        assert_eq!(described, "the registry `registry.example` gave no usable answer");
    }
}
