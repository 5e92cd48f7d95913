//! Finds the versions that lose the traffic to a new one.

use std::sync::Arc;

use launchway_domain::{
    deployments::{
        ContainerId, ContainerState, Deployment, DeploymentRepository, DiscoveredObject, StepError,
    },
    organizations::Scope,
    page::PageRequest,
};

use super::{Attempt, JobError, Retired, Workloads};

/// Finds the predecessors of versions.
pub(super) struct Predecessors {
    pub(super) deployments: Arc<dyn DeploymentRepository>,
    pub(super) workloads: Arc<Workloads>,
}

impl Predecessors {
    /// Returns the version that was live before and lost the traffic.
    pub(super) async fn previous(&self, attempt: &Attempt<'_>) -> Result<Vec<Retired>, JobError> {
        let scope = Scope::of_record(attempt.owner.organization);
        let Some(id) = attempt.application.live.filter(|id| *id != attempt.deployment.id) else {
            return Ok(Vec::new());
        };
        let record = self.deployments.get(scope, id).await?;
        let record = record.filter(|record| record.container.is_some());
        Ok(record.iter().map(|record| Retired::version((scope, attempt.owner.application), record)).collect())
    }

    /// Returns every other version of the application that has a container, or is recorded with one.
    /// Removes the container of an interrupted command.
    pub(super) async fn others(&self, attempt: &Attempt<'_>) -> Result<Vec<Retired>, StepError> {
        let is_live = |id: &ContainerId| attempt.deployment.copies().any(|container| container.id == *id);
        let mut others = self.recorded_others(attempt).await?;
        for found in self.workloads.containers_of(attempt.owner.application).await? {
            let DiscoveredObject::Container { id, service, .. } = &found.what else { continue };
            if found.owner.deployment == attempt.deployment.id {
                if !is_live(id) && service.is_none() {
                    self.workloads.inventory.remove(&found).await?;
                }
            } else if !others.iter().any(|other| other.deployment() == found.owner.deployment) {
                others.push(Retired::container(found.owner, id.clone(), false));
            }
        }
        Ok(others)
    }

    /// Returns the newest other deployments whose containers are not recorded as removed.
    async fn recorded_others(&self, attempt: &Attempt<'_>) -> Result<Vec<Retired>, StepError> {
        let scope = Scope::of_record(attempt.owner.organization);
        let newest =
            PageRequest::new(1, 20, 20).map_err(|_never| StepError::Retryable("no page".to_owned()))?;
        let page = self.deployments.page(scope, attempt.owner.application, newest).await;
        let page = page.map_err(|error| StepError::failed("the database cannot be read", error))?;
        let is_there = |record: &Deployment| {
            record.container.as_ref().is_some_and(|container| container.state != ContainerState::Removed)
        };
        let others =
            page.items.iter().filter(|record| record.id != attempt.deployment.id && is_there(record));
        Ok(others.map(|record| Retired::version((scope, attempt.owner.application), record)).collect())
    }
}
