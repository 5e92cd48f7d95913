//! Jobs on a live version: restart, stop, remove, and reconcile with its record.

use std::{net::SocketAddr, sync::Arc};

use launchway_domain::{
    applications::{Application, Health, Port, Write as ApplicationWrite},
    deployments::{
        Composition, Container, ContainerRecord, ContainerState, Deployment, DiscoveredObject,
        DiscoveredResource, ImageName, LiveVersion, StepError, Write,
    },
    ids::ApplicationId,
    jobs::{ClaimedJob, Lease, Outcome},
    logs::Level,
    organizations::Scope,
    routes::Target,
};

use super::{JobError, Pipeline, Retired, release::running, undecryptable};
use crate::{
    applications::OpenSecrets,
    deployments::log::{DeploymentLog, secrets_of},
    engine_view::EngineView,
    reconciler::decision::{Action, Observed, decide},
};

/// The version that a job works on.
pub(super) struct Live {
    pub(super) application: Application,
    pub(super) deployment: Deployment,
    pub(super) secrets: OpenSecrets,
    pub(super) log: Arc<DeploymentLog>,
}

impl Live {
    pub(super) fn scope(&self) -> Scope {
        Scope::of_record(self.application.organization_id)
    }

    /// Returns the port that its container listens on.
    pub(super) fn port(&self) -> Port {
        let recorded = self.deployment.container.as_ref().map(|recorded| recorded.port);
        recorded.unwrap_or(self.application.blueprint.port)
    }

    fn is_composition(&self) -> bool {
        self.deployment.image.as_ref().is_some_and(ImageName::is_of_service)
    }
}

impl Pipeline {
    /// Restarts the live version: beside the one that serves where that is possible, so that no request is
    /// dropped.
    pub(crate) async fn restart(&self, claimed: &ClaimedJob) -> Result<Vec<Retired>, JobError> {
        let Some(live) = self.live(claimed).await? else {
            self.settle(claimed, Outcome::Cancelled, Vec::new()).await?;
            return Ok(Vec::new());
        };
        live.log.write_line(Level::Info, "Restarting").await;
        let restarted = self.start_anew(&live, claimed.lease).await;
        let (scope, id) = (claimed.job.scope, live.application.id);
        let at = self.context.clock.now();
        let (outcome, write, what, retired) = match restarted {
            Ok(retired) => {
                live.log.write_line(Level::Info, "Restarted").await;
                let write = ApplicationWrite::SetStopped { scope, id, is_stopped: false, at };
                (Outcome::Succeeded, Some(write), "restarted", retired)
            }
            Err(JobError::Permanent(reason)) => {
                live.log.write_line(Level::Error, format!("Restart failed: {reason}")).await;
                (Outcome::Failed { reason }, None, "failed to restart", Vec::new())
            }
            Err(stop) => {
                live.log.flush().await;
                return Err(stop);
            }
        };
        live.log.flush().await;
        let mut more: Vec<_> = write.map(Into::into).into_iter().collect();
        more.push(self.ended(&live.application, &live.deployment, what));
        self.settle(claimed, outcome, more).await?;
        // Until now the record said that it is stopped, so that a concurrent update of the routes may have
        // removed its route again.
        if live.application.is_stopped
            && let Err(error) = self.ports.routes.follow(scope, id).await
        {
            tracing::warn!(application.id = %id, %error, "route could not be updated");
        }
        Ok(retired)
    }

    /// Stops the live version.
    pub(crate) async fn stop(&self, claimed: &ClaimedJob) -> Result<(), JobError> {
        let Some(live) = self.live(claimed).await? else {
            return self.settle(claimed, Outcome::Cancelled, Vec::new()).await;
        };
        let (scope, id, at) = (claimed.job.scope, live.application.id, self.context.clock.now());
        self.ports.routes.route_to(scope, id, Target::Stopped).await?;
        self.drain(id).await;
        // A second time, because a version that went live concurrently has reset it.
        let mut more = vec![ApplicationWrite::SetStopped { scope, id, is_stopped: true, at }.into()];
        more.extend(self.stop_container(&live).await?);
        more.push(self.ended(&live.application, &live.deployment, "stopped"));
        live.log.write_line(Level::Info, "Stopped").await;
        live.log.flush().await;
        self.settle(claimed, Outcome::Succeeded, more).await
    }

    async fn stop_container(&self, live: &Live) -> Result<Option<launchway_domain::store::Write>, StepError> {
        let Some(container) = live.deployment.container.clone() else { return Ok(None) };
        self.ports.deployer.stop(&container.id).await?;
        let container = ContainerRecord { state: ContainerState::Exited, ..container };
        let at = self.context.clock.now();
        Ok(Some(Write::RecordContainer { id: live.deployment.id, container, at }.into()))
    }

