//! The records of a Swarm's managers: services, tasks and nodes.

use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, SocketAddr},
};

use chrono::DateTime;
use launchway_domain::{
    clock::Timestamp,
    deployments::ContainerId,
    nodes::{Node, NodeAvailability, NodeId, NodeRole},
};
use serde::Deserialize;

use super::{NodeConstraint, TaskId};
use crate::{
    command::{Docker, NODE_LABEL},
    containers::Filters,
    errors::EngineError,
    labels::{self, Label},
    socket::SwarmObjects,
};

/// A service with one container.
#[derive(Debug, Clone)]
pub(super) struct Service {
    pub(super) id: ContainerId,
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) created_at: Timestamp,
    /// True if its container should run.
    pub(super) is_run: bool,
    /// The port of the node that leads to its container.
    pub(super) published: Option<u16>,
    /// Its constraints on the node of its container.
    pub(super) constraints: Vec<NodeConstraint>,
}

impl Service {
    pub(super) fn is_kept(&self) -> bool {
        labels::is_kept(&self.labels)
    }

    /// Returns what decides which one of two services that were created at the same time came first.
    pub(super) fn age(&self) -> (Timestamp, &str) {
        (self.created_at, self.id.as_str())
    }
}

/// One container of a service, on one node. Swarm never moves or restarts it, but creates another one.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) id: TaskId,
    pub(super) service: String,
    pub(super) node: Option<NodeId>,
    pub(super) created_at: Timestamp,
    /// The time at which it got its state.
    pub(super) changed_at: Timestamp,
    pub(super) state: TaskState,
    /// True if Swarm wants it to run, or to wait for its turn to do so.
    pub(super) is_wanted: bool,
    /// True if Swarm removes it as soon as it has ended.
    pub(super) is_removed: bool,
    /// The error that the engine or the scheduler reported.
    pub(super) error: String,
    /// The exit code of its program, if that was started.
    pub(super) exit_code: Option<i32>,
    pub(super) has_container: bool,
}

impl Task {
    /// Returns whether its program ended by itself, or could not be started.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.state, TaskState::Complete | TaskState::Failed | TaskState::Rejected)
    }
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TaskState {
    /// It has no node yet.
    Pending,
    /// The scheduler has chosen its node, which did not take it yet.
    Assigned,
    /// Its node pulls the image, and creates and starts the container.
    Starting,
    Running,
    /// Its program ended with the exit code 0.
    Complete,
    Failed,
    /// Its node could not start it.
    Rejected,
    /// Swarm ended it, or lost it.
    Ended,
}

impl TaskState {
    fn parse(text: &str) -> Self {
        match text {
            "new" | "allocated" | "pending" => Self::Pending,
            "assigned" => Self::Assigned,
            "accepted" | "preparing" | "ready" | "starting" => Self::Starting,
            "running" => Self::Running,
            "complete" => Self::Complete,
            "failed" => Self::Failed,
            "rejected" => Self::Rejected,
            _ => Self::Ended,
        }
    }
}

/// The nodes of a Swarm, by their ids.
#[derive(Debug, Clone, Default)]
pub(super) struct Nodes(pub(super) HashMap<NodeId, Node>);

impl Nodes {
    /// Returns the address of a node that answers.
    pub(super) fn ready_address(&self, node: &NodeId) -> Option<IpAddr> {
        self.0.get(node).filter(|node| node.is_ready)?.address
    }

    /// Returns the name of a node for a message.
    pub(super) fn name(&self, node: Option<&NodeId>) -> String {
        let node = node.and_then(|node| self.0.get(node));
        node.map_or_else(|| "the node".to_owned(), |node| format!("the node `{}`", node.hostname))
    }
}

impl Docker {
    /// Returns the services with all of these labels.
    pub(crate) async fn services(&self, labels: &[Label]) -> Result<Vec<ContainerId>, EngineError> {
        Ok(self.list_services(labels).await?.into_iter().map(|service| service.id).collect())
    }

    pub(super) async fn list_services(&self, labels: &[Label]) -> Result<Vec<Service>, EngineError> {
        let labels = labels.iter().map(|label| label.as_str().to_owned()).collect();
        let listed: Vec<ServiceRecord> =
            self.swarm_list(SwarmObjects::Services, &Filters::from([("label", labels)])).await?;
        Ok(listed.into_iter().filter_map(ServiceRecord::read).collect())
    }

    pub(super) async fn list_tasks(&self, filters: &Filters) -> Result<Vec<Task>, EngineError> {
        let listed: Vec<TaskRecord> = self.swarm_list(SwarmObjects::Tasks, filters).await?;
        Ok(listed.into_iter().filter_map(TaskRecord::read).collect())
    }

