//! Waits until the container of a service runs, and moves it away from a node that does not take it.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use launchway_domain::{deployments::StepError, nodes::NodeId};
use tokio::time::{Instant, sleep};

use super::{
    NodeConstraint, SwarmEngine, TaskId,
    deployer::PAUSE,
    records::{Nodes, Service, Task, TaskState},
};
use crate::{command::ServiceChange, errors::sentence};

/// The time that the scheduler gets to find a node.
const SCHEDULED_WITHIN: Duration = Duration::from_secs(15);
/// The time after which a container is moved away from a node that does not take it, if there is another one. Nodes take
/// containers at once, and pull images only then. One whose agent lost its manager may take none for minutes, although the
/// managers count it as ready.
pub(super) const TAKEN_WITHIN: Duration = Duration::from_secs(5);
/// The same of a node that did not take another container a short time ago.
const TAKEN_AT_ONCE: Duration = Duration::from_secs(1);
/// The time for which a node that did not take a container is expected to take no other one.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// The time that a node gets to take a container if there is no other one.
const TAKEN_AT_LAST: Duration = Duration::from_secs(60);

/// The nodes that did not take a container, and when that was noticed.
#[derive(Debug, Default)]
pub(super) struct SilentNodes(Mutex<HashMap<NodeId, Instant>>);

impl SilentNodes {
    fn note(&self, node: &NodeId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(node.clone(), Instant::now());
    }

    /// Returns whether a node did not take a container a short time ago.
    pub(super) fn contains(&self, node: &NodeId) -> bool {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.get(node).is_some_and(|since| since.elapsed() < SILENT_FOR)
    }
}

/// The reason why the container of a service was not started.
pub(super) enum NotStarted {
    /// The port is in use on the node by something else.
    PortInUse,
    Error(StepError),
}

impl From<StepError> for NotStarted {
    fn from(error: StepError) -> Self {
        Self::Error(error)
    }
}

impl NotStarted {
    pub(super) fn into_step(self) -> StepError {
        match self {
            Self::PortInUse => StepError::Rejected("no free port was found on the node".to_owned()),
            Self::Error(error) => error,
        }
    }
}

impl SwarmEngine {
    /// Waits until a container of `service` runs that is none of `before`, and returns the address of its node. A program
    /// that has ended was started, too: the health check finds out why.
    pub(super) async fn wait_until_started(
        &self,
        service: &Service,
        before: HashSet<TaskId>,
    ) -> Result<IpAddr, NotStarted> {
        let (began, limit) = (Instant::now(), self.engine.options.build_limits.time);
        let (mut ignored, mut constraints) = (before, service.constraints.clone());
        let mut assigned: Option<(TaskId, Instant)> = None;
        loop {
            let (tasks, nodes) = tokio::try_join!(self.tasks(&service.id), self.cluster_nodes())?;
            let Some(task) = decisive(&tasks, &ignored) else {
                pause(began, limit).await?;
                continue;
            };
            let address = task.node.as_ref().and_then(|node| nodes.ready_address(node));
            match task.state {
                TaskState::Running if address.is_some() => return Ok(address.unwrap_or(NOWHERE)),
                TaskState::Complete | TaskState::Failed | TaskState::Rejected => {
                    return match task.exit_code {
                        Some(_) => Ok(address.unwrap_or(NOWHERE)),
                        None => Err(refusal(task, &nodes)),
                    };
                }
                // The node of its own has no room.
                TaskState::Pending if !task.error.is_empty() && pins(&constraints) => {
                    self.change(&service.id, ServiceChange::Free(&constraints)).await?;
                    constraints.clear();
                }
                TaskState::Pending if !task.error.is_empty() && began.elapsed() >= SCHEDULED_WITHIN => {
                    let reason = sentence(&task.error);
                    let text = format!("no node can run the container: {reason}");
                    return Err(StepError::Rejected(text).into());
                }
                TaskState::Assigned => {
                    let since = match &assigned {
                        Some((id, since)) if *id == task.id => *since,
                        _ => assigned.insert((task.id.clone(), Instant::now())).1,
                    };
                    let node = task.node.as_ref().filter(|node| has_another(&nodes, &constraints, node));
                    let within =
                        |node| if self.silent_nodes.contains(node) { TAKEN_AT_ONCE } else { TAKEN_WITHIN };
                    if let Some(node) = node.filter(|node| since.elapsed() >= within(*node)) {
                        tracing::warn!(node = nodes.name(Some(node)), "node takes no containers");
                        self.silent_nodes.note(node);
                        self.change(&service.id, ServiceChange::Leave(node)).await?;
                        constraints.retain(|constraint| matches!(constraint, NodeConstraint::NotOn(_)));
                        constraints.push(NodeConstraint::NotOn(node.clone()));
                        ignored.insert(task.id.clone());
                    } else if since.elapsed() >= TAKEN_AT_LAST {
                        let node = nodes.name(task.node.as_ref());
                        let text = format!("{node} takes no containers, and no other node can run this one");
                        return Err(StepError::Rejected(text).into());
                    }
                }
                _ => {}
            }
            pause(began, limit).await?;
        }
    }
}

