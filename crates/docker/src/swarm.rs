//! The engine `swarm`: containers on the machines of a Docker Swarm.
//!
//! Images are built, and commands run, by the [`DockerEngine`] of this machine, a manager of the Swarm. Images are then
//! pushed to a registry, and each copy of an application is a service with one container, which Swarm starts on any of
//! the prepared nodes and starts elsewhere if that node is lost. Compositions and extensions are run by the [`DockerEngine`] of
//! this machine: their volumes are here. Their ids are those of containers, and not of services.
//!
//! **Invariant:** a service has a port of its own, the same on every node, and no other service gets it as long as it exists.
//! So a route that is out of date leads to the same application or nowhere, but never to another one.
//!
//! **Invariant:** images are named by the digest that the registry returned for what was pushed.

mod compositions;
mod condition;
mod deployer;
mod images;
mod inventory;
mod lists;
mod placement;
mod records;
mod registry;
mod removal;
mod startup;

use std::{collections::BTreeSet, net::IpAddr, str::FromStr, sync::Arc};

use async_trait::async_trait;
use launchway_domain::{
    deployments::StepError,
    extensions::PortRange,
    ids::{ApplicationId, OrganizationId},
    nodes::{Node, NodeAvailability, NodeId, NodeInventory},
    replicas::EngineIdentity,
};
use serde_json::Value;
use tokio::sync::OnceCell;

pub use self::registry::{InvalidRegistry, PushRegistry};
use self::{condition::RestartMemory, inventory::LastStates, records::Task, startup::SilentNodes};
use super::{DockerEngine, errors::EngineError, labels};

pub(crate) use self::{
    images::PublishedImage,
    placement::{NodeConstraint, free_port},
};

/// The length of an id of a task.
const ID_LENGTH: usize = 25;

/// A task of a service, by its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaskId(String);

/// The error of a text that is no id of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidTaskId;

impl TaskId {
    /// Returns the id as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TaskId {
    type Err = InvalidTaskId;

    fn from_str(text: &str) -> Result<Self, InvalidTaskId> {
        let is_id = text.len() == ID_LENGTH
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
        if is_id { Ok(Self(text.to_owned())) } else { Err(InvalidTaskId) }
    }
}

/// The options of the engine `swarm`.
#[derive(Debug, Clone)]
pub struct SwarmOptions {
    /// The registry that images are pushed to, and that the nodes pull them from.
    pub registry: PushRegistry,
    /// The ports of nodes at which containers are reached.
    pub ports: PortRange,
}

/// Runs containers as services of a Swarm.
#[derive(Debug)]
pub struct SwarmEngine {
    /// The engine of this machine.
    engine: Arc<DockerEngine>,
    options: SwarmOptions,
    restarts: RestartMemory,
    news: LastStates,
    silent_nodes: SilentNodes,
    /// The address of this machine in the Swarm, once it is known. A machine that gets another one has to join anew.
    address: OnceCell<IpAddr>,
}

impl SwarmEngine {
    /// Returns the engine `swarm` over that of this machine, whose networks are overlays. Does not connect to it yet.
    #[must_use]
    pub fn new(engine: Arc<DockerEngine>, options: SwarmOptions) -> Self {
        Self {
            engine,
            options,
            restarts: RestartMemory::default(),
            news: LastStates::default(),
            silent_nodes: SilentNodes::default(),
            address: OnceCell::new(),
        }
    }

    /// Labels a node that is prepared for containers of applications.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] or [`StepError::Retryable`] if the engine is unreachable or no manager.
    pub async fn allow_applications(&self, node: &NodeId) -> Result<(), StepError> {
        self.engine.docker.label_node(node).await.map_err(EngineError::or_fault)
    }

    /// Lets new containers start on a node, or not; or moves all containers away.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] or [`StepError::Retryable`] if the engine is unreachable or no manager.
    pub async fn set_availability(
        &self,
        node: &NodeId,
        availability: NodeAvailability,
    ) -> Result<(), StepError> {
        let set = self.engine.docker.set_availability(node, availability).await;
        set.map_err(EngineError::or_fault)
    }

    /// Returns the applications of this installation that have a container on a node, each once.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] or [`StepError::Retryable`] if the engine is unreachable or no manager.
    pub async fn applications_on(
        &self,
        node: &NodeId,
    ) -> Result<BTreeSet<(OrganizationId, ApplicationId)>, StepError> {
        let cluster = self.cluster(&[]).await.map_err(EngineError::or_fault)?;
        let is_there = |task: &&&Task| task.is_wanted && task.node.as_ref() == Some(node);
        let owners = cluster
            .services
            .iter()
            .filter(|service| cluster.tasks_of(&service.id).iter().any(|task| is_there(&task)));
        let owners = owners.filter_map(|service| labels::owner(&service.labels));
        Ok(owners.map(|owner| (owner.organization, owner.application)).collect())
    }

    /// Returns whether the engine of this machine connects to a registry, a host with or without a port, without TLS if it has
    /// none; `None` if the engine does not answer.
    pub async fn is_insecure_registry(&self, host: &str) -> Option<bool> {
        let info = self.engine.docker.socket().await?.info().await?;
        registry::is_insecure(info.get("RegistryConfig")?, host)
    }

    /// Returns the role of this machine in a Swarm; `None` if the engine does not answer.
    pub async fn role(&self) -> Option<SwarmRole> {
        let Some(socket) = self.engine.docker.socket().await else { return Some(SwarmRole::NoSocket) };
        let info = socket.info().await?;
        let swarm = info.get("Swarm")?;
        let is_manager = swarm.get("ControlAvailable").and_then(Value::as_bool).unwrap_or_default();
        let state = swarm.get("LocalNodeState").and_then(Value::as_str).unwrap_or_default();
        Some(match (is_manager, state) {
            (true, _) => SwarmRole::Manager,
            (false, "" | "inactive") => SwarmRole::None,
            (false, _) => SwarmRole::Worker,
        })
    }
}

/// The role of a machine in a Swarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwarmRole {
    /// It is a manager.
    Manager,
    /// It is a worker.
    Worker,
    /// It is in no Swarm.
    None,
    /// Its engine is not reached by a Unix socket.
    NoSocket,
}

#[async_trait]
impl EngineIdentity for SwarmEngine {
    /// The id of the Swarm: every manager is the same engine.
    async fn engine_id(&self) -> Option<String> {
        let info = self.engine.docker.socket().await?.info().await?;
        let id = info.get("Swarm")?.get("Cluster")?.get("ID")?.as_str()?;
        Some(format!("swarm {id}")).filter(|_| !id.is_empty())
    }
}

#[async_trait]
impl NodeInventory for SwarmEngine {
    async fn nodes(&self) -> Result<Vec<Node>, StepError> {
        let nodes = self.engine.docker.list_nodes().await.map_err(EngineError::or_fault)?;
        let mut nodes: Vec<Node> = nodes.0.into_values().collect();
        nodes.sort_by(|one, other| (&one.hostname, &one.id).cmp(&(&other.hostname, &other.id)));
        Ok(nodes)
    }

    async fn own_node(&self) -> Result<(Node, String), StepError> {
        let own = self.engine.own_node().await?;
        let nodes = self.nodes().await?;
        let node = nodes.into_iter().find(|node| node.id.as_str() == own.id);
        let node =
            node.ok_or_else(|| StepError::Unavailable("the Swarm does not list this machine".to_owned()))?;
        Ok((node, own.engine))
    }
}
