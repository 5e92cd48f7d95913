//! Orphans: resources of deployments that are no longer needed.
//!
//! **Invariant:** nothing is removed because its record is unknown. A resource is removed only if the
//! records show that it was created here and is no longer needed, after a grace period.

use std::collections::{HashMap, HashSet};

use launchway_domain::{
    deployments::{
        ContainerId, DeploymentRepository, DiscoveredObject, DiscoveredResource, EngineInventory,
        ImageRecord, KeptVersions, Owner, RetentionStatus, SiteStore, StepError,
    },
    ids::{ApplicationId, DeploymentId},
    organizations::Scope,
};
use tokio::time::{Instant, sleep};

use super::{Reconciler, unreadable};
use crate::{
    deployments::Retired,
    homes::{HomeView, Place},
};

/// Resources with the label or in the directories of the installation that have no known record. They are
/// never removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownObjects {
    /// Containers, images and networks on the engine.
    pub objects: Vec<DiscoveredResource>,
    /// Published directories.
    pub releases: Vec<(ApplicationId, DeploymentId)>,
}

/// The time since which each orphan is known.
#[derive(Default)]
struct Orphans {
    objects: HashMap<String, Instant>,
    releases: HashMap<DeploymentId, Instant>,
}

/// The containers of live versions, and the attempts that created them: other resources of those attempts
/// for the same composition are in use too.
struct InUse {
    containers: HashSet<ContainerId>,
    owners: HashSet<Owner>,
}

impl InUse {
    fn among(found: &[DiscoveredResource], containers: HashSet<ContainerId>) -> Self {
        let is_live = |found: &&DiscoveredResource| matches!(&found.what, DiscoveredObject::Container { id, .. } if containers.contains(id));
        let owners = found.iter().filter(is_live).map(|found| found.owner).collect();
        Self { containers, owners }
    }

    /// Returns whether the live versions, or an open deployment, need `found`.
    fn wants(&self, found: &DiscoveredResource, retention_status: &RetentionStatus) -> bool {
        retention_status.is_open
            || match &found.what {
                DiscoveredObject::Container { id, service, .. } => {
                    self.containers.contains(id) || (service.is_some() && self.owners.contains(&found.owner))
                }
                DiscoveredObject::Network(_) => self.owners.contains(&found.owner),
                DiscoveredObject::Image { .. } => retention_status.is_worth_keeping,
            }
    }
}

/// Returns the identity of a resource on the engine, independent of its condition.
fn key(object: &DiscoveredObject) -> String {
    match object {
        DiscoveredObject::Container { id, .. } => format!("container {}", id.as_str()),
        DiscoveredObject::Image { name, .. } => format!("image {}", name.as_str()),
        DiscoveredObject::Network(name) => format!("network {name}"),
    }
}

impl Reconciler {
    pub(super) async fn run_orphan_removal(&self) {
        let (mut orphans, mut is_resumed, mut was_leader) = (Orphans::default(), false, false);
        loop {
            // Another leader may have retired what this one would.
            is_resumed = is_resumed && self.context.replica.is_leader() == was_leader;
            was_leader = self.context.replica.is_leader();
            if let Err(error) = self.context.homes.renew().await {
                tracing::warn!(%error, "homes could not be renewed");
            }
            match self.context.homes.view().await {
                Ok(homes) => {
                    is_resumed = is_resumed || self.resume_retirements(&homes).await;
                    if let Err(error) = self.remove_orphans(&mut orphans, &homes).await {
                        tracing::warn!(%error, "orphans could not be removed");
                    }
                }
                Err(error) => tracing::warn!(%error, "homes could not be read"),
            }
            // Every replica has folders of its own.
            if let Err(error) = self.remove_releases(&mut orphans).await {
                tracing::warn!(%error, "old releases of sites could not be removed");
            }
            sleep(self.timings.orphans).await;
        }
    }

    /// Retires the versions whose retirement an earlier run began. Returns whether all of them are retired.
    async fn resume_retirements(&self, homes: &HomeView) -> bool {
        let unretired = match self.ports.deployments.unretired().await {
            Ok(unretired) => unretired,
            Err(error) => {
                tracing::warn!(%error, "versions to retire could not be read");
                return false;
            }
        };
        let mut is_done = true;
        for deployment in unretired {
            if !self.acts_on(homes, &deployment) {
                continue;
            }
            let scope = Scope::of_record(deployment.organization_id);
            let retired = Retired::version((scope, deployment.application_id), &deployment);
            if let Err(error) = self.ports.retirer.retire(&retired).await {
                tracing::warn!(%error, deployment.id = %deployment.id, "previous version could not be retired yet");
                is_done = false;
            }
        }
        is_done
    }

