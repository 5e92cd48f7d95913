//! Images of services come only from registries that the operator allows.

use launchway_domain::{applications::RegistryPolicy, deployments::StepError};
use launchway_testkit::docker::FakeRegistry;

use super::{Composing, plan};
use crate::installation::owner;

#[tokio::test]
async fn a_service_does_not_reach_a_registry_that_is_not_allowed() {
    let registry = FakeRegistry::empty();
    let composing = Composing::with(|options| options.registries = RegistryPolicy::default());
    for service in
        [format!("image: {}", registry.image()), format!("image: \"${{IMAGE:-{}}}\"", registry.image())]
    {
        composing
            .installation
            .write("compose.yaml", &format!("services: {{web: {{{service}, expose: [8080]}}}}\n"));
        let composed = composing.compose(&plan(owner())).await;
        let Err(StepError::Rejected(message)) = composed else { panic!("{composed:?}") };
        assert!(message.contains("no image may come from the registry `127.0.0.1:"), "{message}");
    }
    assert_eq!(registry.requests(), 0);
}