fn pins(constraints: &[NodeConstraint]) -> bool {
    constraints.iter().any(|constraint| matches!(constraint, NodeConstraint::On(_)))
}

/// Returns whether another node than `node` may run containers, and is none that a service with these constraints left.
fn has_another(nodes: &Nodes, constraints: &[NodeConstraint], node: &NodeId) -> bool {
    let is_left = |id: &NodeId| constraints.contains(&NodeConstraint::NotOn(id.clone()));
    nodes.0.values().any(|other| other.takes_containers() && other.id != *node && !is_left(&other.id))
}

/// The address of a container whose node is lost. Nobody answers there.
const NOWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::BROADCAST);

/// Returns the task that decides whether a container was started: the first one that failed, or else the first one that Swarm
/// still wants. One on a machine that was lost keeps its state for ever, while Swarm starts another one elsewhere.
fn decisive<'a>(tasks: &'a [Task], before: &HashSet<TaskId>) -> Option<&'a Task> {
    let new = tasks.iter().filter(|task| !before.contains(&task.id));
    let new = new.filter(|task| task.is_wanted || task.has_failed());
    new.min_by_key(|task| (!task.has_failed(), task.created_at))
}

async fn pause(began: Instant, limit: Duration) -> Result<(), StepError> {
    if began.elapsed() >= limit {
        return Err(StepError::Rejected(format!("the container was not started within {limit:?}")));
    }
    sleep(PAUSE).await;
    Ok(())
}

/// Returns the error for a task that its node did not start.
fn refusal(task: &Task, nodes: &Nodes) -> NotStarted {
    let error = task.error.to_lowercase();
    if error.contains("port is already allocated") || error.contains("address already in use") {
        return NotStarted::PortInUse;
    }
    let (node, reason) = (nodes.name(task.node.as_ref()), sentence(&task.error));
    let text = match error.contains("no such image") {
        true => format!("{node} could not pull the image: {reason}"),
        false => format!("{node} could not start the container: {reason}"),
    };
    NotStarted::Error(StepError::Rejected(text))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use launchway_domain::nodes::{Node, NodeAvailability, NodeRole};

    use super::*;

    fn task(name: char, second: i64, state: TaskState, is_wanted: bool) -> Task {
        let id = name.to_string().repeat(25);
        let at = DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap();
        Task {
            id: id.parse().unwrap(),
            service: "s".repeat(25),
            node: id.parse().ok(),
            created_at: at,
            changed_at: at,
            state,
            is_wanted,
            is_removed: false,
            error: String::new(),
            exit_code: None,
            has_container: true,
        }
    }

    #[test]
    fn a_task_on_a_lost_machine_decides_nothing() {
        let decides = |tasks: &[Task]| {
            let nothing = HashSet::new();
            decisive(tasks, &nothing).map(|task| task.id.as_str().to_owned())
        };
        let lost = task('1', 0, TaskState::Starting, false);
        let next = task('2', 9, TaskState::Running, true);
        assert_eq!(decides(&[lost.clone(), next.clone()]), Some("2".repeat(25)));
        assert_eq!(decides(&[lost]), None);
        // A failure counts, though Swarm does not want its task any more.
        let failed = task('3', 5, TaskState::Failed, false);
        assert_eq!(decides(&[next, failed]), Some("3".repeat(25)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_is_silent_for_a_minute() {
        let (silent, nodes) =
            (SilentNodes::default(), ["a", "b"].map(|name| name.parse::<NodeId>().unwrap()));
        silent.note(&nodes[0]);
        assert_eq!(nodes.each_ref().map(|node| silent.contains(node)), [true, false]);
        tokio::time::advance(SILENT_FOR).await;
        assert!(!silent.contains(&nodes[0]));
    }

    #[test]
    fn a_container_moves_only_to_a_node_that_it_did_not_leave() {
        let node = |name: char, availability: NodeAvailability| {
            let id: NodeId = name.to_string().repeat(25).parse().unwrap();
            let node = Node {
                id: id.clone(),
                hostname: name.to_string(),
                address: "10.0.0.1".parse().ok(),
                is_ready: true,
                availability,
                role: NodeRole::Worker,
                is_prepared: true,
                version: String::new(),
            };
            (id, node)
        };
        let (active, paused) = (NodeAvailability::Active, NodeAvailability::Pause);
        let listed = [node('a', active), node('b', active), node('c', paused)];
        let [a, b, _] = listed.clone().map(|(id, _)| id);
        let nodes = Nodes(listed.into());
        assert!(has_another(&nodes, &[], &a));
        assert!(has_another(&nodes, &[NodeConstraint::On(a.clone())], &a));
        assert!(!has_another(&nodes, &[NodeConstraint::NotOn(b)], &a));
        assert!(!has_another(&Nodes::default(), &[], &a));
    }
}
