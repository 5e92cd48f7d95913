//! What runs of extensions are made with.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Action, ExtensionKey, NewExecutionLine, ObjectName, template::Values};
use crate::{
    clock::Timestamp,
    deployments::{Container, Output, StepError},
    ids::{ExecutionId, OrganizationId},
    secret::Secret,
    store::StoreError,
};

/// A run, for who carries out its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// For which organization.
    pub organization: OrganizationId,
    /// Of which extension.
    pub extension: ExtensionKey,
    /// Which run.
    pub execution: ExecutionId,
    /// What it was told, without the workspace.
    pub values: Secret<Values>,
}

/// Carries out the steps of extensions.
///
/// Promises:
/// - a call that is dropped ends what it started, processes included;
/// - no value is part of a shell's text or of a command line's options: a shell finds each in the
///   [environment variable](super::environment_name) of its name, and
///   [the workspace's](super::WORKSPACE) too;
/// - files are changed in the workspace of the run alone, whatever links lie there;
/// - containers, compositions and volumes belong to one organization and extension, carry their
///   marks, and have nothing beyond a [`ContainerSpec`](super::ContainerSpec): they are in the
///   network of their organization, with the limits of every other container, and are started again
///   by the engine. None of another organization or extension is ever reached;
/// - what a step removes or replaces is set aside until the run is [finished](ExtensionRunner::finish),
///   so that it can be reverted;
/// - doing a thing a second time is no error, nor is reverting what was done half or not at all.
///
/// [`Action::Proxy`] is not for it.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ExtensionRunner: Send + Sync {
    /// The folder that a run works in, from the root of the machine.
    fn workspace(&self, execution: ExecutionId) -> String;

    /// Makes the workspace.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the file system refuses.
    async fn begin(&self, run: &Run) -> Result<(), StepError>;

    /// Carries out the step at place `order`. Returns how its program ended, 0 without one; a step
    /// that ended otherwise than by 0 failed.
    ///
    /// # Errors
    /// [`StepError::Refused`] when it cannot work, [`StepError::Fault`] when the engine or the
    /// file system is not there.
    async fn perform(
        &self,
        run: &Run,
        order: i32,
        action: &Action,
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError>;

    /// Takes back what the step at place `order` did.
    ///
    /// # Errors
    /// As [`perform`](ExtensionRunner::perform), and [`StepError::Refused`] for what cannot be
    /// taken back.
    async fn revert(
        &self,
        run: &Run,
        order: i32,
        action: &Action,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError>;

    /// The run has succeeded: what its steps set aside goes. Its workspace stays.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the engine or the file system is not there.
    async fn finish(&self, run: &Run) -> Result<(), StepError>;

    /// The run has failed and its steps are reverted: its workspace goes.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the file system refuses.
    async fn discard(&self, run: &Run) -> Result<(), StepError>;

    /// A container that this very run made, by the name of a container, or of a composition and a
    /// service as `project-service`.
    ///
    /// # Errors
    /// [`StepError::Refused`] when it made none of that name, or it does not run,
    /// [`StepError::Fault`] when the engine is not there.
    async fn container(&self, run: &Run, name: &ObjectName) -> Result<Container, StepError>;

    /// Removes every container and composition that an extension made for an organization, and its
    /// volumes if that is wanted.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the engine is not there.
    async fn uninstall(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
        with_volumes: bool,
    ) -> Result<(), StepError>;

    /// Removes the workspaces that nobody has used since `before`.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the file system refuses.
    async fn sweep(&self, before: Timestamp) -> Result<(), StepError>;
}

/// Keeps what runs print.
///
/// Promises: the lines of one call are durable when it returns, numbered behind all earlier ones of
/// their run without a gap, and none is visible before; who reads in the order of the numbers
/// misses none.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ExecutionLog: Send + Sync {
    /// Appends `lines` to the log of a run.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`]; then none was appended.
    async fn append(&self, execution: ExecutionId, lines: Vec<NewExecutionLine>) -> Result<(), StoreError>;
}
