//! Implements the ports of deployments over a host.

mod call;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use launchway_domain::{
    applications::{ApplicationRepository as _, ImageRef, Port, RunCommand},
    clock::Timestamp,
    deployments::{
        BuildPlan, Condition, Container, ContainerId, ContainerPlan, Deployer, DiscoveredObject,
        DiscoveredResource, EngineInventory, HealthProbe, ImageBuilder, ImageName, ImageSize, Output, Owner,
        PrintedLine, ProbeTarget, StepError,
    },
    ids::{ApplicationId, DeploymentId},
    organizations::Scope,
    routes::{Route, Target, TrafficRouter},
    store::StoreError,
    value::InvalidValue,
};
use uuid::Uuid;

use crate::{
    caught::{caught, message},
    host::{Host, HostLimits, Version, VersionId},
    repositories::Repositories,
};

/// Implements the ports over a host.
pub(crate) struct Hosted {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) limits: HostLimits,
    pub(crate) repositories: Repositories,
}

/// Returns the container id of a version at a port. Container ids have 64 digits: 32 of the deployment, 24 of the
/// attempt, and 8 of the port. A version that was started again at another port is another container.
fn container_id(id: VersionId, port: u16) -> Result<ContainerId, StepError> {
    let unlikely = |error: InvalidValue| StepError::failed("no id of a version", error);
    let (deployment, attempt) = (Uuid::from(id.deployment).simple(), id.attempt);
    ContainerId::try_from(format!("{deployment}{attempt:024x}{port:08x}")).map_err(unlikely)
}

fn version_id(container: &ContainerId) -> Result<VersionId, StepError> {
    let (deployment, rest) = container.as_str().split_at(32);
    let deployment = deployment.parse::<DeploymentId>();
    let deployment = deployment.map_err(|error| StepError::failed("no version has that id", error))?;
    let attempt = i32::from_str_radix(&rest[..24], 16);
    let attempt = attempt.map_err(|error| StepError::failed("no version has that id", error))?;
    Ok(VersionId { deployment, attempt })
}

fn unreadable(error: StoreError) -> StepError {
    StepError::failed("the records cannot be read", error)
}

fn refused<T>(reason: &str) -> Result<T, StepError> {
    Err(StepError::Rejected(reason.to_owned()))
}

fn container(id: VersionId, address: SocketAddr) -> Result<Container, StepError> {
    let port = Port::try_from(address.port());
    let port = port.map_err(|error| StepError::failed("the host returned no port", error))?;
    let container = container_id(id, address.port())?;
    Ok(Container { id: container, name: id.to_string(), address: address.ip(), port: Some(port) })
}

impl Hosted {
    async fn list(&self) -> Result<Vec<(VersionId, SocketAddr)>, StepError> {
        self.call("list its versions", self.limits.call, self.host.list()).await
    }

    async fn end(&self, id: VersionId) -> Result<(), StepError> {
        self.call("end a version", self.limits.end, self.host.end(id)).await
    }

    async fn route(&self, route: &Route) -> Result<(), StepError> {
        self.call("route the traffic", self.limits.call, self.host.route(route)).await
    }
}

#[async_trait]
impl ImageBuilder for Hosted {
    async fn build(&self, _: &BuildPlan, _: Arc<dyn Output>) -> Result<ImageName, StepError> {
        refused("nothing is built here")
    }

    /// Records the image. The host obtains it when it starts the version.
    async fn obtain(
        &self,
        owner: &Owner,
        image: &ImageRef,
        _: Arc<dyn Output>,
    ) -> Result<ImageName, StepError> {
        let recorded = self.repositories.record_artifact(owner.deployment, image.clone()).await;
        recorded.map_err(unreadable)?;
        Ok(ImageName::of(owner.application, owner.deployment))
    }

    async fn reuse(&self, owner: &Owner, image: &ImageName) -> Result<ImageName, StepError> {
        let earlier = image.whose().map(|(_, deployment)| deployment);
        let artifact = match earlier {
            Some(earlier) => self.repositories.artifact(earlier).await.map_err(unreadable)?,
            None => None,
        };
        let Some(artifact) = artifact else {
            return refused("the artifact of that deployment is not recorded");
        };
        self.repositories.record_artifact(owner.deployment, artifact).await.map_err(unreadable)?;
        Ok(ImageName::of(owner.application, owner.deployment))
    }
}

#[async_trait]
impl Deployer for Hosted {
    async fn start(&self, plan: &ContainerPlan) -> Result<Container, StepError> {
        let Owner { organization, application, deployment, attempt } = plan.owner;
        let found = self.repositories.get(Scope::of_record(organization), application).await;
        let Some(application) = found.map_err(unreadable)? else { return refused("the application is gone") };
        let image = self.repositories.artifact(deployment).await.map_err(unreadable)?;
        let Some(image) = image else { return refused("the artifact of the deployment is not recorded") };
        let id = VersionId { deployment, attempt };
        let (environment, port) = (plan.environment.clone(), plan.port);
        let version = Version { id, application, image, environment, port };
        let address = self.call("start the version", self.limits.start, self.host.start(&version)).await?;
        container(id, address)
    }

