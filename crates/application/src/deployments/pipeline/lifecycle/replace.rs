//! Replaces the container of a live version.

use launchway_domain::{
    deployments::{Container, DiscoveredObject, Owner},
    jobs::Lease,
};

use super::{JobError, Lifecycle, Retired, Subject};

impl Lifecycle {
    /// Starts a copy of the version of `live` beside it, waits until it is healthy, and switches traffic to
    /// it. Returns the versions that lost the traffic. A failure leaves the serving one as it was.
    pub(super) async fn replace(&self, live: &Subject, lease: Lease) -> Result<Vec<Retired>, JobError> {
        let found = self.workloads.containers_of(live.application.id).await?;
        let of_version = found.iter().filter(|found| found.owner.deployment == live.deployment.id);
        let attempt = of_version.clone().map(|found| found.owner.attempt).max().unwrap_or_default() + 1;
        let recorded = live.deployment.container.as_ref().map(|container| &container.id);
        let previous = of_version.clone().find_map(|found| match &found.what {
            DiscoveredObject::Container { id, .. } if Some(id) == recorded => Some((found.owner, id.clone())),
            _ => None,
        });
        let owner = live.owner(attempt);
        let container = match self.start_copy(live, owner).await {
            Ok(container) => container,
            Err(stop) => {
                if let Err(error) = self.workloads.deployer.remove_attempt(&owner).await {
                    tracing::warn!(deployment.id = %owner.deployment, %error, "failed attempt could not be removed yet");
                }
                return Err(stop);
            }
        };
        // From here on the record may refer to the new container, so it is kept even after a failure. If
        // the record does not refer to it, it is an orphan.
        self.switch_to(live, lease, &container).await?;
        self.workloads.deployer.enable_restart_policy(&container.id).await?;
        let retired = previous.filter(|(previous, _)| *previous != owner);
        Ok(retired.map(|(owner, id)| Retired::container(owner, id, true)).into_iter().collect())
    }

    /// Starts a copy of the version of `live` as the attempt of `owner`, and waits until it is healthy.
    async fn start_copy(&self, live: &Subject, owner: Owner) -> Result<Container, JobError> {
        let container = self.workload(live, owner).await?.start(&live.log).await?;
        self.check_container(live, &container, true).await?;
        Ok(container)
    }
}