    /// Removes the resources of a deleted application.
    pub(crate) async fn remove(&self, claimed: &ClaimedJob) -> Result<(), JobError> {
        let id = ApplicationId::from(claimed.job.subject);
        self.ports.routes.forget(id).await?;
        self.drain(id).await;
        // Before anything that needs the engine: an unavailable engine must not delay the removal of a
        // site's files.
        self.ports.sites.remove(id).await?;
        let found = self.ports.inventory.everything().await?;
        let of_it = || found.iter().filter(|found| found.owner.application == id);
        // Containers first: an image that runs cannot be removed.
        let is_container = |what: &DiscoveredObject| matches!(what, DiscoveredObject::Container { .. });
        for found in of_it().filter(|found| is_container(&found.what)) {
            self.ports.inventory.remove(found).await?;
        }
        for found in of_it().filter(|found| !is_container(&found.what)) {
            self.ports.inventory.remove(found).await?;
        }
        self.forget_images(of_it().map(|found| found.owner.deployment).collect()).await?;
        self.ports.composer.forget(id).await?;
        self.settle(claimed, Outcome::Succeeded, Vec::new()).await
    }

    /// Makes the engine match the record of an application. Decides again, now that no other job works on
    /// it, and acts.
    pub(crate) async fn reconcile(&self, claimed: &ClaimedJob) -> Result<Vec<Retired>, JobError> {
        let Some(live) = self.live(claimed).await? else {
            self.settle(claimed, Outcome::Cancelled, Vec::new()).await?;
            return Ok(Vec::new());
        };
        let reconciled =
            live.log.keep_writing_during(Box::pin(self.follow_record(&live, claimed.lease))).await;
        let (outcome, retired) = match reconciled {
            Ok(retired) => (Outcome::Succeeded, retired),
            Err(JobError::Permanent(reason)) => {
                live.log.write_line(Level::Error, format!("Recovery failed: {reason}")).await;
                self.break_down(&live, &reason).await?;
                (Outcome::Failed { reason }, Vec::new())
            }
            Err(stop) => {
                live.log.flush().await;
                return Err(stop);
            }
        };
        live.log.flush().await;
        self.settle(claimed, outcome, Vec::new()).await?;
        Ok(retired)
    }

    async fn follow_record(&self, live: &Live, lease: Lease) -> Result<Vec<Retired>, JobError> {
        let view: EngineView = self.containers_of(live.application.id).await?.into();
        let (application, deployment) = (live.application.clone(), live.deployment.clone());
        let version = LiveVersion { application, deployment };
        match decide(&version, Observed::of(&version, &view), false) {
            Action::Keep | Action::Wait | Action::Record(_) => Ok(Vec::new()),
            Action::Stop => {
                live.log.write_line(Level::Warn, "Stopping the container: the application is stopped").await;
                let write = self.stop_container(live).await?;
                self.commit(lease, write.into_iter().collect()).await?;
                Ok(Vec::new())
            }
            Action::Resume => self.resume(live, lease).await,
            Action::Recreate => self.recreate(live, lease).await,
        }
    }

