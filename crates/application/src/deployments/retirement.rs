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
        DiscoveredObject, EngineInventory, Owner, StepError, Write,
    },
    ids::{ApplicationId, DeploymentId},
    organizations::Scope,
    store::StoreError,
};

use tokio::task::JoinSet;

use crate::{
    ServiceContext,
    engine_view::EngineView,
    routes::Routes,
    runtime_logs::{LogSource, RuntimeLogs},
};

/// A version, one attempt at it, or some of its copies, that lost the traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retired {
    scope: Scope,
    application: ApplicationId,
    deployment: DeploymentId,
    retirement_scope: RetirementScope,
    /// The containers that got the traffic.
    containers: Vec<RetiredContainer>,
}

/// The objects that a retirement removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetirementScope {
    /// Every container of the version.
    Version,
    /// Every container of the attempt, because another one of the same deployment is live.
    Attempt(Owner),
    /// Only the containers that got the traffic, because other copies of the same attempt may be live.
    Containers,
}

/// A container that got the traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RetiredContainer {
    id: ContainerId,
    /// The number of the copy, if there were several.
    copy: Option<u16>,
}

impl Retired {
    /// Returns a whole version to retire.
    pub(crate) fn version(application: (Scope, ApplicationId), deployment: &Deployment) -> Self {
        Self {
            scope: application.0,
            application: application.1,
            deployment: deployment.id,
            retirement_scope: RetirementScope::Version,
            containers: containers_of(deployment),
        }
    }

    /// Returns a container to retire, with everything that was created with it; its whole version unless
    /// that `is_live`.
    pub(crate) fn container(owner: Owner, container: ContainerId, is_live: bool) -> Self {
        Self {
            scope: Scope::of_record(owner.organization),
            application: owner.application,
            deployment: owner.deployment,
            retirement_scope: if is_live {
                RetirementScope::Attempt(owner)
            } else {
                RetirementScope::Version
            },
            containers: vec![RetiredContainer { id: container, copy: None }],
        }
    }

    /// Returns some copies of the live version `deployment` to retire, by their numbers.
    pub(crate) fn copies(deployment: &Deployment, copies: Vec<(u16, ContainerId)>) -> Self {
        let containers = copies.into_iter().map(|(copy, id)| RetiredContainer { id, copy: Some(copy) });
        Self {
            scope: Scope::of_record(deployment.organization_id),
            application: deployment.application_id,
            deployment: deployment.id,
            retirement_scope: RetirementScope::Containers,
            containers: containers.collect(),
        }
    }

    /// Returns the deployment of the retired version.
    pub(crate) fn deployment(&self) -> DeploymentId {
        self.deployment
    }
}

