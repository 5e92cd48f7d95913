//! Retirement: stops versions that lost the traffic once their last request is done.
//!
//! It blocks nothing: the next deployment of the application does not wait for it. A version whose
//! retirement is interrupted by the end of the server is an orphan, which the reconciler retires.

use std::sync::Arc;

use launchway_domain::{
    applications::{Application, ApplicationRepository},
    clock::Timestamp,
    deployments::{
        ContainerId, ContainerRecord, ContainerState, Deployer, Deployment, DeploymentRepository,
        EngineInventory, Owner, StepError, Write,
    },
    ids::{ApplicationId, DeploymentId},
    organizations::Scope,
    store::StoreError,
};

use crate::{ServiceContext, engine_view::EngineView, routes::Routes, runtime_logs::RuntimeLogs};

/// A version, or one attempt at it, that lost the traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retired {
    scope: Scope,
    application: ApplicationId,
    deployment: DeploymentId,
    /// The attempt, if another one of the same deployment is live.
    attempt: Option<Owner>,
    /// The container that got the traffic.
    container: Option<ContainerId>,
}

impl Retired {
    /// Returns a whole version to retire.
    pub(crate) fn version(application: (Scope, ApplicationId), deployment: &Deployment) -> Self {
        Self {
            scope: application.0,
            application: application.1,
            deployment: deployment.id,
            attempt: None,
            container: deployment.container.as_ref().map(|container| container.id.clone()),
        }
    }

    /// Returns a container to retire, with everything that was created with it; its whole version unless
    /// that `is_live`.
    pub(crate) fn container(owner: Owner, container: ContainerId, is_live: bool) -> Self {
        Self {
            scope: Scope::of_record(owner.organization),
            application: owner.application,
            deployment: owner.deployment,
            attempt: is_live.then_some(owner),
            container: Some(container),
        }
    }

    /// Returns the deployment of the retired version.
    pub(crate) fn deployment(&self) -> DeploymentId {
        self.deployment
    }
}

/// Retires versions.
pub struct Retirer {
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Reads deployments.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// Stops and removes containers.
    pub deployer: Arc<dyn Deployer>,
    /// Lists the services of a composition.
    pub inventory: Arc<dyn EngineInventory>,
    /// Collects the output of containers before they are removed; not collected if absent.
    pub runtime_logs: Option<Arc<RuntimeLogs>>,
    /// Waits for the last request.
    pub routes: Arc<Routes>,
    /// Commits the records.
    pub context: ServiceContext,
}

impl Retirer {
    /// Waits for the last request, stops the containers, collects their output, and removes them.
    pub(crate) async fn retire(&self, retired: &Retired) -> Result<(), StepError> {
        self.routes.drain_patiently(retired.application, retired.container.clone()).await;
        let record = self.deployments.get(retired.scope, retired.deployment).await.map_err(unreadable)?;
        let container = match &retired.container {
            Some(container) => Some(container.clone()),
            None => record.as_ref().and_then(|record| Some(record.container.as_ref()?.id.clone())),
        };
        if let Some(container) = &container {
            self.deployer.stop(container).await?;
            if let Some(record) = &record
                && let Err(error) = self.collect_logs(retired, record, container).await
            {
                tracing::warn!(deployment.id = %record.id, %error, "last output could not be collected");
            }
        }
        match &retired.attempt {
            Some(owner) => self.deployer.remove_attempt(owner).await?,
            None => self.deployer.remove(retired.deployment).await?,
        }
        let recorded = record.and_then(|record| record.container);
        match recorded.filter(|recorded| Some(&recorded.id) == container.as_ref()) {
            Some(recorded) => self.record_removed(retired.deployment, recorded).await,
            None => Ok(()),
        }
    }

    async fn record_removed(&self, id: DeploymentId, recorded: ContainerRecord) -> Result<(), StepError> {
        let container = ContainerRecord { state: ContainerState::Removed, address: None, ..recorded };
        let write = Write::RecordContainer { id, container, at: self.context.clock.now() };
        self.context.store.commit(vec![write.into()]).await.map_err(unreadable)
    }

    /// Collects the new output of the containers of a version.
    async fn collect_logs(
        &self,
        retired: &Retired,
        record: &Deployment,
        container: &ContainerId,
    ) -> Result<(), String> {
        let Some(runtime_logs) = &self.runtime_logs else { return Ok(()) };
        let application = self.applications.get(retired.scope, retired.application).await;
        let Some(application) = application.map_err(|error| error.to_string())? else { return Ok(()) };
        // The record may already refer to the container that replaced it.
        let mut printed_by = record.clone();
        if let Some(recorded) = &mut printed_by.container {
            recorded.id = container.clone();
        }
        let now = self.context.clock.now();
        collect_output(runtime_logs, &*self.inventory, &application, &printed_by, now).await
    }
}

/// Collects the last output of the containers of a version, which are stopped.
pub(super) async fn collect_output(
    runtime_logs: &RuntimeLogs,
    inventory: &dyn EngineInventory,
    application: &Application,
    version: &Deployment,
    now: Timestamp,
) -> Result<(), String> {
    let view: EngineView = match version.is_composition() {
        true => inventory.containers().await.map_err(|error| error.to_string())?.into(),
        false => EngineView::default(),
    };
    runtime_logs.collect_last(application, version, &view.sidecars(version), now).await.map(|_| ())
}

fn unreadable(error: StoreError) -> StepError {
    StepError::failed("the database cannot be used", error)
}