    pub(super) async fn list_nodes(&self) -> Result<Nodes, EngineError> {
        let listed: Vec<NodeRecord> = self.swarm_list(SwarmObjects::Nodes, &Filters::default()).await?;
        let nodes = listed.into_iter().filter_map(NodeRecord::read);
        Ok(Nodes(nodes.map(|node| (node.id.clone(), node)).collect()))
    }
}

fn time(text: &str) -> Timestamp {
    DateTime::parse_from_rfc3339(text).map(|time| time.to_utc()).unwrap_or_default()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ServiceRecord {
    #[serde(rename = "ID")]
    id: String,
    created_at: String,
    spec: ServiceSpec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ServiceSpec {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    task_template: TaskTemplate,
    mode: Mode,
    endpoint_spec: Option<EndpointSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TaskTemplate {
    placement: Option<Placement>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Placement {
    #[serde(default)]
    constraints: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Mode {
    replicated: Option<Replicated>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Replicated {
    replicas: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EndpointSpec {
    #[serde(default)]
    ports: Vec<PublishedPort>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PublishedPort {
    published_port: Option<u16>,
}

impl ServiceRecord {
    fn read(self) -> Option<Service> {
        let ServiceSpec { name, labels, task_template, mode, endpoint_spec } = self.spec;
        let constraints = task_template.placement.map(|placement| placement.constraints).unwrap_or_default();
        Some(Service {
            id: self.id.parse().ok()?,
            name,
            labels,
            created_at: time(&self.created_at),
            is_run: mode.replicated.is_some_and(|replicated| replicated.replicas.unwrap_or(1) > 0),
            published: endpoint_spec.and_then(|spec| spec.ports.first()?.published_port),
            constraints: constraints.iter().filter_map(|one| one.parse().ok()).collect(),
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TaskRecord {
    #[serde(rename = "ID")]
    id: String,
    created_at: String,
    #[serde(rename = "ServiceID", default)]
    service: String,
    #[serde(rename = "NodeID", default)]
    node: String,
    status: TaskStatus,
    desired_state: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TaskStatus {
    timestamp: String,
    state: String,
    #[serde(default)]
    err: String,
    container_status: Option<ContainerStatus>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ContainerStatus {
    #[serde(rename = "ContainerID", default)]
    id: String,
    #[serde(default)]
    exit_code: i32,
}

impl TaskRecord {
    fn read(self) -> Option<Task> {
        let TaskStatus { timestamp, state, err, container_status } = self.status;
        let state = TaskState::parse(&state);
        let has_container = container_status.as_ref().is_some_and(|status| !status.id.is_empty());
        // The engine's own errors have the exit code 0, or one that no program returned.
        let has_exited = state == TaskState::Complete || err.starts_with("task: non-zero exit");
        let code = container_status.map_or(0, |status| status.exit_code);
        Some(Task {
            id: self.id.parse().ok()?,
            service: self.service,
            node: self.node.parse().ok(),
            created_at: time(&self.created_at),
            changed_at: time(&timestamp),
            state,
            is_wanted: matches!(self.desired_state.as_str(), "running" | "ready" | "accepted"),
            is_removed: self.desired_state == "remove",
            error: err,
            exit_code: (has_container && has_exited).then_some(code),
            has_container,
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NodeRecord {
    #[serde(rename = "ID")]
    id: String,
    spec: NodeSpec,
    description: NodeDescription,
    status: NodeStatus,
    manager_status: Option<ManagerStatus>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NodeSpec {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    availability: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct NodeDescription {
    hostname: String,
    engine: NodeEngine,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct NodeEngine {
    engine_version: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NodeStatus {
    state: String,
    #[serde(default)]
    addr: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ManagerStatus {
    #[serde(default)]
    leader: bool,
    #[serde(default)]
    addr: String,
}

impl NodeRecord {
    fn read(self) -> Option<Node> {
        // The leader may report an unspecified address as its own.
        let advertised =
            self.manager_status.as_ref().and_then(|status| status.addr.parse::<SocketAddr>().ok());
        let address = advertised.map(|address| address.ip()).or_else(|| self.status.addr.parse().ok());
        Some(Node {
            id: self.id.parse().ok()?,
            hostname: self.description.hostname,
            address: address.filter(|address| !address.is_unspecified() && !address.is_loopback()),
            // A new leader has heard of no node yet, but their containers run. One that is lost is `down` soon.
            is_ready: matches!(self.status.state.as_str(), "ready" | "unknown"),
            availability: NodeAvailability::from_name(&self.spec.availability)?,
            role: match self.manager_status {
                Some(status) if status.leader => NodeRole::Leader,
                Some(_) => NodeRole::Manager,
                None => NodeRole::Worker,
            },
            is_prepared: self.spec.labels.get(NODE_LABEL).is_some_and(|value| value == "true"),
            version: self.description.engine.engine_version,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    const ID: &str = "qk9ltvpzp6r2r8lz1sm1imk1x";

    #[test]
    fn a_service_is_read_with_its_port_and_its_node() {
        let read = |replicas: u64, constraints: serde_json::Value| {
            let record = json!({
                "ID": ID, "CreatedAt": "2026-11-17T08:00:00.123456789Z",
                "Spec": {
                    "Name": "launchway-1", "Labels": { "launchway.kept": "true" },
                    "TaskTemplate": { "ContainerSpec": { "Env": ["SECRET=x"] }, "Placement": { "Constraints": constraints } },
                    "Mode": { "Replicated": { "Replicas": replicas } },
                    "EndpointSpec": { "Mode": "dnsrr", "Ports": [{ "TargetPort": 80, "PublishedPort": 12_000, "PublishMode": "host" }] },
                },
            });
            from_value::<ServiceRecord>(record).unwrap().read().unwrap()
        };
        let service =
            read(1, json!(["node.labels.launchway.apps==true", "node.id == zk9ltvpzp6r2r8lz1sm1imk1x"]));
        assert_eq!((service.is_run, service.published, service.is_kept()), (true, Some(12_000), true));
        let node: NodeId = "zk9ltvpzp6r2r8lz1sm1imk1x".parse().unwrap();
        assert_eq!(service.constraints, [NodeConstraint::On(node)]);
        let stopped = read(0, json!(["node.labels.launchway.apps==true"]));
        assert_eq!((stopped.is_run, stopped.constraints), (false, Vec::new()));
    }

    #[test]
    fn only_the_exit_of_a_program_has_a_code() {
        let read = |state: &str, err: &str, container: serde_json::Value| {
            let record = json!({
                "ID": ID, "CreatedAt": "2026-11-17T08:00:00Z", "ServiceID": ID, "NodeID": ID, "DesiredState": "shutdown",
                "Status": { "Timestamp": "2026-11-17T08:00:01Z", "State": state, "Err": err, "ContainerStatus": container },
            });
            from_value::<TaskRecord>(record).unwrap().read().unwrap()
        };
        let container = |code: i32| json!({ "ContainerID": "f".repeat(64), "ExitCode": code });
        assert_eq!(read("failed", "task: non-zero exit (3)", container(3)).exit_code, Some(3));
        assert_eq!(read("complete", "", container(0)).exit_code, Some(0));
        let refused = read("rejected", "No such image: x", json!(null));
        assert_eq!((refused.exit_code, refused.has_failed(), refused.has_container), (None, true, false));
        assert_eq!(
            read("failed", "starting container failed: port is taken", container(128)).exit_code,
            None
        );
        assert_eq!(read("orphaned", "", container(0)).state, TaskState::Ended);
    }

    #[test]
    fn a_node_is_lost_only_when_the_managers_say_so() {
        let read = |state: &str| {
            let record = json!({
                "ID": ID, "Spec": { "Availability": "active" }, "Description": { "Hostname": "one" },
                "Status": { "State": state, "Addr": "10.0.0.2" },
            });
            from_value::<NodeRecord>(record).unwrap().read().unwrap().is_ready
        };
        assert!(read("ready") && read("unknown"));
        assert!(!read("down") && !read("disconnected"));
    }

    #[test]
    fn a_node_has_the_address_that_others_use() {
        let read = |addr: &str, manager: serde_json::Value, labels: serde_json::Value| {
            let record = json!({
                "ID": ID, "Spec": { "Labels": labels, "Role": "worker", "Availability": "active" },
                "Description": { "Hostname": "one", "Engine": { "EngineVersion": "20.10.24" } },
                "Status": { "State": "ready", "Addr": addr }, "ManagerStatus": manager,
            });
            from_value::<NodeRecord>(record).unwrap().read().unwrap()
        };
        let prepared = json!({ "launchway.apps": "true" });
        let worker = read("10.0.0.2", json!(null), prepared.clone());
        assert_eq!((worker.address, worker.role), ("10.0.0.2".parse().ok(), NodeRole::Worker));
        assert!(worker.takes_containers());
        let manager = read("0.0.0.0", json!({ "Leader": true, "Addr": "10.0.0.1:2377" }), json!({}));
        assert_eq!((manager.address, manager.role), ("10.0.0.1".parse().ok(), NodeRole::Leader));
        assert!(!manager.takes_containers());
        assert_eq!(read("127.0.0.1", json!(null), prepared).address, None);
    }
}
