//! Webhooks: the secrets of repositories, deployments by pushes, and polling of branches because a push may
//! get lost. Reports about requests are passed on to previews.

mod branch_poller;
mod delivery;
mod git_sources;
mod outcome;
mod path_watcher;
mod payload;
mod secrets;
mod verification;

use std::sync::Arc;

use launchway_domain::{
    applications::ApplicationRepository, deployments::DeploymentRepository, secret::SecretBox,
    webhooks::WebhookRepository,
};

pub(crate) use self::outcome::shown;
pub use self::{
    branch_poller::{BranchPoller, BranchPollerPorts, BranchPollerTimings},
    outcome::{Ignored, WebhookOutcome},
    path_watcher::{PathWatcher, PathWatcherPorts},
};
use crate::{ServiceContext, previews::Previews};

/// The ports of the use cases of webhooks.
pub struct WebhookPorts {
    /// Reads the webhook secrets of repositories, and the applications that follow a branch.
    pub webhooks: Arc<dyn WebhookRepository>,
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Reads deployments.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// Decrypts the secrets of repositories.
    pub secrets: Arc<dyn SecretBox>,
    /// Compares pushes with the paths that applications watch.
    pub watcher: PathWatcher,
    /// Makes, updates and removes previews.
    pub previews: Arc<Previews>,
}

/// Reads and rotates webhook secrets, and handles the deliveries of code hosts.
pub struct Webhooks {
    ports: WebhookPorts,
    context: ServiceContext,
}

impl Webhooks {
    /// Returns the use cases over `ports`.
    pub fn new(ports: WebhookPorts, context: ServiceContext) -> Self {
        Self { ports, context }
    }
}
