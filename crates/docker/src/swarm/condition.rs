//! The condition of a copy, from its service, its tasks and their nodes.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use chrono::TimeDelta;
use launchway_domain::{
    clock::Timestamp,
    deployments::{Condition, ContainerId, Exit},
};

use super::{
    TaskId,
    records::{Nodes, Service, Task, TaskState},
    startup::TAKEN_WITHIN,
};

/// The time after which a task without a node counts as one that cannot be started.
const SCHEDULED_WITHIN: TimeDelta = TimeDelta::seconds(20);

/// Returns the condition of the container of `service`. Only a task on a node that answers is running: the container on a
/// machine that was cut off may still run, but nobody reaches it.
pub(super) fn condition(
    service: &Service,
    tasks: &[&Task],
    nodes: &Nodes,
    restarts: u32,
    now: Timestamp,
) -> Condition {
    let failed = tasks.iter().filter(|task| task.has_failed());
    let exit = |task: Option<&&Task>| Exit {
        code: task.and_then(|task| task.exit_code).unwrap_or_default(),
        out_of_memory: false,
        restarts,
    };
    if !service.is_run {
        return Condition::Exited(exit(failed.max_by_key(|task| task.created_at)));
    }
    // Swarm restarts it from the beginning, but a deployment counts its first failure.
    if !service.is_kept()
        && let Some(first) = failed.clone().min_by_key(|task| task.created_at)
    {
        return Condition::Exited(exit(Some(first)));
    }
    let wanted = tasks.iter().filter(|task| task.is_wanted);
    let address = |task: &Task| nodes.ready_address(task.node.as_ref()?);
    let running = wanted
        .clone()
        .filter(|task| task.state == TaskState::Running)
        .filter_map(|task| Some((task.created_at, address(task)?)))
        .max_by_key(|(created_at, _)| *created_at);
    if let Some((_, address)) = running {
        return Condition::Running { address, restarts };
    }
    let is_stuck = |task: &&&Task| match task.state {
        TaskState::Pending => !task.error.is_empty() && now - task.created_at >= SCHEDULED_WITHIN,
        TaskState::Assigned => (now - task.changed_at).to_std().is_ok_and(|time| time >= TAKEN_WITHIN),
        _ => false,
    };
    match wanted.max_by_key(|task| task.created_at).filter(is_stuck) {
        Some(_) => Condition::Created,
        None => Condition::Restarting(exit(failed.max_by_key(|task| task.created_at))),
    }
}

/// Counts the tasks of each service that failed. Swarm keeps only the last few.
#[derive(Debug, Default)]
pub(super) struct RestartMemory(Mutex<HashMap<ContainerId, Counted>>);

#[derive(Debug, Default)]
struct Counted {
    restarts: u32,
    /// The failed tasks that Swarm still has.
    failed: HashSet<TaskId>,
}

impl RestartMemory {
    /// Returns the number of failed tasks of `service`, those that are not in `tasks` any more included.
    pub(super) fn count(&self, service: &ContainerId, tasks: &[&Task]) -> u32 {
        let failed: HashSet<TaskId> =
            tasks.iter().filter(|task| task.has_failed()).map(|task| task.id.clone()).collect();
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_empty() && !memory.contains_key(service) {
            return 0;
        }
        let counted = memory.entry(service.clone()).or_default();
        let new = failed.difference(&counted.failed).count();
        counted.restarts = counted.restarts.saturating_add(u32::try_from(new).unwrap_or(u32::MAX));
        counted.failed = failed;
        counted.restarts
    }

    /// Forgets the services that are not among `existing`.
    pub(super) fn forget_others(&self, existing: &[Service]) {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.retain(|id, _| existing.iter().any(|service| service.id == *id));
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, net::IpAddr};

    use chrono::DateTime;
    use launchway_domain::nodes::{Node, NodeAvailability, NodeId, NodeRole};

    use super::*;

    fn id(letter: char) -> String {
        letter.to_string().repeat(25)
    }

