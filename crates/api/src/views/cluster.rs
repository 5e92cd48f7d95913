//! Views of the servers of the installation.

use launchway_application::replicas::ClusterStatus;
use launchway_domain::replicas::ReplicaStatus;
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
