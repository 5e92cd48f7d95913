//! Webhooks: the secrets of repositories, pushes that deploy, and branches that are compared because
//! a push may get lost.

mod comparison;
mod handled;
mod payload;
mod receiving;
mod secrets;
mod verifying;

use std::sync::Arc;

use launchway_domain::{
    applications::ApplicationRepository, deployments::DeploymentRepository, secret::SecretBox,
    webhooks::WebhookRepository,
};

pub use self::{
    comparison::{Comparison, ComparisonPorts, ComparisonTimings},
    handled::{Handled, Ignored},
};
use crate::Tools;

/// What the use cases of webhooks read.
#[expect(missing_docs, reason = "the types say it")]
pub struct WebhookPorts {
    pub webhooks: Arc<dyn WebhookRepository>,
    pub applications: Arc<dyn ApplicationRepository>,
    pub deployments: Arc<dyn DeploymentRepository>,
    pub secrets: Arc<dyn SecretBox>,
}

/// Shows and replaces the secrets of webhooks, and does what code hosts tell.
pub struct Webhooks {
    ports: WebhookPorts,
    tools: Tools,
}

impl Webhooks {
    /// Works with `ports`.
    pub fn new(ports: WebhookPorts, tools: Tools) -> Self {
        Self { ports, tools }
    }
}