    fn at(second: i64) -> Timestamp {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn service(is_run: bool, is_kept: bool) -> Service {
        let labels =
            if is_kept { vec![("launchway.kept".to_owned(), "true".to_owned())] } else { Vec::new() };
        Service {
            id: id('s').parse().unwrap(),
            name: "launchway-1".to_owned(),
            labels: labels.into_iter().collect::<BTreeMap<_, _>>(),
            created_at: at(0),
            is_run,
            published: Some(12_000),
            constraints: Vec::new(),
        }
    }

    fn task(name: char, created: i64, node: char, state: TaskState) -> Task {
        Task {
            id: id(name).parse().unwrap(),
            service: id('s'),
            node: id(node).parse().ok(),
            created_at: at(created),
            changed_at: at(created),
            state,
            is_wanted: !matches!(state, TaskState::Failed | TaskState::Complete | TaskState::Ended),
            is_removed: false,
            error: String::new(),
            exit_code: (state == TaskState::Failed).then_some(3),
            has_container: true,
        }
    }

    fn nodes() -> Nodes {
        let node = |name: char, address: &str, is_ready: bool| {
            let id: NodeId = id(name).parse().unwrap();
            let node = Node {
                id: id.clone(),
                hostname: name.to_string(),
                address: address.parse().ok(),
                is_ready,
                availability: NodeAvailability::Active,
                role: NodeRole::Worker,
                is_prepared: true,
                version: String::new(),
            };
            (id, node)
        };
        Nodes([node('a', "10.0.0.1", true), node('b', "10.0.0.2", true), node('c', "10.0.0.3", false)].into())
    }

    fn seen(service: &Service, tasks: &[Task], now: i64) -> Condition {
        condition(service, &tasks.iter().collect::<Vec<_>>(), &nodes(), 0, at(now))
    }

    fn running(address: &str) -> Condition {
        Condition::Running { address: address.parse::<IpAddr>().unwrap(), restarts: 0 }
    }

    fn exit(code: i32) -> Exit {
        Exit { code, out_of_memory: false, restarts: 0 }
    }

    #[test]
    fn a_copy_runs_at_the_node_of_its_newest_task() {
        let kept = service(true, true);
        let tasks = [task('1', 0, 'a', TaskState::Running), task('2', 9, 'b', TaskState::Running)];
        assert_eq!(seen(&kept, &tasks, 10), running("10.0.0.2"));
        let starting = [task('1', 0, 'a', TaskState::Running), task('2', 9, 'b', TaskState::Starting)];
        assert_eq!(seen(&kept, &starting, 10), running("10.0.0.1"));
    }

    #[test]
    fn a_copy_on_a_lost_node_does_not_run() {
        let lost = [task('1', 0, 'c', TaskState::Running)];
        assert_eq!(seen(&service(true, true), &lost, 10), Condition::Restarting(exit(0)));
    }

    #[test]
    fn a_failure_counts_until_the_copy_has_been_healthy() {
        let tasks = [task('1', 0, 'a', TaskState::Failed), task('2', 1, 'a', TaskState::Running)];
        assert_eq!(seen(&service(true, false), &tasks, 10), Condition::Exited(exit(3)));
        assert_eq!(seen(&service(true, true), &tasks, 10), running("10.0.0.1"));
        let waiting = [task('1', 0, 'a', TaskState::Failed), task('2', 1, 'a', TaskState::Starting)];
        assert_eq!(seen(&service(true, true), &waiting, 10), Condition::Restarting(exit(3)));
    }

    #[test]
    fn a_stopped_copy_has_exited() {
        let tasks = [task('1', 0, 'a', TaskState::Ended)];
        assert_eq!(seen(&service(false, true), &tasks, 10), Condition::Exited(exit(0)));
    }

    #[test]
    fn a_copy_that_no_node_takes_was_never_started() {
        let kept = service(true, true);
        let pending = Task { error: "no suitable node".to_owned(), ..task('1', 0, 'z', TaskState::Pending) };
        let tasks = [pending];
        assert_eq!(seen(&kept, &tasks, 19), Condition::Restarting(exit(0)));
        assert_eq!(seen(&kept, &tasks, 20), Condition::Created);
        let lost = task('1', 0, 'c', TaskState::Running);
        let tasks = [lost, task('2', 9, 'a', TaskState::Assigned)];
        assert_eq!(seen(&kept, &tasks, 13), Condition::Restarting(exit(0)));
        assert_eq!(seen(&kept, &tasks, 14), Condition::Created);
    }

    #[test]
    fn restarts_are_counted_beyond_what_swarm_keeps() {
        let (memory, service) = (RestartMemory::default(), service(true, true));
        let count = |names: &str| {
            let tasks: Vec<Task> = names.chars().map(|name| task(name, 0, 'a', TaskState::Failed)).collect();
            memory.count(&service.id, &tasks.iter().collect::<Vec<_>>())
        };
        assert_eq!(
            [count(""), count("1"), count("1"), count("12"), count("23"), count("")],
            [0, 1, 1, 2, 3, 3]
        );
        memory.forget_others(&[]);
        assert_eq!(count(""), 0);
    }
}
