//! Homes: the servers whose machines run stateful applications, and extensions.

#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

#[cfg(feature = "extensions")]
use launchway_domain::ids::{ExecutionId, OrganizationId};
use launchway_domain::{
    deployments::{Deployment, StepError},
    homes::{Home, HomeRepository, Machine},
    ids::{ApplicationId, DeploymentId, InstanceId, SubjectId},
    nodes::{NodeId, NodeInventory},
    replicas::ReplicaRegistry,
    store::StoreError,
};

#[cfg(feature = "extensions")]
use crate::Error;

/// The ports of [`Homes`].
pub struct HomePorts {
    /// Stores homes.
    pub repository: Arc<dyn HomeRepository>,
    /// Returns the servers that are alive.
    pub registry: Arc<dyn ReplicaRegistry>,
    /// Returns the machines that are reachable.
    pub nodes: Arc<dyn NodeInventory>,
}

/// The homes of stateful applications and of extensions. By default there is one machine, on which all of them run. Cheap to clone.
#[derive(Clone, Default)]
pub struct Homes(Option<Arc<Shared>>);

struct Shared {
    own: InstanceId,
    ports: HomePorts,
}

/// The reason why a machine is no home.
enum NoHome {
    /// It runs no applications.
    Refused(String),
    /// The engine does not describe it.
    Unknown(StepError),
}

impl From<NoHome> for StepError {
    fn from(error: NoHome) -> Self {
        match error {
            // The job waits, which is no attempt, until the server of another machine claims it.
            NoHome::Refused(why) => Self::Unavailable(why),
            NoHome::Unknown(error) => error,
        }
    }
}

impl Shared {
    /// Returns the machine of this server as the home of a subject.
    async fn own_home(&self, subject: SubjectId) -> Result<Home, NoHome> {
        let (node, engine) = self.ports.nodes.own_node().await.map_err(NoHome::Unknown)?;
        if !node.takes_containers() {
            // Without its packet filter, what is published there would be reached by other organizations.
            return Err(NoHome::Refused(format!(
                "machine {} runs no applications: run `launchway node activate` for it, or ask another server",
                node.hostname
            )));
        }
        let machine = Machine { engine, node: node.id, hostname: node.hostname };
        Ok(Home { subject, server: self.own, machine })
    }
}

impl Homes {
    /// Returns the homes of an installation on several machines, as the server `own` uses them.
    #[must_use]
    pub fn new(own: InstanceId, ports: HomePorts) -> Self {
        Self(Some(Arc::new(Shared { own, ports })))
    }

    /// Makes the machine of this server the home of an application, unless it has one.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if another machine is its home, or the database does not respond;
    /// [`StepError::Unavailable`] if this machine runs no applications, or cannot be identified.
    pub(crate) async fn settle(&self, application: ApplicationId) -> Result<Option<Home>, StepError> {
        let Some(shared) = self.0.as_deref() else { return Ok(None) };
        let subject = SubjectId::from(application);
        let home = match self.view().await.map_err(unusable)?.homes.remove(&subject) {
            Some(home) => home,
            None => {
                let home = shared.own_home(subject).await?;
                shared.ports.repository.assign(&home).await.map_err(unusable)?
            }
        };
        match home.server == shared.own {
            true => Ok(Some(home)),
            false => Err(StepError::Retryable(format!(
                "the application runs on machine {}",
                home.machine.hostname
            ))),
        }
    }

    /// Returns the home of the extensions of an organization, or that of this server if they have none: then the first request
    /// makes it their home. All of them have one, because they reach each other by names.
    ///
    /// # Errors
    /// [`Error::Conflict`] if there is no home yet and this machine runs no applications, [`Error::Unavailable`] if the engine
    /// or the database does not respond.
    #[cfg(feature = "extensions")]
    pub(crate) async fn of_extensions(&self, organization: OrganizationId) -> Result<Option<Home>, Error> {
        let Some(shared) = self.0.as_deref() else { return Ok(None) };
        let subject = subject_of_extensions(organization);
        if let Some(home) = self.view().await?.homes.remove(&subject) {
            return Ok(Some(home));
        }
        shared.own_home(subject).await.map(Some).map_err(|error| match error {
            NoHome::Refused(why) => Error::Conflict(why),
            NoHome::Unknown(error) => Error::Unavailable(error.into()),
        })
    }

