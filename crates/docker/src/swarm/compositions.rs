//! Compositions and extensions of this machine, which its engine runs.

use std::net::IpAddr;

use launchway_domain::deployments::{
    Condition, ContainerId, Deployer as _, DiscoveredObject, DiscoveredResource, EngineInventory as _,
    StepError,
};

use super::SwarmEngine;
use crate::containers::gone;

impl SwarmEngine {
    /// Returns the containers of the compositions of this machine.
    pub(super) async fn composed(&self) -> Result<Vec<DiscoveredResource>, StepError> {
        let mut found = self.engine.containers().await?;
        found.retain(|found| matches!(found.what, DiscoveredObject::Container { service: Some(_), .. }));
        if found.is_empty() {
            return Ok(found);
        }
        let address = self.own_address().await?;
        for one in &mut found {
            if let DiscoveredObject::Container { condition, .. } = &mut one.what {
                *condition = reached_at(*condition, address);
            }
        }
        Ok(found)
    }

    /// Returns the condition of a container of a composition or of an extension.
    pub(super) async fn composed_condition(&self, container: &ContainerId) -> Result<Condition, StepError> {
        let condition = self.engine.condition(container).await?;
        if condition == Condition::Gone || self.engine.is_local_extension(container).await? {
            return Ok(condition);
        }
        Ok(reached_at(condition, self.own_address().await?))
    }

    /// Rejects a container that other machines do not reach, so that another one is created in its place.
    pub(super) async fn require_published(&self, container: &ContainerId) -> Result<(), StepError> {
        match self.engine.is_unpublished(container).await? {
            true => Err(gone()),
            false => Ok(()),
        }
    }

    async fn own_address(&self) -> Result<IpAddr, StepError> {
        let own = self.address.get_or_try_init(async || Ok(self.engine.own_node().await?.address)).await?;
        Ok(*own)
    }
}

/// Returns the condition of a container that is reached at the address of this machine.
fn reached_at(condition: Condition, address: IpAddr) -> Condition {
    match condition {
        Condition::Running { restarts, .. } => Condition::Running { address, restarts },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_is_reached_at_the_address_of_the_machine() {
        let running = |address: [u8; 4]| Condition::Running { address: address.into(), restarts: 2 };
        let address = IpAddr::from([10, 0, 0, 9]);
        assert_eq!(reached_at(running([10, 192, 0, 3]), address), running([10, 0, 0, 9]));
        assert_eq!(reached_at(Condition::Paused, address), Condition::Paused);
    }
}
