//! Registries: the engine connects only to those that the operator allows, and nothing of their responses
//! reaches a tenant.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use async_trait::async_trait;
use launchway_docker::DockerOptions;
use launchway_domain::{
    applications::RegistryPolicy,
    deployments::{ImageBuilder as _, StepError},
};
use launchway_system::resolver::Resolver;
use launchway_testkit::docker::{FakeRegistry, base_image, docker, registry_response};

use crate::{
    installation::{Installation, owner},
    recorder::Recorder,
};

/// A word of a response that no tenant may see.
const SECRET: &str = "secret-of-the-metadata-service";

/// A policy with these entries.
fn allowing(entries: &[&str]) -> RegistryPolicy {
    RegistryPolicy::allowing(entries.iter().map(|entry| entry.parse().unwrap()).collect())
}

fn refused(outcome: Result<impl std::fmt::Debug, StepError>) -> String {
    match outcome {
        Err(StepError::Rejected(message)) => message,
        other => panic!("{other:?}"),
    }
}

async fn obtain(installation: &Installation, image: &str) -> (String, String) {
    let recorder = Arc::new(Recorder::default());
    let obtained = installation.engine.obtain(&owner(), &image.parse().unwrap(), recorder.clone()).await;
    (refused(obtained), recorder.text())
}

async fn build(installation: &Installation, dockerfile: &str) -> (String, String) {
    installation.write("Dockerfile", dockerfile);
    let recorder = Arc::new(Recorder::default());
    let built = installation.engine.build(&installation.plan(owner()), recorder.clone()).await;
    (refused(built), recorder.text())
}

#[tokio::test]
async fn a_registry_that_is_not_allowed_is_not_connected_to() {
    let registry = FakeRegistry::empty();
    let image = registry.image();
    let installation = Installation::with(|options| options.registries = RegistryPolicy::default());
    let base = base_image();
    let message = obtain(&installation, &image).await.0;
    assert!(
        message.contains("no image may come from the registry")
            && message.contains("LAUNCHWAY_IMAGE_REGISTRIES"),
        "{message}"
    );
    for dockerfile in [
        format!("FROM {image}\n"),
        format!("FROM {base}\nCOPY --from={image} /x /x\n"),
        format!("ARG BASE={image}\nFROM $BASE\n"),
    ] {
        let message = build(&installation, &dockerfile).await.0;
        assert!(message.contains("no image may come from the registry"), "{message}");
    }
    assert_eq!(registry.requests(), 0);
}

#[tokio::test]
async fn an_image_here_of_a_refused_registry_is_not_used() {
    let installation = Installation::with(|options| options.registries = RegistryPolicy::default());
    let image = format!("127.0.0.1:9/launchway-test/{}:refused", installation.instance);
    docker(&["tag", base_image(), &image]);
    let obtained = obtain(&installation, &image).await.0;
    let built = build(&installation, &format!("FROM {image}\n")).await.0;
    docker(&["image", "rm", &image]);
    for reported in [obtained, built] {
        assert!(reported.contains("no image may come from the registry `127.0.0.1:9`"), "{reported}");
    }
}

#[tokio::test]
async fn a_missing_image_is_reported_in_our_words() {
    let registry = FakeRegistry::empty();
    let host = format!("127.0.0.1:{}", registry.port);
    let installation = Installation::with(|options| options.registries = allowing(&[&host]));
    let (reported, log) = obtain(&installation, &registry.image()).await;
    let expected =
        format!("there is no image `{}`: the registry `{host}` does not have it", registry.image());
    assert_eq!(reported, expected);
    assert_eq!(log, format!("Pulling the image `{}`\n", registry.image()));
    assert!(registry.requests() > 0);
}

#[tokio::test]
async fn answers_of_a_registry_reach_no_tenant() {
    // The engine is made to fetch a token from an address of its own machine, and repeats that response.
    let inner =
        FakeRegistry::answering(registry_response("418 Teapot", "Content-Type: text/plain\r\n", SECRET));
    let challenge = format!("WWW-Authenticate: Bearer realm=\"http://127.0.0.1:{}/token\"\r\n", inner.port);
    let registry = FakeRegistry::answering(registry_response("401 Unauthorized", &challenge, SECRET));
    let host = format!("127.0.0.1:{}", registry.port);
    let installation = Installation::with(|options| options.registries = allowing(&[&host]));
    for (reported, log) in [
        obtain(&installation, &registry.image()).await,
        build(&installation, &format!("FROM {}\n", registry.image())).await,
    ] {
        assert!(reported.starts_with("there is no image `127.0.0.1:"), "{reported}");
        assert!(!reported.contains(SECRET) && !log.contains(SECRET), "{reported}\n{log}");
        assert!(!reported.contains("realm") && !reported.contains("/token"), "{reported}");
    }
    assert!(
        inner.requests() > 0,
        "the engine has followed the registry, so that there was something to show"
    );
}

/// Resolves every name to an address of this machine.
#[derive(Debug)]
struct Loopback;

#[async_trait]
impl Resolver for Loopback {
    async fn resolve(&self, _name: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }
}

#[tokio::test]
async fn a_public_name_with_a_private_address_is_refused() {
    let change = |entries: &'static [&str]| {
        move |options: &mut DockerOptions| {
            options.registries = allowing(entries);
            options.resolver = Arc::new(Loopback);
        }
    };
    for entries in [&["public"][..], &["*"], &["*", "public"]] {
        let installation = Installation::with(change(entries));
        let message = obtain(&installation, "ghcr.io/launchway-test/nothing").await.0;
        assert!(message.contains("has an address that is not public"), "{message}");
    }
}
