//! Versions with several services, and the strategy *recreate* that some of them need.

use std::net::{IpAddr, SocketAddr};

use launchway_domain::{
    applications::Application,
    deployments::{
        Checkout, ComposeSource, Composition, CompositionPlan, Condition, Container, ContainerPlan,
        ContainerRecord, ContainerState, Deployment, ImageName, StepError, Write,
    },
    ids::{ApplicationId, DeploymentId},
    logs::{Level, NewLine},
    organizations::Scope,
    routes::Target,
};

use super::{Attempt, JobError, Pipeline, release::running};

/// The plan of a version to start.
pub(super) enum Runnable {
    Container(ContainerPlan),
    /// The services of a compose file.
    Composition(CompositionPlan),
}

/// Returns the plan of the services of an attempt.
pub(super) fn composition_plan(attempt: &Attempt<'_>, reserved: Vec<IpAddr>) -> CompositionPlan {
    CompositionPlan {
        owner: attempt.owner,
        port: attempt.application.blueprint.port,
        environment: attempt.secrets.environment_variables.clone(),
        live: attempt.application.live,
        reserved,
    }
}

impl Pipeline {
    /// Reads the compose file and builds the images of its services.
    pub(super) async fn compose(
        &self,
        attempt: &Attempt<'_>,
        checkout: Checkout,
    ) -> Result<Composition, JobError> {
        let blueprint = &attempt.application.blueprint;
        attempt.log.write_line(Level::Info, "Reading the compose file").await;
        let source = ComposeSource {
            checkout,
            base_path: blueprint.base_path.clone(),
            file: blueprint.dockerfile_path.clone(),
            variables: attempt.secrets.build_variables.clone(),
        };
        let output = attempt.log.output(Level::Build);
        let composed = self
            .ports
            .composer
            .compose(&composition_plan(attempt, Vec::new()), &source, output.clone())
            .await;
        output.finish().await;
        let composition = composed?;
        self.tell_of(attempt, &composition).await;
        Ok(composition)
    }

    /// Returns the composition of an earlier deployment, if it had one.
    pub(super) async fn recall(
        &self,
        attempt: &Attempt<'_>,
        earlier: DeploymentId,
    ) -> Result<Option<Composition>, JobError> {
        let recalled = self.ports.composer.recall(&composition_plan(attempt, Vec::new()), earlier).await?;
        if let Some(composition) = &recalled {
            self.tell_of(attempt, composition).await;
        }
        Ok(recalled)
    }

    async fn tell_of(&self, attempt: &Attempt<'_>, composition: &Composition) {
        for remark in &composition.remarks {
            attempt.log.write_line(Level::Warn, remark.clone()).await;
        }
        attempt
            .log
            .write_line(Level::Info, format!("Traffic is routed to the service `{}`", composition.web))
            .await;
    }

    /// Starts the services that a pre-run command may need.
    pub(super) async fn prepare(&self, attempt: &Attempt<'_>, runnable: &Runnable) -> Result<(), StepError> {
        let Runnable::Composition(plan) = runnable else { return Ok(()) };
        attempt.log.write_line(Level::Info, "Starting the sidecar services").await;
        let output = attempt.log.output(Level::Runtime);
        let started = self.ports.composer.start_companions(plan, output.clone()).await;
        output.finish().await;
        started
    }

    /// Starts the version, and returns the container that gets the traffic.
    pub(super) async fn start(
        &self,
        attempt: &Attempt<'_>,
        runnable: &Runnable,
    ) -> Result<Container, StepError> {
        match runnable {
            Runnable::Container(plan) => {
                attempt.log.write_line(Level::Info, "Starting the container").await;
                self.ports.deployer.start(plan).await
            }
            Runnable::Composition(plan) => {
                attempt.log.write_line(Level::Info, "Starting the services").await;
                let output = attempt.log.output(Level::Runtime);
                let started = self.ports.composer.start(plan, output.clone()).await;
                output.finish().await;
                started
            }
        }
    }

