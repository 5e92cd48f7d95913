//! Publishes containers of compositions and extensions that get traffic, where front proxies run on several machines.
//!
//! Each gets a port of the machine, at the address at which the machines of the Swarm reach each other. It is forwarded by the
//! same bridge as the ports of services, so that the same rules of the packet filter keep containers from it.

use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr},
};

use launchway_domain::{
    clock::Clock as _,
    deployments::{Container, ContainerId, StepError},
    extensions::PortRange,
    ids::{ApplicationId, OrganizationId},
};
use launchway_system::clock::SystemClock;
use serde_json::Value;

use super::{
    DockerEngine,
    errors::EngineError,
    forwarded_ports::ForwardedPort,
    labels::{self, Label},
    swarm::free_port,
};

/// The most ports that are tried for one service.
pub(super) const MOST_PORTS: usize = 8;

/// The node of a Swarm that a machine is.
pub(super) struct OwnNode {
    pub(super) id: String,
    /// Its address in the Swarm.
    pub(super) address: IpAddr,
    /// The id of its engine.
    pub(super) engine: String,
}

impl DockerEngine {
    /// Returns the node that this machine is.
    pub(super) async fn own_node(&self) -> Result<OwnNode, StepError> {
        let absent = || StepError::Unavailable("the engine does not say which node it is".to_owned());
        let socket = self.docker.socket().await.ok_or_else(absent)?;
        let info = socket.info().await.ok_or_else(absent)?;
        let text = |name: &str| info.get("Swarm")?.get(name)?.as_str();
        let address = text("NodeAddr").and_then(|address| address.parse().ok());
        let id = text("NodeID").filter(|id| !id.is_empty()).map(str::to_owned);
        let engine = info.get("ID").and_then(|id| id.as_str()).filter(|id| !id.is_empty()).map(str::to_owned);
        let own = || Some(OwnNode { id: id?, address: address?, engine: engine? });
        own().ok_or_else(absent)
    }

    /// Chooses the address and port at which a container that gets traffic is reached, with none of the ports in `refused`;
    /// `None` if it is reached by its address in its network.
    pub(super) async fn choose_endpoint(
        &self,
        refused: &HashSet<u16>,
    ) -> Result<Option<SocketAddr>, StepError> {
        let Some(range) = self.options.published_ports else { return Ok(None) };
        let address = self.own_node().await?.address;
        let mut taken = self.published_ports().await?;
        taken.extend(refused);
        let port = free_port(range, &taken, SystemClock.now()).ok_or_else(|| no_port(range))?;
        Ok(Some(SocketAddr::new(address, port)))
    }

    /// Returns the ports at which compositions and extensions of this machine are published, or were before they were stopped.
    async fn published_ports(&self) -> Result<HashSet<u16>, StepError> {
        let mut taken = HashSet::new();
        for kind in [Label::of_web(), Label::of_no_application()] {
            let marks = [Label::of_instance(self.options.instance), kind];
            let found = self.docker.containers(&marks).await.map_err(EngineError::or_fault)?;
            let records = self.docker.inspect(&found).await.map_err(EngineError::or_fault)?;
            taken.extend(records.iter().filter_map(|record| Some(self.published(record)?.port())));
            taken.extend(records.iter().flat_map(ForwardedPort::read_all).map(|port| port.endpoint.port()));
        }
        Ok(taken)
    }

    /// Returns the address and port at which a container is published. An image may come with any label, but those of a
    /// composition override it.
    pub(super) fn published(&self, record: &Value) -> Option<SocketAddr> {
        self.options.published_ports?;
        let labels = record.get("labels")?;
        labels::Role::read(labels).filter(|role| role.is_web)?;
        labels::published(labels)
    }

    /// Returns a started container as it is reached from other machines.
    pub(super) async fn reached(&self, container: Container) -> Result<Container, StepError> {
        let record = self.record(&container.id).await?;
        let Some(endpoint) = record.as_ref().and_then(|record| self.published(record)) else {
            return Ok(container);
        };
        let port = endpoint.port().try_into().ok();
        Ok(Container { address: endpoint.ip(), port, ..container })
    }

    /// Returns whether a container belongs to an extension and is reached on this machine only: no step routed a host name to it,
    /// or it is from a time before the Swarm.
    pub(super) async fn is_local_extension(&self, container: &ContainerId) -> Result<bool, StepError> {
        let Some(record) = self.record(container).await? else { return Ok(false) };
        let is_local =
            || ForwardedPort::read_all(&record).iter().all(|port| port.endpoint.ip().is_loopback());
        Ok(record.get("labels").is_some_and(labels::is_of_extension) && is_local())
    }

    /// Returns whether this machine has containers or volumes of an application.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] or [`StepError::Retryable`] if the engine is unreachable.
    pub async fn has_application(&self, application: ApplicationId) -> Result<bool, StepError> {
        self.has(&[Label::of_instance(self.options.instance), Label::of_application(application)]).await
    }

    /// Returns whether this machine has containers or volumes of extensions of an organization.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] or [`StepError::Retryable`] if the engine is unreachable.
    pub async fn has_extensions(&self, organization: OrganizationId) -> Result<bool, StepError> {
        let marks = [
            Label::of_instance(self.options.instance),
            Label::of_organization(organization),
            Label::of_no_application(),
        ];
        self.has(&marks).await
    }

    /// Returns whether this machine has containers or volumes with all of these labels.
    async fn has(&self, labels: &[Label]) -> Result<bool, StepError> {
        let containers = self.docker.containers(labels).await.map_err(EngineError::or_fault)?;
        let volumes = self.docker.volumes(labels).await.map_err(EngineError::or_fault)?;
        Ok(!containers.is_empty() || !volumes.is_empty())
    }

    /// Returns whether a container belongs to a composition that is published nowhere: it is from a time before the Swarm.
    pub(super) async fn is_unpublished(&self, container: &ContainerId) -> Result<bool, StepError> {
        let record = self.record(container).await?;
        Ok(record.is_some_and(|record| self.published(&record).is_none()))
    }
}

fn no_port(range: PortRange) -> StepError {
    StepError::Rejected(format!(
        "no port of the machine is left for another composition or extension ({range}, the last quarter of \
         LAUNCHWAY_NODE_PORTS)"
    ))
}

/// Returns whether an error says that a port of the machine is in use.
pub(super) fn is_about_a_port(error: &StepError) -> bool {
    let is_taken =
        |why: &str| why.contains("port is already allocated") || why.contains("address already in use");
    matches!(error, StepError::Rejected(why) | StepError::Retryable(why) if is_taken(why))
}