    async fn run_once(&self, _: &ContainerPlan, _: &RunCommand, _: Arc<dyn Output>) -> Result<(), StepError> {
        refused("commands are not supported here")
    }

    /// The restart policy of a version is up to the host; one that ended is started again anyway.
    async fn enable_restart_policy(&self, _: &ContainerId) -> Result<(), StepError> {
        Ok(())
    }

    async fn condition(&self, container: &ContainerId) -> Result<Condition, StepError> {
        for (id, address) in self.list().await? {
            if container_id(id, address.port())? == *container {
                return Ok(Condition::Running { address: address.ip(), restarts: 0 });
            }
        }
        Ok(Condition::Gone)
    }

    async fn resume(&self, _: &ContainerId) -> Result<Container, StepError> {
        refused("an ended version is not kept")
    }

    async fn restart(&self, _: &ContainerId) -> Result<Container, StepError> {
        refused("an ended version is not kept")
    }

    async fn stop(&self, container: &ContainerId) -> Result<(), StepError> {
        self.end(version_id(container)?).await
    }

    async fn remove(&self, deployment: DeploymentId) -> Result<(), StepError> {
        for (id, _) in self.list().await? {
            if id.deployment == deployment {
                self.end(id).await?;
            }
        }
        Ok(())
    }

    async fn remove_attempt(&self, owner: &Owner) -> Result<(), StepError> {
        self.end(VersionId { deployment: owner.deployment, attempt: owner.attempt }).await
    }
}

#[async_trait]
impl EngineInventory for Hosted {
    async fn everything(&self) -> Result<Vec<DiscoveredResource>, StepError> {
        self.containers().await
    }

    /// Returns the versions that the host runs for recorded deployments. Others are not touched: the host
    /// may have been opened with the wrong records.
    async fn containers(&self) -> Result<Vec<DiscoveredResource>, StepError> {
        let running = self.list().await?;
        let ids = running.iter().map(|(id, _)| id.deployment).collect();
        let recorded = self.repositories.recorded(ids).await.map_err(unreadable)?;
        let mut containers = Vec::new();
        for (id, address) in running {
            let Some(deployment) = recorded.get(&id.deployment) else {
                tracing::warn!(version = %id, "version without a record is running");
                continue;
            };
            let owner = Owner {
                organization: deployment.organization_id,
                application: deployment.application_id,
                deployment: deployment.id,
                attempt: id.attempt,
            };
            let what = DiscoveredObject::Container {
                id: container_id(id, address.port())?,
                condition: Condition::Running { address: address.ip(), restarts: 0 },
                created_at: deployment.created_at,
                port: Port::try_from(address.port()).ok(),
                service: None,
                stays_up: true,
            };
            containers.push(DiscoveredResource { owner, what });
        }
        Ok(containers)
    }

    /// Images are up to the host.
    async fn images_of(&self, _: &Owner) -> Result<Vec<ImageSize>, StepError> {
        Ok(Vec::new())
    }

    async fn remove(&self, found: &DiscoveredResource) -> Result<(), StepError> {
        self.remove_attempt(&found.owner).await
    }

    async fn printed(
        &self,
        container: &ContainerId,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<PrintedLine>, StepError> {
        let printed = self.host.printed(version_id(container)?, since, limit);
        self.call("read the output of a version", self.limits.call, printed).await
    }

    async fn tail_logs(&self, container: &ContainerId, lines: usize) -> Result<Vec<PrintedLine>, StepError> {
        let mut printed = EngineInventory::printed(self, container, None, usize::MAX).await?;
        Ok(printed.split_off(printed.len().saturating_sub(lines)))
    }

    async fn wait_for_events(&self, timeout: Duration) -> bool {
        match tokio::time::timeout(timeout, caught(self.host.changed())).await {
            Ok(Ok(())) => true,
            Ok(Err(panic)) => {
                tracing::error!(reason = message(&*panic), "host panicked");
                tokio::time::sleep(timeout).await;
                false
            }
            Err(_elapsed) => false,
        }
    }
}

#[async_trait]
impl HealthProbe for Hosted {
    async fn probe(&self, target: &ProbeTarget) -> Result<(), String> {
        let check = async { self.host.check(target).await.map_err(StepError::Rejected) };
        let checked = self.call("check the version", self.limits.check, check).await;
        checked.map_err(|error| error.to_string())
    }
}

#[async_trait]
impl TrafficRouter for Hosted {
    async fn set(&self, route: &Route) -> Result<(), StepError> {
        self.route(route).await
    }

    async fn remove(&self, application: ApplicationId) -> Result<(), StepError> {
        let (subject, hosts) = (application.into(), Vec::new());
        self.route(&Route { subject, hosts, target: Target::Absent }).await
    }

    async fn replace_all(&self, routes: &[Route]) -> Result<(), StepError> {
        let mut rejected = Ok(());
        for route in routes {
            match self.route(route).await {
                Ok(()) => {}
                // The routes of others do not depend on this one.
                Err(error @ StepError::Rejected(_)) => rejected = Err(error),
                Err(error) => return Err(error),
            }
        }
        rejected
    }

    /// The host waits for the last requests when it ends a version.
    async fn drain(&self, _: ApplicationId, _: Option<ContainerId>) -> Result<(), StepError> {
        Ok(())
    }
}