    /// Stops the live version before one is started that uses the same volumes.
    ///
    /// The record is marked as stopped first, so that an attempt after an interruption knows what to
    /// restore.
    pub(super) async fn stop_for_recreate(
        &self,
        attempt: &Attempt<'_>,
        composition: &Composition,
    ) -> Result<(), JobError> {
        if composition.shared_volumes.is_empty() {
            return Ok(());
        }
        let known: Vec<DeploymentId> =
            attempt.application.live.into_iter().chain([attempt.deployment.id]).collect();
        self.remove_all_but(attempt.owner.application, &known).await?;
        if attempt.application.is_stopped {
            return Ok(());
        }
        let Some(live) = self.live_version(&attempt.application).await? else { return Ok(()) };
        let Some(container) = live.container.clone() else { return Ok(()) };
        let volumes = composition.shared_volumes.iter().map(|volume| format!("`{volume}`"));
        let volumes = volumes.collect::<Vec<_>>().join(", ");
        let text = format!(
            "With downtime: the live version is stopped before this one starts, because both use the volume \
             {volumes}"
        );
        attempt.log.write_line(Level::Warn, text).await;
        let still = ContainerRecord { state: ContainerState::Exited, ..container.clone() };
        let at = self.context.clock.now();
        let write = Write::RecordContainer { id: live.id, container: still, at };
        self.commit(attempt.lease, vec![write.into()]).await?;
        let (scope, id) = (Scope::of_record(attempt.owner.organization), attempt.owner.application);
        self.ports.routes.route_to(scope, id, Target::Absent).await?;
        self.drain(id).await;
        Ok(self.ports.deployer.stop(&container.id).await?)
    }

    /// Restores the live version that was stopped for a recreate.
    pub(super) async fn restore_previous(&self, application: &Application) -> Result<(), StepError> {
        if application.is_stopped {
            return Ok(());
        }
        let faulty = |error| StepError::Retryable(format!("the database cannot be used: {error}"));
        let Some(live) = self.live_version(application).await.map_err(faulty)? else { return Ok(()) };
        let is_composition = live.image.as_ref().is_some_and(ImageName::is_of_service);
        let stands_still = |container: &&ContainerRecord| container.state == ContainerState::Exited;
        let Some(still) = live.container.as_ref().filter(stands_still).filter(|_| is_composition) else {
            return Ok(());
        };
        self.remove_all_but(application.id, &[live.id]).await?;
        let container = match self.ports.deployer.condition(&still.id).await? {
            Condition::Gone => return Ok(()),
            Condition::Running { address, .. } => {
                Container { id: still.id.clone(), name: still.name.clone(), address }
            }
            _ => match self.ports.deployer.restart(&still.id).await {
                Err(StepError::Rejected(why)) => {
                    let text =
                        format!("This version was stopped for a new one, and cannot be started again: {why}");
                    self.note(&live, Level::Error, text).await;
                    return Ok(());
                }
                restarted => restarted?,
            },
        };
        let at = self.context.clock.now();
        let write = Write::RecordContainer { id: live.id, container: running(&container, still.port), at };
        self.context.store.commit(vec![write.into()]).await.map_err(faulty)?;
        let address = SocketAddr::new(container.address, still.port.get());
        let (scope, target) =
            (Scope::of_record(application.organization_id), Target::Container { id: container.id, address });
        self.ports.routes.route_to(scope, application.id, target).await?;
        self.note(
            &live,
            Level::Info,
            format!("The new version did not go live: this one runs again at http://{address}"),
        )
        .await;
        Ok(())
    }

    /// Removes the containers of the other versions of an application. A lost attempt may have left a
    /// database that still uses the volumes.
    pub(super) async fn remove_all_but(
        &self,
        application: ApplicationId,
        known: &[DeploymentId],
    ) -> Result<(), StepError> {
        let found = self.containers_of(application).await?;
        let mut others: Vec<DeploymentId> = found.iter().map(|found| found.owner.deployment).collect();
        others.retain(|other| !known.contains(other));
        others.sort_unstable();
        others.dedup();
        for other in others {
            self.ports.deployer.remove(other).await?;
        }
        Ok(())
    }

    async fn live_version(
        &self,
        application: &Application,
    ) -> Result<Option<Deployment>, launchway_domain::store::StoreError> {
        let Some(live) = application.live else { return Ok(None) };
        self.ports.deployments.get(Scope::of_record(application.organization_id), live).await
    }

    /// Logs a line of a deployment.
    async fn note(&self, deployment: &Deployment, level: Level, text: String) {
        let (application_id, deployment_id) = (deployment.application_id, deployment.id);
        let line = NewLine { application_id, deployment_id, level, text, at: self.context.clock.now() };
        if let Err(error) = self.ports.logs.append(vec![line]).await {
            tracing::warn!(%error, deployment.id = %deployment_id, "log line could not be stored");
        }
    }
}
