//! Extensions of the world: their records, and a configurable runner.

use std::sync::Arc;

use async_trait::async_trait;
use launchway_domain::{
    applications::Port,
    clock::Timestamp,
    deployments::{Container, Output, StepError},
    extensions::{
        Action, Execution, ExecutionDetail, ExecutionLine, ExecutionLog, ExecutionRepository, ExecutionStep,
        Extension, ExtensionFilter, ExtensionKey, ExtensionRepository, ExtensionRoute, ExtensionRunner,
        NewExecutionLine, ObjectName, Run, Validation, Write,
    },
    ids::{ExecutionId, ExtensionId, OrganizationId},
    organizations::Scope,
    page::{Page, PageRequest},
    store::StoreError,
};

use super::{World, a_started_container};

impl World {
    /// Returns the lines of the log of the run.
    pub(crate) fn run_log(&self) -> Vec<String> {
        let lines = self.state().run_lines.clone();
        lines.iter().map(|line| format!("{}: {}", line.level.as_str(), line.text)).collect()
    }
}

/// Returns the short form of a write of extensions.
pub(super) fn word(write: &Write) -> String {
    match write {
        Write::Begin { server_hostname, .. } => format!("begin on {server_hostname}"),
        Write::BeginStep { order, .. } => format!("begin {order}"),
        Write::EndStep { order, state, exit_code, .. } => {
            format!("end {order} {} {exit_code}", state.as_str())
        }
        Write::Finish { end, .. } => {
            format!("finish {} {} ({})", end.state.as_str(), end.exit_code, end.error_message)
        }
        Write::FollowJobs { .. } => "follow runs".to_owned(),
        Write::AddRoute(route) => format!("lead {} to {}:{}", route.host, route.address, route.port.get()),
        Write::MoveRoute { address, .. } => format!("move to {address}"),
        Write::RemoveRoute { host, .. } => format!("lead {host} nowhere"),
        Write::Uninstall { extension, with_volumes, .. } => format!("uninstalled {extension} {with_volumes}"),
        other => format!("{other:?}"),
    }
}

/// Returns the name of an action in the journal.
fn name(action: &Action) -> String {
    match action {
        Action::Command { run, .. } => run.clone(),
        other => format!("{other:?}").chars().take_while(|c| c.is_alphanumeric()).collect(),
    }
}

#[async_trait]
impl ExtensionRunner for World {
    fn workspace(&self, _: ExecutionId) -> String {
        "/runs/1".to_owned()
    }

    fn has_workspace(&self, _: ExecutionId) -> bool {
        true
    }

    async fn begin(&self, _: &Run) -> Result<(), StepError> {
        self.call("begin", "").await
    }

    async fn perform(
        &self,
        run: &Run,
        order: i32,
        action: &Action,
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError> {
        let call = ["perform 1", "perform 2", "perform 3", "perform 4"][order.unsigned_abs() as usize - 1];
        self.give_output(call, &output).await;
        self.call(call, name(action)).await?;
        let mut state = self.state();
        state.reserved.clone_from(&run.reserved);
        Ok(state.exit_codes.remove(&order).unwrap_or_default())
    }

    async fn revert(
        &self,
        _: &Run,
        order: i32,
        _: &Action,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        self.give_output("revert", &output).await;
        self.call("revert", order).await
    }

    async fn finish(&self, _: &Run) -> Result<(), StepError> {
        self.call("finish", "").await
    }

    async fn discard(&self, _: &Run) -> Result<(), StepError> {
        self.call("discard", "").await
    }

    async fn container(&self, _: &Run, name: &ObjectName, _: Port) -> Result<Container, StepError> {
        self.call("container", name).await?;
        Ok(a_started_container())
    }

    async fn uninstall(
        &self,
        _: OrganizationId,
        extension: &ExtensionKey,
        volumes: bool,
    ) -> Result<(), StepError> {
        self.call("uninstall", format!("{extension} {volumes}")).await
    }

    async fn sweep(&self, _: Timestamp) -> Result<(), StepError> {
        self.call_quietly("sweep").await
    }
}

#[async_trait]
impl ExecutionLog for World {
    async fn append(&self, _: ExecutionId, lines: Vec<NewExecutionLine>) -> Result<(), StoreError> {
        self.state().run_lines.extend(lines);
        Ok(())
    }
}

#[async_trait]
impl ExtensionRepository for World {
    async fn page(
        &self,
        _: Scope,
        _: &ExtensionFilter,
        _: PageRequest,
    ) -> Result<Page<Extension>, StoreError> {
        unreachable!("no worker asks for extensions")
    }

    async fn by_key(&self, _: Scope, _: &ExtensionKey) -> Result<Option<Extension>, StoreError> {
        unreachable!("no worker asks for an extension")
    }

    async fn by_id(&self, _: Scope, _: ExtensionId) -> Result<Option<Extension>, StoreError> {
        unreachable!("no worker asks for an extension")
    }

    async fn catalog(&self) -> Result<Vec<(ExtensionKey, Validation, String)>, StoreError> {
        unreachable!("no worker asks for the catalog")
    }

    async fn routes(&self) -> Result<Vec<ExtensionRoute>, StoreError> {
        Ok(self.state().extension_routes.clone())
    }
}

#[async_trait]
impl ExecutionRepository for World {
    async fn page(
        &self,
        _: Scope,
        _: ExtensionId,
        _: PageRequest,
    ) -> Result<Page<(Execution, String)>, StoreError> {
        unreachable!("no worker asks for a list of runs")
    }

    async fn get(
        &self,
        _: Scope,
        _: ExecutionId,
    ) -> Result<Option<(Execution, Vec<ExecutionStep>)>, StoreError> {
        unreachable!("a worker asks for everything around a run")
    }

    async fn detail(&self, _: Scope, id: ExecutionId) -> Result<Option<ExecutionDetail>, StoreError> {
        Ok(self.state().execution.clone().filter(|detail| detail.execution.id == id))
    }

    async fn lines(
        &self,
        _: Scope,
        _: ExecutionId,
        _: i64,
        _: i64,
    ) -> Result<Option<Vec<ExecutionLine>>, StoreError> {
        unreachable!("no worker asks for lines")
    }
}