    /// Removes containers, networks and images whose deployment is known and no longer needs them.
    async fn remove_orphans(&self, orphans: &mut Orphans, homes: &HomeView) -> Result<(), StepError> {
        // Without leading, a server removes objects of its own machine only.
        if !self.context.replica.is_leader() && !self.has_own_engine() && !homes.has_own() {
            orphans.objects.clear();
            return Ok(());
        }
        let listed_at = self.context.clock.now();
        let found = self.ports.inventory.everything().await?;
        let retention_status =
            self.retention_status(found.iter().map(|found| found.owner.deployment)).await?;
        let live = self.ports.deployments.live().await.map_err(unreadable)?;
        let live = live.iter().flat_map(|version| version.deployment.copies());
        let in_use = InUse::among(&found, live.map(|container| container.id.clone()).collect());
        let unwanted: Vec<&DiscoveredResource> = found
            .iter()
            .filter(|found| {
                let known = retention_status.get(&found.owner.deployment);
                self.may_remove(homes, found)
                    && known.is_some_and(|retention_status| !in_use.wants(found, retention_status))
            })
            .collect();
        let now = Instant::now();
        let keys: HashSet<String> = unwanted.iter().map(|found| key(&found.what)).collect();
        orphans.objects.retain(|key, _| keys.contains(key));
        let mut due = unwanted;
        due.retain(|found| {
            let since = *orphans.objects.entry(key(&found.what)).or_insert(now);
            now - since >= self.timings.grace
        });
        // Containers first: an image that runs and a network that is used cannot be removed.
        due.sort_by_key(|found| !matches!(found.what, DiscoveredObject::Container { .. }));
        let mut removed = HashSet::new();
        for found in due {
            // Each time: a drain may take longer than a term.
            if !self.may_remove(homes, found) {
                continue;
            }
            match self.remove_orphan(found, homes, &retention_status, &in_use).await {
                Ok(()) => {
                    removed.insert(key(&found.what));
                    tracing::info!(deployment.id = %found.owner.deployment, object = ?found.what, "orphan removed")
                }
                Err(error) => tracing::warn!(%error, object = ?found.what, "orphan could not be removed"),
            }
        }
        let kept = found.iter().filter(|found| !removed.contains(&key(&found.what)));
        let images = kept.filter_map(|found| match &found.what {
            DiscoveredObject::Image { size, .. } => {
                Some(ImageRecord { deployment: found.owner.deployment, image: size.clone() })
            }
            _ => None,
        });
        match &self.ports.image_records {
            Some(records) => records.synchronize(images.collect(), listed_at).await.map_err(unreadable),
            None => Ok(()),
        }
    }

    async fn remove_orphan(
        &self,
        found: &DiscoveredResource,
        homes: &HomeView,
        retention_status: &HashMap<DeploymentId, RetentionStatus>,
        in_use: &InUse,
    ) -> Result<(), StepError> {
        let DiscoveredObject::Container { id, .. } = &found.what else {
            return self.ports.inventory.remove(found).await;
        };
        // The rest of its attempt is the live version: only the container of a command is removed.
        if in_use.owners.contains(&found.owner) {
            return self.ports.inventory.remove(found).await;
        }
        // The services of its version are those of the leader.
        if homes.place(found.owner.application) == Place::Anywhere && !self.context.replica.is_leader() {
            self.ports.deployer.stop(id).await?;
            return self.ports.inventory.remove(found).await;
        }
        let is_live = retention_status
            .get(&found.owner.deployment)
            .is_some_and(|retention_status| retention_status.is_live);
        let retired = Retired::container(found.owner, id.clone(), is_live);
        self.ports.retirer.retire(&retired).await?;
        // The container of a command is not the container of an attempt.
        self.ports.inventory.remove(found).await
    }

    /// Removes releases of sites whose deployment is known and can no longer be rolled back to.
    async fn remove_releases(&self, orphans: &mut Orphans) -> Result<(), StepError> {
        let releases = self.ports.sites.releases().await?;
        let retention_status =
            self.retention_status(releases.iter().map(|(_, deployment)| *deployment)).await?;
        let is_unwanted = |id: &DeploymentId| {
            let known = retention_status.get(id);
            known.is_some_and(|known| !(known.is_live || known.is_open || known.is_worth_keeping))
        };
        let unwanted: Vec<_> = releases.into_iter().filter(|(_, id)| is_unwanted(id)).collect();
        let now = Instant::now();
        orphans.releases.retain(|id, _| unwanted.iter().any(|(_, unwanted)| unwanted == id));
        for (application, deployment) in unwanted {
            let since = *orphans.releases.entry(deployment).or_insert(now);
            if now - since < self.timings.grace {
                continue;
            }
            match self.ports.sites.withdraw(application, deployment).await {
                Ok(()) => tracing::info!(deployment.id = %deployment, "release of a site removed"),
                Err(error) => {
                    tracing::warn!(%error, deployment.id = %deployment, "release of a site could not be removed")
                }
            }
        }
        Ok(())
    }

    pub(super) async fn retention_status(
        &self,
        deployments: impl Iterator<Item = DeploymentId>,
    ) -> Result<HashMap<DeploymentId, RetentionStatus>, StepError> {
        retention_status(&*self.ports.deployments, deployments, self.limits.kept_versions).await
    }
}

/// Lists the resources without a known record.
///
/// # Errors
/// [`StepError`] when the engine, the records or the file system do not respond.
pub async fn find_unknown(
    inventory: &dyn EngineInventory,
    sites: &dyn SiteStore,
    deployments: &dyn DeploymentRepository,
) -> Result<UnknownObjects, StepError> {
    let kept = KeptVersions::default();
    let found = inventory.everything().await?;
    let known = retention_status(deployments, found.iter().map(|found| found.owner.deployment), kept).await?;
    let releases = sites.releases().await?;
    let known_releases = retention_status(deployments, releases.iter().map(|(_, id)| *id), kept).await?;
    Ok(UnknownObjects {
        objects: found.into_iter().filter(|found| !known.contains_key(&found.owner.deployment)).collect(),
        releases: releases.into_iter().filter(|(_, id)| !known_releases.contains_key(id)).collect(),
    })
}

/// Returns the retention status of each of `deployments` from the records; unknown ones are left out.
async fn retention_status(
    repository: &dyn DeploymentRepository,
    deployments: impl Iterator<Item = DeploymentId>,
    kept: KeptVersions,
) -> Result<HashMap<DeploymentId, RetentionStatus>, StepError> {
    let ids: HashSet<DeploymentId> = deployments.collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<DeploymentId> = ids.into_iter().collect();
    let retention_status = repository.retention_status(&ids, kept).await.map_err(unreadable)?;
    Ok(retention_status
        .into_iter()
        .map(|retention_status| (retention_status.deployment, retention_status))
        .collect())
}
