//! What else is done to applications by a worker: restart, stop, remove.

use std::{net::SocketAddr, sync::Arc};

use launchway_domain::{
    applications::{Application, Write as ApplicationWrite},
    deployments::{
        Container, ContainerRecord, ContainerState, Deployment, Found, FoundObject, ImageName, StepError,
        Write,
    },
    ids::ApplicationId,
    jobs::{ClaimedJob, Outcome},
    logs::Level,
    organizations::Scope,
    routes::Target,
};

use super::{Pipeline, Stop, releasing::running};
use crate::deployments::log::{DeploymentLog, secrets_of};

/// The version that an operation is about.
struct Live {
    application: Application,
    deployment: Deployment,
    log: Arc<DeploymentLog>,
}

impl Pipeline {
    /// Starts the live version anew.
    pub(crate) async fn restart(&self, claimed: &ClaimedJob) -> Result<(), Stop> {
        let Some(live) = self.live(claimed).await? else {
            return self.settle(claimed, Outcome::Cancelled, Vec::new()).await;
        };
        live.log.say(Level::Info, "Restarting").await;
        let restarted = self.start_again(&live).await;
        let (scope, id) = (claimed.job.scope, live.application.id);
        let at = self.tools.clock.now();
        let (outcome, write, what) = match restarted {
            Ok(()) => {
                live.log.say(Level::Info, "Restarted").await;
                let write = ApplicationWrite::SetStopped { scope, id, is_stopped: false, at };
                (Outcome::Succeeded, write, "restarted")
            }
            Err(StepError::Fault(reason)) => {
                live.log.flush().await;
                return Err(Stop::Fault(reason));
            }
            Err(StepError::Refused(reason)) => {
                live.log.say(Level::Error, format!("The restart failed: {reason}")).await;
                let write =
                    ApplicationWrite::SetStable { deployment: live.deployment.id, is_stable: false, at };
                (Outcome::Failed { reason }, write, "could not restart")
            }
        };
        live.log.flush().await;
        let event = self.ended(&live.application, &live.deployment, what);
        self.settle(claimed, outcome, vec![write.into(), event]).await?;
        // Until now the records of one that was stopped said so, and who followed them meanwhile has
        // led its traffic away again.
        if live.application.is_stopped
            && let Err(error) = self.ports.routes.follow(scope, id).await
        {
            tracing::warn!(application.id = %id, %error, "traffic follows later");
        }
        Ok(())
    }

    /// Lets the live version stand still.
    pub(crate) async fn stop(&self, claimed: &ClaimedJob) -> Result<(), Stop> {
        let Some(live) = self.live(claimed).await? else {
            return self.settle(claimed, Outcome::Cancelled, Vec::new()).await;
        };
        let (scope, id, at) = (claimed.job.scope, live.application.id, self.tools.clock.now());
        self.ports.routes.lead(scope, id, Target::Stopped).await?;
        self.drain(id).await;
        // Once more: a version that went live at the moment of the wish has taken it back.
        let mut more = vec![ApplicationWrite::SetStopped { scope, id, is_stopped: true, at }.into()];
        if let Some(container) = live.deployment.container.clone() {
            self.ports.deployer.stop(&container.id).await?;
            let container = ContainerRecord { state: ContainerState::Exited, address: None, ..container };
            more.push(Write::RecordContainer { id: live.deployment.id, container, at }.into());
        }
        more.push(self.ended(&live.application, &live.deployment, "stopped"));
        live.log.say(Level::Info, "Stopped").await;
        live.log.flush().await;
        self.settle(claimed, Outcome::Succeeded, more).await
    }

    /// Removes what is left of a deleted application.
    pub(crate) async fn remove(&self, claimed: &ClaimedJob) -> Result<(), Stop> {
        let id = ApplicationId::from(claimed.job.subject);
        self.ports.routes.forget(id).await?;
        self.drain(id).await;
        let found = self.ports.inventory.everything().await?;
        let of_it = || found.iter().filter(|found| found.owner.application == id);
        // Containers first: an image that runs cannot be removed.
        let is_container = |what: &FoundObject| matches!(what, FoundObject::Container { .. });
        for found in of_it().filter(|found| is_container(&found.what)) {
            self.ports.inventory.remove(found).await?;
        }
        for found in of_it().filter(|found| !is_container(&found.what)) {
            self.ports.inventory.remove(found).await?;
        }
        self.ports.composer.forget(id).await?;
        self.ports.sites.remove(id).await?;
        self.settle(claimed, Outcome::Succeeded, Vec::new()).await
    }

    /// The containers of an application.
    pub(super) async fn containers_of(&self, application: ApplicationId) -> Result<Vec<Found>, StepError> {
        let found = self.ports.inventory.containers().await?;
        Ok(found.into_iter().filter(|found| found.owner.application == application).collect())
    }

    async fn start_again(&self, live: &Live) -> Result<(), StepError> {
        let scope = Scope::of_record(live.application.organization_id);
        let Some(recorded) = &live.deployment.container else {
            let published = self.ports.routes.site(&live.deployment).await;
            let published =
                published.map_err(|error| StepError::Fault(format!("a record cannot be read: {error}")))?;
            let folder =
                published.ok_or_else(|| StepError::Refused("the published files are gone".to_owned()))?;
            return self.ports.routes.lead(scope, live.application.id, Target::Site(folder)).await;
        };
        if live.deployment.image.as_ref().is_some_and(ImageName::is_of_service) {
            self.remove_all_but(live.application.id, &[live.deployment.id]).await?;
        }
        let container: Container = self.ports.deployer.restart(&recorded.id).await?;
        let path = live.application.blueprint.health_check_path.clone();
        self.wait_until_healthy(&container, recorded.port.get(), path).await?;
        let (id, at) = (live.deployment.id, self.tools.clock.now());
        let write = Write::RecordContainer { id, container: running(&container, recorded.port), at };
        let written = self.tools.store.commit(vec![write.into()]).await;
        written.map_err(|error| StepError::Fault(format!("the record cannot be written: {error}")))?;
        let address = SocketAddr::new(container.address, recorded.port.get());
        let target = Target::Container { id: container.id, address };
        self.ports.routes.lead(scope, live.application.id, target).await
    }

    async fn live(&self, claimed: &ClaimedJob) -> Result<Option<Live>, Stop> {
        let (scope, id): (Scope, ApplicationId) = (claimed.job.scope, claimed.job.subject.into());
        let Some(application) = self.ports.applications.get(scope, id).await? else { return Ok(None) };
        let Some(live) = application.live else { return Ok(None) };
        let Some(deployment) = self.ports.deployments.get(scope, live).await? else { return Ok(None) };
        let masker = secrets_of(&self.vault.open(&application)?);
        let (sink, clock) = (Arc::clone(&self.ports.logs), Arc::clone(&self.tools.clock));
        let log = DeploymentLog::of(sink, clock, deployment.clone(), masker);
        Ok(Some(Live { application, deployment, log }))
    }
}
