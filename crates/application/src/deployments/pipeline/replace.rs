//! Replaces the container of a live version.

use std::net::IpAddr;

use launchway_domain::{
    deployments::{CompositionPlan, Container, ContainerPlan, DiscoveredObject, ImageName, Owner, StepError},
    jobs::Lease,
    logs::Level,
};

use super::{JobError, Pipeline, Retired, lifecycle::Live};

impl Pipeline {
    /// Starts a copy of the version of `live` beside it, waits until it is healthy, and switches traffic to
    /// it. Returns the versions that lost the traffic. A failure leaves the serving one as it was.
    pub(super) async fn replace(&self, live: &Live, lease: Lease) -> Result<Vec<Retired>, JobError> {
        let found = self.containers_of(live.application.id).await?;
        let of_version = found.iter().filter(|found| found.owner.deployment == live.deployment.id);
        let attempt = of_version.clone().map(|found| found.owner.attempt).max().unwrap_or_default() + 1;
        let recorded = live.deployment.container.as_ref().map(|container| &container.id);
        let previous = of_version.clone().find_map(|found| match &found.what {
            DiscoveredObject::Container { id, .. } if Some(id) == recorded => Some((found.owner, id.clone())),
            _ => None,
        });
        let owner = Owner {
            organization: live.application.organization_id,
            application: live.application.id,
            deployment: live.deployment.id,
            attempt,
        };
        let container = match self.start_copy(live, owner).await {
            Ok(container) => container,
            Err(stop) => {
                if let Err(error) = self.ports.deployer.remove_attempt(&owner).await {
                    tracing::warn!(deployment.id = %owner.deployment, %error, "failed attempt could not be removed yet");
                }
                return Err(stop);
            }
        };
        // From here on the record may refer to the new container, so it is kept even after a failure. If
        // the record does not refer to it, it is an orphan.
        self.switch_to(live, lease, &container).await?;
        self.ports.deployer.enable_restart_policy(&container.id).await?;
        let retired = previous.filter(|(previous, _)| *previous != owner);
        Ok(retired.map(|(owner, id)| Retired::container(owner, id, true)).into_iter().collect())
    }

    /// Starts a copy of the version of `live` as the attempt of `owner`, and waits until it is healthy.
    async fn start_copy(&self, live: &Live, owner: Owner) -> Result<Container, JobError> {
        let container = match live.deployment.image.as_ref() {
            Some(image) if image.is_of_service() => {
                live.log.write_line(Level::Info, "Starting the services").await;
                let plan = self.composition_plan_of(live, owner.attempt).await?;
                let output = live.log.output(Level::Runtime);
                let started = self.ports.composer.start(&plan, output.clone()).await;
                output.finish().await;
                started?
            }
            Some(image) => {
                live.log.write_line(Level::Info, "Starting the container").await;
                self.start_container(live, owner, image).await?
            }
            None => return Err(JobError::Permanent("the version has no image".to_owned())),
        };
        self.check_container(live, &container, true).await?;
        Ok(container)
    }

    async fn start_container(
        &self,
        live: &Live,
        owner: Owner,
        image: &ImageName,
    ) -> Result<Container, StepError> {
        let plan = ContainerPlan {
            owner,
            image: image.clone(),
            environment: live.secrets.environment_variables.clone(),
            port: live.port(),
            reserved: self.reserved().await?,
        };
        self.ports.deployer.start(&plan).await
    }

    /// Returns the plan of the composition of `live` for an attempt.
    pub(super) async fn composition_plan_of(
        &self,
        live: &Live,
        attempt: i32,
    ) -> Result<CompositionPlan, StepError> {
        Ok(CompositionPlan {
            owner: Owner {
                organization: live.application.organization_id,
                application: live.application.id,
                deployment: live.deployment.id,
                attempt,
            },
            port: live.port(),
            environment: live.secrets.environment_variables.clone(),
            live: Some(live.deployment.id),
            reserved: self.reserved().await?,
        })
    }

    /// Returns the addresses that routes refer to.
    pub(super) async fn reserved(&self) -> Result<Vec<IpAddr>, StepError> {
        let addresses = self.ports.deployments.live_addresses().await;
        addresses.map_err(|error| StepError::Retryable(format!("the database cannot be read: {error}")))
    }
}
