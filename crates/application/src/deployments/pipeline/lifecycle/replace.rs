//! Replaces the containers of a live version.

use launchway_domain::{
    deployments::{Container, ContainerId, DiscoveredObject, DiscoveredResource, Owner},
    jobs::Lease,
};

use super::{Copies, JobError, Lifecycle, Retired, Subject};

impl Lifecycle {
    /// Starts the version of `live` anew beside it, waits until every copy is healthy, and switches traffic to
    /// them. Returns the containers that lost the traffic. A failure leaves the serving ones as they were.
    pub(super) async fn replace(&self, live: &Subject, lease: Lease) -> Result<Vec<Retired>, JobError> {
        let found = self.workloads.containers_of(live.application.id).await?;
        let previous: Vec<(u16, Owner, ContainerId)> = live
            .deployment
            .numbered_copies()
            .filter_map(|(number, recorded)| {
                Some((number, owner_of(&found, &recorded.id)?, recorded.id.clone()))
            })
            .collect();
        let owner = live.owner(next_attempt(live, &found));
        let copies = Copies::all(live.wanted_copies());
        let containers = self.start_beside(live, owner, copies).await?;
        // From here on the record may refer to the new containers, so they are kept even after a failure. If
        // the record does not refer to them, they are orphans.
        self.switch_to(live, lease, &containers).await?;
        let ids = containers.iter().map(|container| &container.id);
        self.workloads.enable_restart_policies(ids).await?;
        Ok(match previous.as_slice() {
            [] => Vec::new(),
            [(_, previous, id)] if live.deployment.further_copies.is_empty() => {
                let is_another = *previous != owner;
                is_another.then(|| Retired::container(*previous, id.clone(), true)).into_iter().collect()
            }
            _ => {
                let previous = previous.into_iter().map(|(number, _, id)| (number, id));
                vec![Retired::copies(&live.deployment, previous.collect())]
            }
        })
    }

    /// Starts `copies` of the version of `live` as the attempt of `owner`, and waits until they are healthy.
    /// Removes them after a failure.
    pub(super) async fn start_beside(
        &self,
        live: &Subject,
        owner: Owner,
        copies: Copies,
    ) -> Result<Vec<Container>, JobError> {
        let started = self.start_copies(live, owner, copies).await;
        if started.is_err()
            && let Err(error) = self.workloads.deployer.remove_attempt(&owner).await
        {
            tracing::warn!(deployment.id = %owner.deployment, %error, "failed attempt could not be removed yet");
        }
        started
    }

    async fn start_copies(
        &self,
        live: &Subject,
        owner: Owner,
        copies: Copies,
    ) -> Result<Vec<Container>, JobError> {
        let containers = self.workload(live, owner, copies).await?.start(&live.log).await?;
        self.check_containers(live, &containers, true).await?;
        Ok(containers)
    }
}

/// Returns the number of an attempt that has no container yet.
pub(super) fn next_attempt(live: &Subject, found: &[DiscoveredResource]) -> i32 {
    let of_version = found.iter().filter(|found| found.owner.deployment == live.deployment.id);
    of_version.map(|found| found.owner.attempt).max().unwrap_or_default() + 1
}

/// Returns the attempt that created a container of the engine.
fn owner_of(found: &[DiscoveredResource], container: &ContainerId) -> Option<Owner> {
    let is_it = |found: &&DiscoveredResource| matches!(&found.what, DiscoveredObject::Container { id, .. } if id == container);
    found.iter().find(is_it).map(|found| found.owner)
}
