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
pub struct WebhookPorts {
    /// Reads the secrets of repositories, and who follows a branch.
    pub webhooks: Arc<dyn WebhookRepository>,
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Reads deployments.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// Opens the secrets of repositories.
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