    /// Binds the jobs of an extension to the home of the extensions of its organization. Returns false if they have none.
    #[cfg(feature = "extensions")]
    pub(crate) async fn bind_extension(
        &self,
        organization: OrganizationId,
        extension: SubjectId,
    ) -> Result<bool, Error> {
        let Some(shared) = self.0.as_deref() else { return Ok(false) };
        let mut homes = self.view().await?.homes;
        let Some(home) = homes.remove(&subject_of_extensions(organization)) else { return Ok(false) };
        shared.ports.repository.assign(&Home { subject: extension, ..home }).await?;
        Ok(true)
    }

    /// Makes the machine of this server the home of the extensions of an organization that ran here when there was one machine.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] if this machine cannot be identified, [`StepError::Retryable`] if the database does not respond.
    #[cfg(feature = "extensions")]
    pub async fn adopt_extensions(&self, organization: OrganizationId) -> Result<(), StepError> {
        self.adopt(subject_of_extensions(organization)).await
    }

    /// Makes the machine of this server the home of an application with a compose file that ran here when there was one machine.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] if this machine cannot be identified, [`StepError::Retryable`] if the database does not respond.
    pub async fn adopt_application(&self, application: ApplicationId) -> Result<(), StepError> {
        self.adopt(application.into()).await
    }

    async fn adopt(&self, subject: SubjectId) -> Result<(), StepError> {
        let Some(Shared { own, ports }) = self.0.as_deref() else { return Ok(()) };
        let (node, engine) = ports.nodes.own_node().await?;
        let machine = Machine { engine, node: node.id, hostname: node.hostname };
        let home = Home { subject, server: *own, machine };
        ports.repository.assign(&home).await.map(drop).map_err(unusable)
    }

    /// Records the node of this machine in the homes of this server, and this server in the homes of this machine whose server is
    /// gone: a machine may join the Swarm again as another node, and a data directory may be restored as another server.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] if this machine cannot be identified, [`StepError::Retryable`] if the database does not respond.
    pub(crate) async fn renew(&self) -> Result<(), StepError> {
        let Some(Shared { own, ports }) = self.0.as_deref() else { return Ok(()) };
        let homes = ports.repository.homes().await.map_err(unusable)?;
        if homes.is_empty() {
            return Ok(());
        }
        let (node, engine) = ports.nodes.own_node().await?;
        let machine = Machine { engine, node: node.id, hostname: node.hostname };
        let is_outdated = |Home { server, machine: recorded, .. }: &Home| match recorded.node == machine.node
        {
            true => server != own || recorded.hostname != machine.hostname,
            false => {
                server == own && recorded.engine == machine.engine && recorded.hostname == machine.hostname
            }
        };
        if !homes.iter().any(is_outdated) {
            return Ok(());
        }
        let replicas = ports.registry.replicas().await.map_err(unusable)?;
        let alive: Vec<InstanceId> =
            replicas.into_iter().filter(|one| one.is_alive).map(|one| one.replica.id).collect();
        let renewed = ports.repository.renew(*own, &machine, &alive).await.map_err(unusable)?;
        if renewed > 0 {
            tracing::warn!(node.id = %machine.node, renewed, "homes on this machine got its server and its node");
        }
        Ok(())
    }

    /// Forgets the home of an application of which nothing is left there.
    pub(crate) async fn leave(&self, application: ApplicationId) -> Result<(), StepError> {
        let Some(shared) = &self.0 else { return Ok(()) };
        shared.ports.repository.forget(application.into()).await.map_err(unusable)
    }

    /// Returns all homes as they are now.
    pub(crate) async fn view(&self) -> Result<HomeView, StoreError> {
        let Some(Shared { own, ports }) = self.0.as_deref() else { return Ok(HomeView::default()) };
        let homes = ports.repository.homes().await?;
        Ok(HomeView { own: Some(*own), homes: homes.into_iter().map(|home| (home.subject, home)).collect() })
    }

