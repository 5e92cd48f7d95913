//! The host of an embedding service, adapted to the ports of deployments.

use std::{net::IpAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use launchway_domain::{
    applications::{Application, ApplicationRepository as _, ImageRef, Repository, RunCommand, Variables},
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

use super::keeper::Kept;

/// A version to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The deployment, which identifies the version.
    pub deployment: DeploymentId,
    /// The application of the version.
    pub application: Application,
    /// The image to run.
    pub image: ImageRef,
    /// The environment variables.
    pub environment: Variables,
}

/// Runs versions.
///
/// Implementations guarantee that a dropped call stops what it started, and that every call is idempotent.
#[async_trait]
pub trait Host: Send + Sync {
    /// Starts a version beside whatever else runs, and returns its address. It listens on the
    /// [port](launchway_domain::applications::Blueprint::port) of its application.
    ///
    /// # Errors
    /// [`StepError::Rejected`] when it cannot be run, [`StepError::Retryable`] when a retry may help.
    async fn start(&self, version: &Version) -> Result<IpAddr, StepError>;

    /// Returns the address of the version of a deployment; `None` when none runs.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when that cannot be determined now.
    async fn find(&self, deployment: DeploymentId) -> Result<Option<IpAddr>, StepError>;

    /// Stops the version of a deployment, if one runs.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when a retry may help.
    async fn end(&self, deployment: DeploymentId) -> Result<(), StepError>;

    /// Checks the health of a version. By default, a version that keeps running is healthy.
    ///
    /// # Errors
    /// A sentence that describes the response.
    async fn check(&self, _target: &ProbeTarget) -> Result<(), String> {
        Ok(())
    }

    /// Routes the host names of an application to a version. By default, versions are reached at their own
    /// address only.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when a retry may help.
    async fn route_to(&self, _route: &Route) -> Result<(), StepError> {
        Ok(())
    }
}

/// Implements the ports over a host.
pub(super) struct Hosted {
    pub(super) host: Arc<dyn Host>,
    pub(super) kept: Kept,
}

/// Returns a container id for a deployment. Container ids have 64 digits, so the id of the deployment is
/// repeated.
fn container_of(deployment: DeploymentId) -> Result<ContainerId, StepError> {
    let id = Uuid::from(deployment).simple();
    let unlikely = |error: InvalidValue| StepError::failed("no id of a container", error);
    ContainerId::try_from(format!("{id}{id}")).map_err(unlikely)
}

fn deployment_of(container: &ContainerId) -> Result<DeploymentId, StepError> {
    let (id, _) = container.as_str().split_at(32);
    id.parse::<DeploymentId>().map_err(|error| StepError::failed("no deployment has that container", error))
}

fn unreadable(error: StoreError) -> StepError {
    StepError::failed("the database cannot be read", error)
}

fn refused<T>(reason: &str) -> Result<T, StepError> {
    Err(StepError::Rejected(reason.to_owned()))
}

#[async_trait]
impl ImageBuilder for Hosted {
    async fn build(&self, _: &BuildPlan, _: Arc<dyn Output>) -> Result<ImageName, StepError> {
        refused("builds are not supported here: only prebuilt images are deployed")
    }

    /// The host pulls the image when it starts the version.
    async fn obtain(&self, owner: &Owner, _: &ImageRef, _: Arc<dyn Output>) -> Result<ImageName, StepError> {
        Ok(ImageName::of(owner.application, owner.deployment))
    }

    async fn reuse(&self, _: &Owner, _: &ImageName) -> Result<ImageName, StepError> {
        refused("rollbacks are not supported here")
    }
}

#[async_trait]
impl Deployer for Hosted {
    async fn start(&self, plan: &ContainerPlan) -> Result<Container, StepError> {
        let Owner { organization, application, deployment, .. } = plan.owner;
        let found = self.kept.get(Scope::of_record(organization), application).await;
        let Some(application) = found.map_err(unreadable)? else { return refused("the application is gone") };
        let Repository::Image(image) = application.blueprint.repository.clone() else {
            return refused("only prebuilt images are deployed here");
        };
        let version = Version { deployment, application, image, environment: plan.environment.clone() };
        let address = self.host.start(&version).await?;
        Ok(Container { id: container_of(deployment)?, name: deployment.to_string(), address })
    }

    async fn run_once(&self, _: &ContainerPlan, _: &RunCommand, _: Arc<dyn Output>) -> Result<(), StepError> {
        refused("commands are not supported here")
    }

    /// The restart policy of a version is up to the host.
    async fn enable_restart_policy(&self, _: &ContainerId) -> Result<(), StepError> {
        Ok(())
    }

    async fn condition(&self, container: &ContainerId) -> Result<Condition, StepError> {
        let found = self.host.find(deployment_of(container)?).await?;
        Ok(found.map_or(Condition::Gone, |address| Condition::Running { address, restarts: 0 }))
    }

    async fn resume(&self, _: &ContainerId) -> Result<Container, StepError> {
        refused("restarts are not supported here: deploy again")
    }

    /// A host identifies versions by their deployment, so it cannot run two copies of one.
    fn can_run_beside(&self) -> bool {
        false
    }

    async fn restart(&self, _: &ContainerId) -> Result<Container, StepError> {
        refused("restarts are not supported here: deploy again")
    }

    async fn stop(&self, container: &ContainerId) -> Result<(), StepError> {
        self.host.end(deployment_of(container)?).await
    }

    async fn remove(&self, deployment: DeploymentId) -> Result<(), StepError> {
        self.host.end(deployment).await
    }

    async fn remove_attempt(&self, owner: &Owner) -> Result<(), StepError> {
        self.host.end(owner.deployment).await
    }
}

/// Lists the versions that the host finds for all recorded deployments, including those of deleted
/// applications.
#[async_trait]
impl EngineInventory for Hosted {
    async fn everything(&self) -> Result<Vec<DiscoveredResource>, StepError> {
        self.containers().await
    }

    async fn containers(&self) -> Result<Vec<DiscoveredResource>, StepError> {
        let mut containers = Vec::new();
        for deployment in self.kept.not_removed().await.map_err(unreadable)? {
            let Some(address) = self.host.find(deployment.id).await? else { continue };
            let owner = Owner {
                organization: deployment.organization_id,
                application: deployment.application_id,
                deployment: deployment.id,
                attempt: 1,
            };
            let what = DiscoveredObject::Container {
                id: container_of(deployment.id)?,
                condition: Condition::Running { address, restarts: 0 },
                created_at: deployment.created_at,
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
        self.host.end(found.owner.deployment).await
    }

    async fn printed(
        &self,
        _: &ContainerId,
        _: Option<Timestamp>,
        _: usize,
    ) -> Result<Vec<PrintedLine>, StepError> {
        Ok(Vec::new())
    }

    async fn tail_logs(&self, _: &ContainerId, _: usize) -> Result<Vec<PrintedLine>, StepError> {
        Err(StepError::Retryable("container logs are not available here".to_owned()))
    }

    async fn wait_for_news(&self, timeout: Duration) -> bool {
        tokio::time::sleep(timeout).await;
        false
    }
}

#[async_trait]
impl HealthProbe for Hosted {
    async fn probe(&self, target: &ProbeTarget) -> Result<(), String> {
        self.host.check(target).await
    }
}

#[async_trait]
impl TrafficRouter for Hosted {
    async fn set(&self, route: &Route) -> Result<(), StepError> {
        self.host.route_to(route).await
    }

    async fn remove(&self, application: ApplicationId) -> Result<(), StepError> {
        let (subject, hosts) = (application.into(), Vec::new());
        self.host.route_to(&Route { subject, hosts, target: Target::Absent }).await
    }

    async fn replace_all(&self, routes: &[Route]) -> Result<(), StepError> {
        for route in routes {
            self.host.route_to(route).await?;
        }
        Ok(())
    }

    /// A host that has to wait for requests does so when it stops a version.
    async fn drain(&self, _: ApplicationId, _: Option<ContainerId>) -> Result<(), StepError> {
        Ok(())
    }
}
