//! The strategy *recreate*: the live version is stopped before a new one starts that uses the same volumes.

use std::sync::Arc;

use launchway_domain::{
    applications::Application,
    deployments::{
        Condition, Container, ContainerRecord, ContainerState, Deployment, DeploymentRepository, StepError,
        Write,
    },
    ids::DeploymentId,
    logs::{Level, LogSink, NewLine},
    organizations::Scope,
    routes::Target,
    store::StoreError,
};

use super::{
    super::log::store_line,
    JobError,
    records::JobRecords,
    subject::Attempt,
    workload::{Workloads, running},
};
use crate::routes::Routes;

/// Stops live versions for new ones, and restores them if the new ones fail.
pub(super) struct Recreate {
    pub(super) workloads: Arc<Workloads>,
    pub(super) deployments: Arc<dyn DeploymentRepository>,
    pub(super) logs: Arc<dyn LogSink>,
    pub(super) routes: Arc<Routes>,
    pub(super) records: JobRecords,
}

impl Recreate {
    /// Stops the live version if it uses `shared_volumes`, which the new one uses too.
    ///
    /// The record is marked as stopped first, so that an attempt after an interruption knows what to
    /// restore.
    pub(super) async fn stop_live(
        &self,
        attempt: &Attempt<'_>,
        shared_volumes: &[String],
    ) -> Result<(), JobError> {
        if shared_volumes.is_empty() {
            return Ok(());
        }
        let known: Vec<DeploymentId> =
            attempt.application.live.into_iter().chain([attempt.deployment.id]).collect();
        self.workloads.remove_all_but(attempt.owner.application, &known).await?;
        if attempt.application.is_stopped {
            return Ok(());
        }
        let Some(live) = self.live_version(&attempt.application).await? else { return Ok(()) };
        if live.container.is_none() {
            return Ok(());
        }
        let volumes = shared_volumes.iter().map(|volume| format!("`{volume}`"));
        let volumes = volumes.collect::<Vec<_>>().join(", ");
        let text = format!(
            "With downtime: the live version is stopped before this one starts, because both use the volume \
             {volumes}"
        );
        attempt.log.write_line(Level::Warn, text).await;
        let at = self.records.now();
        let still = live.copies().map(|container| {
            let container = ContainerRecord { state: ContainerState::Exited, ..container.clone() };
            Write::RecordContainer { id: live.id, container, at }.into()
        });
        self.records.commit(attempt.lease, still.collect()).await?;
        let (scope, id) = (Scope::of_record(attempt.owner.organization), attempt.owner.application);
        self.routes.route_to(scope, id, Target::Absent).await?;
        self.routes.drain(id, None).await;
        for container in live.copies() {
            self.workloads.deployer.stop(&container.id).await?;
        }
        Ok(())
    }

    /// Restores the live version that was stopped for a new one.
    pub(super) async fn restore_live(&self, application: &Application) -> Result<(), StepError> {
        if application.is_stopped {
            return Ok(());
        }
        let faulty = |error| StepError::failed("the database cannot be used", error);
        let Some(live) = self.live_version(application).await.map_err(faulty)? else { return Ok(()) };
        let is_stopped = |container: &&ContainerRecord| container.state == ContainerState::Exited;
        let recorded = live.container.as_ref().filter(is_stopped);
        let Some(stopped) = recorded.filter(|_| live.is_composition()) else { return Ok(()) };
        self.workloads.remove_all_but(application.id, &[live.id]).await?;
        let container = match self.workloads.deployer.condition(&stopped.id).await? {
            Condition::Gone => return Ok(()),
            Condition::Running { address, .. } => {
                Container { id: stopped.id.clone(), name: stopped.name.clone(), address, port: None }
            }
            _ => match self.workloads.deployer.restart(&stopped.id).await {
                Err(StepError::Rejected(why)) => {
                    let text =
                        format!("This version was stopped for a new one, and cannot be started again: {why}");
                    self.log(&live, Level::Error, text).await;
                    return Ok(());
                }
                restarted => restarted?,
            },
        };
        let (container_record, at) = (running(&container, stopped.port), self.records.now());
        let write = Write::RecordContainer { id: live.id, container: container_record, at };
        self.records.context.store.commit(vec![write.into()]).await.map_err(faulty)?;
        let address = container.endpoint(stopped.port);
        let (scope, target) =
            (Scope::of_record(application.organization_id), Target::container(container.id, address));
        self.routes.route_to(scope, application.id, target).await?;
        let text = format!("The new version did not go live: this one runs again at http://{address}");
        self.log(&live, Level::Info, text).await;
        Ok(())
    }

    async fn live_version(&self, application: &Application) -> Result<Option<Deployment>, StoreError> {
        let Some(live) = application.live else { return Ok(None) };
        self.deployments.get(Scope::of_record(application.organization_id), live).await
    }

    /// Logs a line of a deployment.
    async fn log(&self, deployment: &Deployment, level: Level, text: String) {
        let (application_id, deployment_id) = (deployment.application_id, deployment.id);
        let line = NewLine { application_id, deployment_id, level, text, at: self.records.now() };
        store_line(&*self.logs, line).await;
    }
}
