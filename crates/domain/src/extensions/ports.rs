//! Ports for runs of extensions.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;

use super::{Action, ExtensionKey, NewExecutionLine, ObjectName, template::Values};
use crate::{
    applications::Port,
    clock::Timestamp,
    deployments::{Container, Output, StepError},
    ids::{ExecutionId, OrganizationId},
    secret::Secret,
    store_error::StoreError,
};

/// A run, as the runner of its steps sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The organization.
    pub organization: OrganizationId,
    /// The key of the extension.
    pub extension: ExtensionKey,
    /// The id of the run.
    pub execution: ExecutionId,
    /// The values of its variables, without the workspace.
    pub values: Secret<Values>,
    /// The addresses that routes use, which no container of the run gets.
    pub reserved: Vec<IpAddr>,
    /// The containers that its steps route host names to, each with the port in the container.
    pub routed: Vec<(ObjectName, Port)>,
}

/// Runs the steps of extensions.
///
/// Promises:
/// - a call that is dropped ends what it started, processes included;
/// - no value is part of a shell script or of a command line's options: a shell finds each in the
///   [environment variable](super::environment_name) of its name, and [the workspace's](super::WORKSPACE)
///   too;
/// - files are changed in the workspace of the run alone, whatever links are there;
/// - containers, compositions and volumes belong to one organization and extension, carry their labels, and
///   have no options beyond a [`ContainerSpec`](super::ContainerSpec): they are in the network of their
///   organization, with the limits of every other container, and are restarted by the engine. None of
///   another organization or extension is ever reached;
/// - what a step removes or replaces is set aside until the run is [finished](ExtensionRunner::finish), so
///   that it can be reverted;
/// - every operation is idempotent, and reverting a partial or absent step is no error.
///
/// It does not handle [`Action::Proxy`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ExtensionRunner: Send + Sync {
    /// Returns the absolute path of the workspace of a run.
    fn workspace(&self, execution: ExecutionId) -> String;

    /// Returns whether this server has the workspace of a run.
    fn has_workspace(&self, execution: ExecutionId) -> bool;

    /// Creates the workspace.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn begin(&self, run: &Run) -> Result<(), StepError>;

    /// Runs the step at position `order`. Returns the exit code of its program, 0 if it has none; a step
    /// with any other exit code failed.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if it cannot succeed, [`StepError::Retryable`] if the engine or the file system
    /// is unavailable.
    async fn perform(
        &self,
        run: &Run,
        order: i32,
        action: &Action,
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError>;

    /// Reverts the step at position `order`.
    ///
    /// # Errors
    /// As [`perform`](ExtensionRunner::perform), and [`StepError::Rejected`] if it cannot be reverted.
    async fn revert(
        &self,
        run: &Run,
        order: i32,
        action: &Action,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError>;

    /// Finishes a run that succeeded: removes what its steps set aside. Its workspace is kept.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the engine or the file system is unavailable.
    async fn finish(&self, run: &Run) -> Result<(), StepError>;

    /// Removes the workspace of a run that failed and was reverted.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn discard(&self, run: &Run) -> Result<(), StepError>;

    /// Returns a container that this very run created, by the name of a container, or of a composition and
    /// a service as `project-service`, as its `port` is reached.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if it created none of that name, or it does not run, [`StepError::Retryable`] if
    /// the engine is unreachable.
    async fn container(&self, run: &Run, name: &ObjectName, port: Port) -> Result<Container, StepError>;

    /// Removes every container and composition that an extension created for an organization, and on
    /// request its volumes.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the engine is unreachable.
    async fn uninstall(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
        with_volumes: bool,
    ) -> Result<(), StepError>;

    /// Removes the workspaces that were not used since `before`.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn sweep(&self, before: Timestamp) -> Result<(), StepError>;
}

/// Stores the output of runs.
///
/// Promises: the lines of one call are durable when it returns, numbered consecutively after all earlier
/// ones of their run, and none is visible before; a reader in the order of the numbers misses none.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ExecutionLog: Send + Sync {
    /// Appends `lines` to the log of a run.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`]; then none was appended.
    async fn append(&self, execution: ExecutionId, lines: Vec<NewExecutionLine>) -> Result<(), StoreError>;
}
