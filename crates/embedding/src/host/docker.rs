//! A host that runs each version as a container of a Docker engine.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use launchway_docker::{DockerEngine, DockerOptions};
use launchway_domain::{
    clock::Timestamp,
    deployments::{
        Condition, ContainerId, ContainerPlan, Deployer as _, DiscoveredObject, DiscoveredResource,
        EngineInventory, ImageBuilder as _, Output, Owner, PrintedLine, StepError,
    },
};
use tokio::time::Instant;
use uuid::Uuid;

use super::{Host, Version, VersionId};

/// The time that an ended container is kept, so that its output can be read.
const OUTPUT_KEPT: Duration = Duration::from_secs(10 * 60);
/// The time that one wait for events takes at most.
const NEWS: Duration = Duration::from_secs(60);

/// Runs each version as a container of the Docker engine of this machine, by the command `docker`.
///
/// Containers are found again by their labels. Those of one organization share a network, and reach no other
/// organization's; they have limits of memory and processes, and cannot gain privileges. A version listens on the
/// port of its application on all addresses, and is reached at the address of its container, so the service has to
/// run on the same machine.
///
/// Images come from public registries; [`DockerOptions::registries`] permits others. An image that is on the engine
/// is used if its registry cannot be reached. A pull has to end within the limit of a start.
///
/// ```
/// use launchway_embedding::{DockerHost, DockerOptions};
/// use uuid::uuid;
///
/// let instance = uuid!("0190d3a4-5f1e-7c3e-9d0a-3d6f2b1c4e5a");
/// let mut options = DockerOptions::new(instance.into());
/// options.limits.memory = 256 * 1024 * 1024;
/// let host = DockerHost::with_options(options);
/// ```
#[derive(Debug)]
pub struct DockerHost {
    engine: Arc<DockerEngine>,
    /// The versions whose start or end is running.
    busy: Mutex<HashMap<VersionId, Arc<tokio::sync::Mutex<()>>>>,
    /// The times at which containers were first seen to have ended.
    ended: Mutex<HashMap<ContainerId, Instant>>,
}

/// A container of a version.
struct Found {
    id: ContainerId,
    address: Option<SocketAddr>,
    resource: DiscoveredResource,
}

impl Found {
    fn of(resource: DiscoveredResource) -> Option<Self> {
        let DiscoveredObject::Container { id, condition, port, .. } = &resource.what else { return None };
        let address = match condition {
            Condition::Running { address, .. } => port.map(|port| SocketAddr::new(*address, port.get())),
            _ => None,
        };
        Some(Self { id: id.clone(), address, resource })
    }

    fn version(&self) -> VersionId {
        let Owner { deployment, attempt, .. } = self.resource.owner;
        VersionId { deployment, attempt }
    }
}

impl DockerHost {
    /// Returns a host that labels its containers with `instance`. Each service that uses the engine needs an id of
    /// its own, and the same one after a restart.
    #[must_use]
    pub fn new(instance: Uuid) -> Self {
        Self::with_options(DockerOptions::new(instance.into()))
    }

    /// Returns a host with these options.
    #[must_use]
    pub fn with_options(options: DockerOptions) -> Self {
        let engine = Arc::new(DockerEngine::new(options));
        Self { engine, busy: Mutex::default(), ended: Mutex::default() }
    }

    async fn containers(&self) -> Result<Vec<Found>, StepError> {
        Ok(self.engine.containers().await?.into_iter().filter_map(Found::of).collect())
    }

    /// Returns the lock of a version, so that its end does not overtake a start whose caller is gone.
    fn lock_of(&self, id: VersionId) -> Arc<tokio::sync::Mutex<()>> {
        let mut busy = locked(&self.busy);
        busy.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(busy.entry(id).or_default())
    }

    /// Removes the containers that ended a while ago, and the images of deployments that have no other one.
    async fn remove_ended(&self, found: &[Found]) {
        let expired: Vec<&Found> = {
            let (mut ended, now) = (locked(&self.ended), Instant::now());
            let gone: HashSet<&ContainerId> =
                found.iter().filter(|one| one.address.is_none()).map(|one| &one.id).collect();
            ended.retain(|id, _| gone.contains(id));
            let is_expired = |one: &&Found| {
                gone.contains(&one.id) && now - *ended.entry(one.id.clone()).or_insert(now) >= OUTPUT_KEPT
            };
            found.iter().filter(is_expired).collect()
        };
        for one in &expired {
            let deployment = one.version().deployment;
            let is_expired = |id: &ContainerId| expired.iter().any(|expired| expired.id == *id);
            let is_last =
                !found.iter().any(|other| other.version().deployment == deployment && !is_expired(&other.id));
            if let Err(error) = self.remove(one, is_last).await {
                tracing::warn!(version = %one.version(), %error, "ended version could not be removed");
            }
        }
    }

    async fn remove(&self, one: &Found, with_images: bool) -> Result<(), StepError> {
        let lock = self.lock_of(one.version());
        let _lock = lock.lock().await;
        EngineInventory::remove(&*self.engine, &one.resource).await?;
        if with_images {
            let deployment = one.version().deployment;
            let is_of_it = |found: &DiscoveredResource| found.owner.deployment == deployment;
            for found in self.engine.everything().await?.into_iter().filter(is_of_it) {
                EngineInventory::remove(&*self.engine, &found).await?;
            }
        }
        Ok(())
    }
}

/// The progress of a pull, which nobody follows.
struct Nobody;

#[async_trait]
impl Output for Nobody {
    async fn write(&self, _: &[u8]) {}
}

#[async_trait]
impl Host for DockerHost {
    async fn start(&self, version: &Version) -> Result<SocketAddr, StepError> {
        let owner = Owner {
            organization: version.application.organization_id,
            application: version.application.id,
            deployment: version.id.deployment,
            attempt: version.id.attempt,
        };
        let image = self.engine.obtain(&owner, &version.image, Arc::new(Nobody)).await?;
        let (environment, port) = (version.environment.clone(), version.port);
        let plan = ContainerPlan { owner, image, environment, port, reserved: Vec::new(), copy: 1 };
        let (engine, lock) = (Arc::clone(&self.engine), self.lock_of(version.id));
        // A task of its own: the engine goes on if the caller does not.
        let started = tokio::spawn(async move {
            let _lock = lock.lock().await;
            engine.start(&plan).await
        });
        let started = started.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
        Ok(SocketAddr::new(started?.address, port.get()))
    }

    async fn list(&self) -> Result<Vec<(VersionId, SocketAddr)>, StepError> {
        let found = self.containers().await?;
        self.remove_ended(&found).await;
        Ok(found.iter().filter_map(|one| Some((one.version(), one.address?))).collect())
    }

    async fn end(&self, id: VersionId) -> Result<(), StepError> {
        let lock = self.lock_of(id);
        let _lock = lock.lock().await;
        for one in self.containers().await?.iter().filter(|one| one.version() == id) {
            self.engine.stop(&one.id).await?;
        }
        Ok(())
    }

    async fn printed(
        &self,
        id: VersionId,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<PrintedLine>, StepError> {
        match self.containers().await?.iter().find(|one| one.version() == id) {
            Some(one) => self.engine.printed(&one.id, since, limit).await,
            None => Ok(Vec::new()),
        }
    }

    async fn changed(&self) {
        while !self.engine.wait_for_events(NEWS).await {}
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