    /// Returns the homes of `view` whose server is not alive.
    pub(crate) async fn without_server(&self, view: &HomeView) -> Result<Vec<AbsentHome>, StepError> {
        let Some(Shared { ports, .. }) = self.0.as_deref() else { return Ok(Vec::new()) };
        if view.homes.values().all(|home| view.is_own(home)) {
            return Ok(Vec::new());
        }
        let replicas = ports.registry.replicas().await.map_err(unusable)?;
        let living = replicas.iter().filter(|one| one.is_alive).map(|one| one.replica.id);
        let living: HashSet<InstanceId> = living.chain(view.own).collect();
        let absent: Vec<&Home> = view.homes.values().filter(|home| !living.contains(&home.server)).collect();
        if absent.is_empty() {
            return Ok(Vec::new());
        }
        let nodes = ports.nodes.nodes().await?;
        let ready: HashSet<&NodeId> =
            nodes.iter().filter(|node| node.is_ready).map(|node| &node.id).collect();
        let absent = absent.into_iter();
        Ok(absent
            .map(|home| AbsentHome { home: home.clone(), is_lost: !ready.contains(&home.machine.node) })
            .collect())
    }

    /// Returns the runs of extensions that are queued for the homes on `server`, each with the subject of its job.
    #[cfg(feature = "extensions")]
    pub(crate) async fn runs_waiting_for(
        &self,
        server: InstanceId,
    ) -> Result<Vec<(SubjectId, ExecutionId)>, StoreError> {
        match &self.0 {
            None => Ok(Vec::new()),
            Some(shared) => shared.ports.repository.runs_waiting_for(server).await,
        }
    }

    /// Returns the deployments that are queued for the homes on `server`, with their applications.
    pub(crate) async fn waiting_for(
        &self,
        server: InstanceId,
    ) -> Result<Vec<(ApplicationId, DeploymentId)>, StoreError> {
        match &self.0 {
            None => Ok(Vec::new()),
            Some(shared) => shared.ports.repository.waiting_for(server).await,
        }
    }
}

/// A home whose server is not alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AbsentHome {
    pub(crate) home: Home,
    /// True if the machine is not reachable either, so that what runs there does not serve.
    pub(crate) is_lost: bool,
}

impl AbsentHome {
    /// Returns a sentence about an application or an extension with this home.
    pub(crate) fn reason(&self) -> String {
        let machine = &self.home.machine.hostname;
        match self.is_lost {
            true => format!(
                "it runs on machine {machine}, which is not reachable; it starts nowhere else because its volumes are there"
            ),
            false => format!("it runs on machine {machine}, whose Launchway server is not running"),
        }
    }
}

/// The homes at one moment.
#[derive(Debug, Clone, Default)]
pub struct HomeView {
    /// This server; `None` if there is one machine.
    own: Option<InstanceId>,
    homes: HashMap<SubjectId, Home>,
}

/// The machine of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The machine of this server is its home.
    Here,
    /// Another machine is its home.
    Elsewhere,
    /// It has no home.
    Anywhere,
}

impl HomeView {
    /// Returns whether the machine of this server is a home.
    pub(crate) fn has_own(&self) -> bool {
        self.homes.values().any(|home| self.is_own(home))
    }

    fn is_own(&self, home: &Home) -> bool {
        Some(home.server) == self.own
    }

    /// Returns the machine on which the objects of an application are that only one machine has.
    pub(crate) fn place(&self, application: ApplicationId) -> Place {
        self.place_of_subject(application.into())
    }

    /// Returns the machine of the extensions of an organization.
    #[cfg(feature = "extensions")]
    pub(crate) fn place_of_extensions(&self, organization: OrganizationId) -> Place {
        self.place_of_subject(subject_of_extensions(organization))
    }

    fn place_of_subject(&self, subject: SubjectId) -> Place {
        match self.homes.get(&subject) {
            None => Place::Anywhere,
            Some(home) if self.is_own(home) => Place::Here,
            Some(_) => Place::Elsewhere,
        }
    }

    /// Returns the machine of a version: versions that are no compositions run anywhere.
    pub(crate) fn place_of(&self, version: &Deployment) -> Place {
        match version.is_composition() {
            true => self.place(version.application_id),
            false => Place::Anywhere,
        }
    }
}

/// Returns the subject of the home of all extensions of an organization, which is that of no job.
#[cfg(feature = "extensions")]
pub(crate) fn subject_of_extensions(organization: OrganizationId) -> SubjectId {
    uuid::Uuid::from(organization).into()
}

fn unusable(error: StoreError) -> StepError {
    StepError::failed("the database cannot be used", error)
}
