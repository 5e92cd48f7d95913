//! The runner of an installation on several machines, where extensions do not run.

use std::sync::Arc;

use async_trait::async_trait;
use launchway_domain::{
    clock::Timestamp,
    deployments::{Container, Output, StepError},
    extensions::{Action, ExtensionKey, ExtensionRunner, ObjectName, Run},
    ids::{ExecutionId, OrganizationId},
};

use super::HostRunner;

/// Rejects new runs of extensions: what they install belongs to one machine. What an earlier run created on this machine
/// can be removed.
#[derive(Debug)]
pub struct NoExtensions(pub Arc<HostRunner>);

fn rejected() -> StepError {
    StepError::Rejected(
        "extensions do not run on Docker Swarm: use an installation with LAUNCHWAY_ENGINE=docker".to_owned(),
    )
}

#[async_trait]
impl ExtensionRunner for NoExtensions {
    fn workspace(&self, execution: ExecutionId) -> String {
        self.0.workspace(execution)
    }

    fn has_workspace(&self, execution: ExecutionId) -> bool {
        self.0.has_workspace(execution)
    }

    async fn begin(&self, _run: &Run) -> Result<(), StepError> {
        Err(rejected())
    }

    async fn perform(
        &self,
        _run: &Run,
        _order: i32,
        _action: &Action,
        _output: Arc<dyn Output>,
    ) -> Result<i32, StepError> {
        Err(rejected())
    }

    async fn revert(
        &self,
        run: &Run,
        order: i32,
        action: &Action,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        self.0.revert(run, order, action, output).await
    }

    async fn finish(&self, run: &Run) -> Result<(), StepError> {
        self.0.finish(run).await
    }

    async fn discard(&self, run: &Run) -> Result<(), StepError> {
        self.0.discard(run).await
    }

    async fn container(&self, run: &Run, name: &ObjectName) -> Result<Container, StepError> {
        self.0.container(run, name).await
    }

    async fn uninstall(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
        with_volumes: bool,
    ) -> Result<(), StepError> {
        self.0.uninstall(organization, extension, with_volumes).await
    }

    async fn sweep(&self, before: Timestamp) -> Result<(), StepError> {
        self.0.sweep(before).await
    }
}
