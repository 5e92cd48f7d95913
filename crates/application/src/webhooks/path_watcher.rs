//! Decides whether a push changes a path that an application watches.
//!
//! **Invariant:** the files of commits decide, never the lists of files in a payload: code hosts shorten them, or send
//! none. When the comparison is not possible, the push deploys.

use std::sync::Arc;

use launchway_domain::{
    applications::Application,
    deployments::{CommitHash, DeploymentRepository},
    organizations::{DeployKeyRepository, Scope},
    secret::SecretBox,
    sources::{ChangeDetector, Comparison},
    store::StoreError,
};
use tokio::time::{Instant, timeout_at};

use super::git_sources::GitSources;

/// The ports of the path watcher.
#[derive(Clone)]
pub struct PathWatcherPorts {
    /// Reads deployments.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// Reads the deploy keys of private repositories.
    pub deploy_keys: Arc<dyn DeployKeyRepository>,
    /// Decrypts keys and credentials.
    pub secrets: Arc<dyn SecretBox>,
    /// Compares commits.
    pub changes: Arc<dyn ChangeDetector>,
}

/// Compares a commit with the one that was deployed last.
#[derive(Clone)]
pub struct PathWatcher {
    deployments: Arc<dyn DeploymentRepository>,
    changes: Arc<dyn ChangeDetector>,
    sources: GitSources,
}

impl PathWatcher {
    /// Returns a watcher over `ports`.
    #[must_use]
    pub fn new(ports: PathWatcherPorts) -> Self {
        let PathWatcherPorts { deployments, deploy_keys, secrets, changes } = ports;
        Self { deployments, changes, sources: GitSources::new(deploy_keys, secrets) }
    }

    /// Returns the commit of the newest deployment if no watched path differs between it and `commit`. `None` means
    /// that the application is to be deployed: it watches every path, was never deployed, a watched path differs, or
    /// the commits could not be compared until `deadline`.
    pub(crate) async fn unchanged_since(
        &self,
        application: &Application,
        commit: &CommitHash,
        deadline: Instant,
    ) -> Result<Option<CommitHash>, StoreError> {
        if application.blueprint.watch_paths.is_empty() {
            return Ok(None);
        }
        let scope = Scope::of_record(application.organization_id);
        let newest = self.deployments.newest(scope, &[application.id]).await?;
        let Some(old) = newest.into_iter().next().and_then(|deployment| deployment.commit) else {
            return Ok(None);
        };
        let source = match self.sources.of(application).await {
            Ok(Some(source)) => source,
            Ok(None) => return Ok(None),
            Err(error) => {
                uncompared(application, &error);
                return Ok(None);
            }
        };
        let comparison = Comparison {
            source,
            organization: application.organization_id,
            old: old.clone(),
            new: commit.clone(),
            watched: application.blueprint.watch_paths.clone(),
        };
        let changes = Arc::clone(&self.changes);
        // A task, because a fetch that is cut in the middle costs the cache of the repository.
        let compared = tokio::spawn(async move { changes.touches(&comparison).await });
        let is_unchanged = match timeout_at(deadline, compared).await {
            Ok(Ok(Ok(touched))) => touched == Some(false),
            Ok(Ok(Err(error))) => {
                uncompared(application, &error);
                false
            }
            Ok(Err(error)) => {
                uncompared(application, &error);
                false
            }
            Err(error) => {
                uncompared(application, &error);
                false
            }
        };
        Ok(is_unchanged.then_some(old))
    }
}

fn uncompared(application: &Application, reason: &dyn std::fmt::Display) {
    tracing::warn!(%reason, application.id = %application.id, "push comparison failed, deploying the push");
}