    /// Starts the containers of a version as they are, or creates new ones from its images.
    async fn resume(&self, live: &Live, lease: Lease) -> Result<Vec<Retired>, JobError> {
        let Some(recorded) = &live.deployment.container else { return Ok(Vec::new()) };
        if live.is_composition() {
            self.remove_all_but(live.application.id, &[live.deployment.id]).await?;
        }
        match self.ports.deployer.resume(&recorded.id).await {
            Ok(container) => self.serve_from(live, lease, &container, false).await.map(|()| Vec::new()),
            Err(StepError::Rejected(reason)) => {
                live.log.write_line(Level::Warn, format!("The container cannot be started: {reason}")).await;
                self.recreate(live, lease).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Creates the container, or the services of a composition, anew from the images of the version.
    async fn recreate(&self, live: &Live, lease: Lease) -> Result<Vec<Retired>, JobError> {
        live.log.write_line(Level::Info, "Recreating the container from its image").await;
        if live.is_composition() {
            // Two databases on the same files would destroy them.
            self.ports.deployer.remove(live.deployment.id).await?;
        }
        self.replace(live, lease).await
    }

    async fn start_anew(&self, live: &Live, lease: Lease) -> Result<Vec<Retired>, JobError> {
        let Some(recorded) = &live.deployment.container else {
            let published = self.ports.routes.site(&live.deployment).await?;
            let folder = published
                .ok_or_else(|| JobError::Permanent("the published files no longer exist".to_owned()))?;
            self.ports.routes.route_to(live.scope(), live.application.id, Target::Site(folder)).await?;
            return Ok(Vec::new());
        };
        if self.can_run_beside(live).await? {
            return self.replace(live, lease).await;
        }
        if live.is_composition() {
            live.log
                .write_line(Level::Warn, "With downtime: two versions of its services cannot share volumes")
                .await;
            self.remove_all_but(live.application.id, &[live.deployment.id]).await?;
        }
        match self.ports.deployer.restart(&recorded.id).await {
            Ok(container) => self.serve_from(live, lease, &container, true).await.map(|()| Vec::new()),
            Err(StepError::Rejected(_)) if self.ports.deployer.can_run_beside() => {
                self.recreate(live, lease).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// True if a second copy of the version can run while the first one serves: not if they would share
    /// volumes.
    async fn can_run_beside(&self, live: &Live) -> Result<bool, JobError> {
        if !self.ports.deployer.can_run_beside() {
            return Ok(false);
        }
        if !live.is_composition() {
            return Ok(true);
        }
        let plan = self.composition_plan_of(live, 1).await?;
        let recalled = self.ports.composer.recall(&plan, live.deployment.id).await?;
        Ok(recalled.is_some_and(|Composition { shared_volumes, .. }| shared_volumes.is_empty()))
    }

    /// Waits until `container` is healthy, records it and routes to it.
    async fn serve_from(
        &self,
        live: &Live,
        lease: Lease,
        container: &Container,
        is_new: bool,
    ) -> Result<(), JobError> {
        self.check_container(live, container, is_new).await?;
        self.switch_to(live, lease, container).await
    }

    /// Waits until `container` is healthy. If it is not, logs the last lines of one that `is_new`.
    pub(super) async fn check_container(
        &self,
        live: &Live,
        container: &Container,
        is_new: bool,
    ) -> Result<(), StepError> {
        let path = live.application.blueprint.health_check_path.clone();
        let checked = self.wait_until_healthy(container, live.port().get(), path).await;
        if checked.is_err() && is_new {
            self.log_tail(&live.log, container).await;
        }
        checked
    }

    /// Records that `container` runs the version from now on, and routes to it.
    pub(super) async fn switch_to(
        &self,
        live: &Live,
        lease: Lease,
        container: &Container,
    ) -> Result<(), JobError> {
        let (id, at, port) = (live.deployment.id, self.context.clock.now(), live.port());
        let replaced = Write::ReplaceContainer { id, container: running(container, port), at };
        self.commit(lease, vec![replaced.into()]).await?;
        let address = SocketAddr::new(container.address, port.get());
        let target = Target::Container { id: container.id.clone(), address };
        self.ports.routes.route_to(live.scope(), live.application.id, target).await?;
        live.log.write_line(Level::Info, format!("Running at http://{address}")).await;
        Ok(())
    }

    async fn break_down(&self, live: &Live, reason: &str) -> Result<(), JobError> {
        let (deployment, at) = (live.deployment.id, self.context.clock.now());
        let health = Health::Broken(reason.to_owned());
        let write = ApplicationWrite::SetHealth { deployment, health, at };
        match self.context.store.commit(vec![write.into()]).await {
            // It was replaced or stopped in the meantime.
            Ok(()) | Err(launchway_domain::store::StoreError::Stale) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the containers of an application.
    pub(super) async fn containers_of(
        &self,
        application: ApplicationId,
    ) -> Result<Vec<DiscoveredResource>, StepError> {
        let found = self.ports.inventory.containers().await?;
        Ok(found.into_iter().filter(|found| found.owner.application == application).collect())
    }

    async fn live(&self, claimed: &ClaimedJob) -> Result<Option<Live>, JobError> {
        let (scope, id): (Scope, ApplicationId) = (claimed.job.scope, claimed.job.subject.into());
        let Some(application) = self.ports.applications.get(scope, id).await? else { return Ok(None) };
        let Some(live) = application.live else { return Ok(None) };
        let Some(deployment) = self.ports.deployments.get(scope, live).await? else { return Ok(None) };
        let secrets = self.vault.open(&application).map_err(undecryptable)?;
        let (sink, clock) = (Arc::clone(&self.ports.logs), Arc::clone(&self.context.clock));
        let log = DeploymentLog::of(sink, clock, deployment.clone(), secrets_of(&secrets));
        Ok(Some(Live { application, deployment, secrets, log }))
    }
}