fn containers_of(deployment: &Deployment) -> Vec<RetiredContainer> {
    let has_several = !deployment.further_copies.is_empty();
    let container = |(number, container): (u16, &ContainerRecord)| RetiredContainer {
        id: container.id.clone(),
        copy: has_several.then_some(number),
    };
    deployment.numbered_copies().map(container).collect()
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
        self.drain(retired).await?;
        let record = self.deployments.get(retired.scope, retired.deployment).await.map_err(unreadable)?;
        let containers = match (&record, retired.containers.is_empty()) {
            (Some(record), true) => containers_of(record),
            _ => retired.containers.clone(),
        };
        self.stop(&containers).await?;
        if let Some(record) = record.as_ref().filter(|_| !containers.is_empty())
            && let Err(error) = self.collect_logs(retired, record, &containers).await
        {
            tracing::warn!(deployment.id = %record.id, %error, "last output could not be collected");
        }
        match &retired.retirement_scope {
            RetirementScope::Version => self.deployer.remove(retired.deployment).await?,
            RetirementScope::Attempt(owner) => self.deployer.remove_attempt(owner).await?,
            RetirementScope::Containers => self.remove(&containers).await?,
        }
        match record {
            Some(record) => self.record_removed(&record, &containers).await,
            None => Ok(()),
        }
    }

    /// Waits for the last requests to the containers, or to all of the application.
    async fn drain(&self, retired: &Retired) -> Result<(), StepError> {
        let application = retired.application;
        match &retired.containers[..] {
            [] => self.routes.drain_for_retirement(application, None).await,
            [only] => self.routes.drain_for_retirement(application, Some(only.id.clone())).await,
            several => {
                let mut drains = JoinSet::new();
                for container in several {
                    let (routes, id) = (Arc::clone(&self.routes), container.id.clone());
                    drains.spawn(async move { routes.drain_for_retirement(application, Some(id)).await });
                }
                while let Some(ended) = drains.join_next().await {
                    ended.map_err(|error| StepError::failed("a copy could not be drained", error))?;
                }
            }
        }
        Ok(())
    }

    async fn stop(&self, containers: &[RetiredContainer]) -> Result<(), StepError> {
        if let [only] = containers {
            return self.deployer.stop(&only.id).await;
        }
        let mut stops = JoinSet::new();
        for container in containers {
            let (deployer, id) = (Arc::clone(&self.deployer), container.id.clone());
            stops.spawn(async move { deployer.stop(&id).await });
        }
        while let Some(ended) = stops.join_next().await {
            ended.map_err(|error| StepError::failed("a copy could not be stopped", error))??;
        }
        Ok(())
    }

    /// Removes these containers, and no others of their version.
    async fn remove(&self, containers: &[RetiredContainer]) -> Result<(), StepError> {
        for found in self.inventory.containers().await? {
            let DiscoveredObject::Container { id, .. } = &found.what else { continue };
            if containers.iter().any(|container| container.id == *id) {
                self.inventory.remove(&found).await?;
            }
        }
        Ok(())
    }

    async fn record_removed(
        &self,
        record: &Deployment,
        containers: &[RetiredContainer],
    ) -> Result<(), StepError> {
        let (id, at) = (record.id, self.context.clock.now());
        let recorded = record.copies().filter(|recorded| containers.iter().any(|one| one.id == recorded.id));
        let removed = recorded.map(|recorded| {
            let container =
                ContainerRecord { state: ContainerState::Removed, address: None, ..recorded.clone() };
            Write::RecordContainer { id, container, at }.into()
        });
        let writes: Vec<_> = removed.collect();
        if writes.is_empty() {
            return Ok(());
        }
        self.context.store.commit(writes).await.map_err(unreadable)
    }

    /// Collects the new output of the containers of a version.
    async fn collect_logs(
        &self,
        retired: &Retired,
        record: &Deployment,
        containers: &[RetiredContainer],
    ) -> Result<(), String> {
        let Some(runtime_logs) = &self.runtime_logs else { return Ok(()) };
        let application = self.applications.get(retired.scope, retired.application).await;
        let Some(application) = application.map_err(|error| error.to_string())? else { return Ok(()) };
        let now = self.context.clock.now();
        if let [RetiredContainer { id, copy: None }] = containers {
            // The record may already refer to the container that replaced it.
            let mut printed_by = Deployment { further_copies: Vec::new(), ..record.clone() };
            if let Some(recorded) = &mut printed_by.container {
                recorded.id = id.clone();
            }
            return collect_output(runtime_logs, &*self.inventory, &application, &printed_by, now).await;
        }
        let sources: Vec<LogSource<'_>> =
            containers.iter().map(|container| LogSource::of_copy(&container.id, container.copy)).collect();
        runtime_logs.collect(&application, record, &sources, now).await.map(|_| ())
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
    let sidecars = view.sidecars(version);
    runtime_logs
        .collect_last(application, version, &LogSource::all(version, &sidecars), now)
        .await
        .map(|_| ())
}

fn unreadable(error: StoreError) -> StepError {
    StepError::failed("the database cannot be used", error)
}
