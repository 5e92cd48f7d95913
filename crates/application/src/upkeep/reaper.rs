//! Removing what no record accounts for.

use std::collections::{HashMap, HashSet};

use launchway_domain::{
    deployments::{ContainerId, Found, FoundObject, Owner, Standing},
    ids::DeploymentId,
};

use super::Upkeep;

/// How old a container has to be before nobody can be about to record it.
const YOUNG: chrono::TimeDelta = chrono::TimeDelta::minutes(2);

/// The containers that live versions are recorded with, and the attempts that made them: what else
/// those made for the same composition lives too.
struct Living {
    containers: HashSet<ContainerId>,
    makers: HashSet<Owner>,
}

impl Living {
    fn among(found: &[Found], containers: HashSet<ContainerId>) -> Self {
        let is_live = |found: &&Found| matches!(&found.what, FoundObject::Container { id, .. } if containers.contains(id));
        let makers = found.iter().filter(is_live).map(|found| found.owner).collect();
        Self { containers, makers }
    }
}

impl Upkeep {
    /// Removes containers, networks and images of this installation that nobody will use again.
    pub(super) async fn reap(&self) -> Result<(), String> {
        let found = self.ports.inventory.everything().await.map_err(|error| error.to_string())?;
        if found.is_empty() {
            return Ok(());
        }
        let mut ids: Vec<DeploymentId> = found.iter().map(|found| found.owner.deployment).collect();
        ids.sort_unstable();
        ids.dedup();
        let kept = self.limits.kept_versions;
        let standing =
            self.ports.deployments.standing(&ids, kept).await.map_err(|error| error.to_string())?;
        let standing: HashMap<DeploymentId, Standing> =
            standing.into_iter().map(|standing| (standing.deployment, standing)).collect();
        let live = self.ports.deployments.live().await.map_err(|error| error.to_string())?;
        let live = live.into_iter().filter_map(|version| Some(version.deployment.container?.id));
        let live: HashSet<ContainerId> = live.collect();
        let live = Living::among(&found, live);
        // Containers first: an image that runs and a network that is used cannot be removed.
        let (containers, others): (Vec<&Found>, Vec<&Found>) =
            found.iter().partition(|found| matches!(found.what, FoundObject::Container { .. }));
        for found in containers.into_iter().chain(others) {
            if self.is_wanted(found, standing.get(&found.owner.deployment), &live) {
                continue;
            }
            match self.ports.inventory.remove(found).await {
                Ok(()) => {
                    tracing::info!(deployment.id = %found.owner.deployment, what = ?found.what, "removed a leftover")
                }
                Err(error) => tracing::warn!(%error, what = ?found.what, "a leftover could not be removed"),
            }
        }
        Ok(())
    }

    /// Removes releases of sites that nobody will go back to.
    pub(super) async fn reap_releases(&self) -> Result<(), String> {
        let releases = self.ports.sites.releases().await.map_err(|error| error.to_string())?;
        let mut ids: Vec<DeploymentId> = releases.iter().map(|(_, deployment)| *deployment).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(());
        }
        let kept = self.limits.kept_versions;
        let standing =
            self.ports.deployments.standing(&ids, kept).await.map_err(|error| error.to_string())?;
        let is_wanted =
            |standing: &&Standing| standing.is_live || standing.is_open || standing.is_worth_keeping;
        let wanted: HashSet<DeploymentId> =
            standing.iter().filter(is_wanted).map(|standing| standing.deployment).collect();
        for (application, deployment) in releases.into_iter().filter(|(_, id)| !wanted.contains(id)) {
            match self.ports.sites.withdraw(application, deployment).await {
                Ok(()) => tracing::info!(deployment.id = %deployment, "removed an old release of a site"),
                Err(error) => {
                    tracing::warn!(%error, deployment.id = %deployment, "a release could not be removed")
                }
            }
        }
        Ok(())
    }

    fn is_wanted(&self, found: &Found, standing: Option<&Standing>, live: &Living) -> bool {
        let is_open = standing.is_some_and(|standing| standing.is_open);
        match &found.what {
            FoundObject::Container { id, created_at, service, .. } => {
                let is_young = self.tools.clock.now() - *created_at < YOUNG;
                // Whose record may be about to be written, or has just been replaced.
                let may_be_recorded = standing.is_none_or(|standing| standing.is_live);
                let is_live =
                    live.containers.contains(id) || (service.is_some() && live.makers.contains(&found.owner));
                is_live || is_open || (is_young && may_be_recorded)
            }
            FoundObject::Network(_) => is_open || live.makers.contains(&found.owner),
            FoundObject::Image(_) => is_open || standing.is_some_and(|standing| standing.is_worth_keeping),
        }
    }
}
