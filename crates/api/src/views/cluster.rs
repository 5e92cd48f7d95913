//! Views of the servers of the installation.

use launchway_application::replicas::ClusterStatus;
use launchway_domain::{nodes::Node, replicas::ReplicaStatus};
use serde::Serialize;
use utoipa::ToSchema;

use crate::timestamp::Moment;

/// The servers of the installation.
#[derive(Serialize, ToSchema)]
#[schema(as = Cluster)]
pub(crate) struct ClusterView {
    /// The id of the server that answers; `null` on SQLite.
    #[schema(format = Uuid)]
    replica_id: Option<String>,
    /// The number of the current routes, which grows with every change.
    routes_epoch: i64,
    /// The clock of the database minus that of the server that answers, in milliseconds.
    clock_offset_ms: i64,
    /// The servers, by the time of their start.
    replicas: Vec<ReplicaView>,
}

/// A server of the installation.
#[derive(Serialize, ToSchema)]
#[schema(as = Replica)]
pub(crate) struct ReplicaView {
    #[schema(format = Uuid)]
    id: String,
    #[schema(example = "server-1")]
    hostname: String,
    /// The address of its API.
    #[schema(example = "10.0.0.7:8080")]
    address: String,
    #[schema(example = "1.0.0")]
    version: String,
    /// The id of its container engine.
    engine: Option<String>,
    is_alive: bool,
    is_leader: bool,
    /// The number of changes of routes that its front proxy has not taken over yet.
    routes_behind: i64,
    started_at: Moment,
    /// The time of its last heartbeat.
    seen_at: Moment,
}

impl From<ClusterStatus> for ClusterView {
    fn from(cluster: ClusterStatus) -> Self {
        let epoch = cluster.routes_epoch;
        Self {
            replica_id: cluster.own.map(|id| id.to_string()),
            routes_epoch: epoch,
            clock_offset_ms: cluster.clock_offset.num_milliseconds(),
            replicas: cluster.replicas.into_iter().map(|one| ReplicaView::new(one, epoch)).collect(),
        }
    }
}

impl ReplicaView {
    fn new(status: ReplicaStatus, routes_epoch: i64) -> Self {
        let replica = status.replica;
        Self {
            id: replica.id.to_string(),
            hostname: replica.hostname,
            address: replica.address,
            version: replica.version,
            engine: replica.engine,
            is_alive: status.is_alive,
            is_leader: status.is_leader,
            routes_behind: (routes_epoch - status.routes_seen).max(0),
            started_at: replica.started_at.into(),
            seen_at: status.seen_at.into(),
        }
    }
}

/// A machine that runs containers of applications.
#[derive(Serialize, ToSchema)]
#[schema(as = Node)]
pub(crate) struct NodeView {
    /// The id in the Swarm.
    #[schema(example = "qk9ltvpzp6r2r8lz1sm1imk1x")]
    id: String,
    #[schema(example = "server-1")]
    hostname: String,
    /// The address at which the other nodes reach it; `null` if it is unknown.
    #[schema(example = "10.0.0.7")]
    address: Option<String>,
    /// `leader`, `manager` or `worker`.
    #[schema(example = "worker")]
    role: &'static str,
    /// `active`, `pause` or `drain`.
    #[schema(example = "active")]
    availability: &'static str,
    /// True if it answers.
    is_ready: bool,
    /// True if new containers of applications can be started on it: it answers, is prepared, and is active.
    takes_applications: bool,
    /// The version of its container engine.
    #[schema(example = "20.10.24")]
    engine_version: String,
}

impl From<Node> for NodeView {
    fn from(node: Node) -> Self {
        Self {
            takes_applications: node.takes_containers(),
            id: node.id.to_string(),
            hostname: node.hostname,
            address: node.address.map(|address| address.to_string()),
            role: node.role.as_str(),
            availability: node.availability.as_str(),
            is_ready: node.is_ready,
            engine_version: node.version,
        }
    }
}
