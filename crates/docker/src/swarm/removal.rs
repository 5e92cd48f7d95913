//! Removes services.

use std::time::Duration;

use launchway_domain::deployments::ContainerId;
use tokio::time::{Instant, sleep};

use super::records::{Nodes, Task};
use crate::{command::Docker, containers::Filters, errors::EngineError};

/// The interval at which the tasks of a service are listed.
const PAUSE: Duration = Duration::from_millis(100);
/// The time that Swarm gets to remove the tasks of stopped services.
const REMOVED_WITHIN: Duration = Duration::from_secs(5);

impl Docker {
    /// Removes services with their containers. One that is gone is no error.
    ///
    /// Stopped ones wait until Swarm has removed their tasks. The leading manager of Docker 20.10 exits with a panic
    /// (`SetServiceTasksRemove`) if a task is removed at the moment at which its service is, and so does the next leader.
    pub(crate) async fn remove_services(&self, services: &[ContainerId]) -> Result<(), EngineError> {
        if services.is_empty() {
            return Ok(());
        }
        let deadline = Instant::now() + REMOVED_WITHIN;
        for service in services {
            while Instant::now() < deadline && self.removes_tasks_of(service).await? {
                sleep(PAUSE).await;
            }
        }
        self.remove_settled_services(services).await
    }

    async fn removes_tasks_of(&self, service: &ContainerId) -> Result<bool, EngineError> {
        let (tasks, nodes) = tokio::try_join!(self.tasks_of(service), self.list_nodes())?;
        Ok(tasks.iter().any(|task| is_about_to_go(task, &nodes)))
    }

    /// Returns the tasks of a service.
    pub(super) async fn tasks_of(&self, service: &ContainerId) -> Result<Vec<Task>, EngineError> {
        let filters = Filters::from([("service", vec![service.as_str().to_owned()])]);
        match self.list_tasks(&filters).await {
            // The manager rejects a filter by a service that it does not have.
            Err(EngineError::Unavailable(why)) if why.contains("404") => Ok(Vec::new()),
            listed => listed,
        }
    }
}

/// Returns whether Swarm removes a task soon. One on a machine that does not answer stays.
fn is_about_to_go(task: &Task, nodes: &Nodes) -> bool {
    task.is_removed && task.node.as_ref().is_none_or(|node| nodes.ready_address(node).is_some())
}

#[cfg(test)]
mod tests {
    use launchway_domain::{
        clock::Timestamp,
        nodes::{Node, NodeAvailability, NodeId, NodeRole},
    };

    use super::*;
    use crate::swarm::records::TaskState;

    #[test]
    fn a_task_is_waited_for_if_swarm_can_remove_it() {
        let id: NodeId = "a".repeat(25).parse().unwrap();
        let nodes = |is_ready| {
            let node = Node {
                id: id.clone(),
                hostname: "a".to_owned(),
                address: "10.0.0.1".parse().ok(),
                is_ready,
                availability: NodeAvailability::Active,
                role: NodeRole::Worker,
                is_prepared: true,
                version: String::new(),
            };
            Nodes([(id.clone(), node)].into())
        };
        let task = |is_removed, node: Option<&NodeId>| Task {
            id: "b".repeat(25).parse().unwrap(),
            service: "s".repeat(25),
            node: node.cloned(),
            created_at: Timestamp::UNIX_EPOCH,
            changed_at: Timestamp::UNIX_EPOCH,
            state: TaskState::Ended,
            is_wanted: false,
            is_removed,
            error: String::new(),
            exit_code: None,
            has_container: true,
        };
        assert!(is_about_to_go(&task(true, Some(&id)), &nodes(true)));
        assert!(is_about_to_go(&task(true, None), &nodes(true)));
        assert!(!is_about_to_go(&task(true, Some(&id)), &nodes(false)));
        assert!(!is_about_to_go(&task(false, Some(&id)), &nodes(true)));
    }
}
