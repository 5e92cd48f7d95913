//! Lists the services of this installation, and reads the output of their containers.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use launchway_domain::{
    clock::{Clock as _, Timestamp},
    deployments::{
        Condition, ContainerId, DiscoveredObject, DiscoveredResource, EngineInventory, ImageSize, Owner,
        PrintedLine, StepError,
    },
};
use launchway_system::clock::SystemClock;
use tokio::time::{Instant, sleep};

use super::{
    SwarmEngine, TaskId,
    condition::condition,
    deployer::Cluster,
    records::{Task, TaskState},
};
use crate::{
    containers::Filters,
    errors::EngineError,
    inventory::settled_lines,
    labels::{self, Label},
    lines::{Lines, StampedLine},
    socket::{LogRange, LogSource, SocketError},
};

/// The interval at which the managers are asked for changes: containers of other nodes cause no events.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The same after a node was lost, or is back: containers start elsewhere soon.
const ASK_SOON: Duration = Duration::from_millis(250);
/// The time after a change of a node for which the managers are asked more often.
const UNSETTLED: Duration = Duration::from_secs(10);
/// The timeout of reading the output of one task. The manager waits forever for a node that is cut off.
const LOG_TIME: Duration = Duration::from_secs(5);

/// The states of tasks and nodes that were seen last, and the time at which a node changed.
#[derive(Debug, Default)]
pub(super) struct LastStates(Mutex<Option<(States, Instant)>>);

/// The states of tasks, by their ids, and of nodes, by their names.
#[derive(Debug, PartialEq, Eq)]
struct States {
    tasks: BTreeMap<TaskId, (TaskState, bool)>,
    nodes: BTreeMap<String, bool>,
}

impl LastStates {
    /// Returns whether `now` differs from what was seen last.
    fn is_new(&self, now: States) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = seen.as_ref().is_none_or(|(last, _)| *last != now);
        let changed_at = seen.take().filter(|(last, _)| last.nodes == now.nodes).map(|(_, at)| at);
        *seen = Some((now, changed_at.unwrap_or_else(Instant::now)));
        is_new
    }

    /// Returns the time after which the managers are asked again.
    fn interval(&self) -> Duration {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unsettled = seen.as_ref().is_some_and(|(_, changed_at)| changed_at.elapsed() < UNSETTLED);
        if is_unsettled { ASK_SOON } else { ASK_EVERY }
    }
}

#[async_trait]
impl EngineInventory for SwarmEngine {
    async fn everything(&self) -> Result<Vec<DiscoveredResource>, StepError> {
        // The images and compositions of this machine, and the containers of commands that were interrupted.
        let (mut found, services) = tokio::try_join!(self.engine.everything(), self.found_services())?;
        found.extend(services);
        Ok(found)
    }

    async fn containers(&self) -> Result<Vec<DiscoveredResource>, StepError> {
        let (mut found, composed) = tokio::try_join!(self.found_services(), self.composed())?;
        found.extend(composed);
        Ok(found)
    }

    async fn images_of(&self, owner: &Owner) -> Result<Vec<ImageSize>, StepError> {
        self.engine.images_of(owner).await
    }

    async fn remove(&self, found: &DiscoveredResource) -> Result<(), StepError> {
        match &found.what {
            DiscoveredObject::Container { id, .. } if id.is_service() => {
                let removed = self.engine.docker.remove_services(std::slice::from_ref(id)).await;
                removed.map_err(EngineError::or_fault)
            }
            _ => EngineInventory::remove(&*self.engine, found).await,
        }
    }

    async fn printed(
        &self,
        container: &ContainerId,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<PrintedLine>, StepError> {
        if !container.is_service() {
            return self.engine.printed(container, since, limit).await;
        }
        settled_lines(limit, || self.lines_after(container, since, limit)).await
    }

    async fn tail_logs(&self, container: &ContainerId, lines: usize) -> Result<Vec<PrintedLine>, StepError> {
        if !container.is_service() {
            return self.engine.tail_logs(container, lines).await;
        }
        let mut last = Vec::new();
        for task in self.readable_tasks(container).await? {
            last.extend(self.read_task(&task, LogRange::Last(lines), lines).await?);
        }
        last.drain(..last.len().saturating_sub(lines));
        Ok(last.into_iter().map(PrintedLine::from).collect())
    }

    async fn wait_for_events(&self, max_wait: Duration) -> bool {
        tokio::select! {
            is_new = self.wait_for_tasks(max_wait) => is_new,
            is_new = self.engine.wait_for_events(max_wait) => is_new,
        }
    }
}

impl SwarmEngine {
    /// Waits until a task or a node changes; returns whether one did within `max_wait`.
    async fn wait_for_tasks(&self, max_wait: Duration) -> bool {
        let deadline = Instant::now() + max_wait;
        loop {
            let is_new = match self.states().await {
                Ok(states) => self.news.is_new(states),
                // The next scan reports it.
                Err(_unavailable) => false,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if is_new || left.is_zero() {
                return is_new;
            }
            sleep(self.news.interval().min(left)).await;
        }
    }

    async fn states(&self) -> Result<States, EngineError> {
        let ours = Label::of_instance(self.engine.options.instance).as_str().to_owned();
        let filters = Filters::from([("label", vec![ours])]);
        let docker = &self.engine.docker;
        let (tasks, nodes) = tokio::try_join!(docker.list_tasks(&filters), docker.list_nodes())?;
        let tasks = tasks.into_iter().map(|task| (task.id, (task.state, task.is_wanted)));
        let nodes = nodes.0.into_values().map(|node| (node.id.to_string(), node.is_ready));
        Ok(States { tasks: tasks.collect(), nodes: nodes.collect() })
    }

    /// Returns the services of this installation.
    async fn found_services(&self) -> Result<Vec<DiscoveredResource>, StepError> {
        let cluster = self.cluster(&[]).await.map_err(EngineError::or_fault)?;
        self.restarts.forget_others(&cluster.services);
        Ok(self.found(&cluster))
    }

    fn found(&self, cluster: &Cluster) -> Vec<DiscoveredResource> {
        let mut tasks: HashMap<&str, Vec<&Task>> = HashMap::with_capacity(cluster.services.len());
        for task in &cluster.tasks {
            tasks.entry(task.service.as_str()).or_default().push(task);
        }
        let now = SystemClock.now();
        let found = cluster.services.iter().filter_map(|service| {
            let Some(owner) = labels::owner(&service.labels) else {
                tracing::warn!(
                    id = service.id.as_str(),
                    kind = "service",
                    "engine object has invalid labels"
                );
                return None;
            };
            let tasks = tasks.remove(service.id.as_str()).unwrap_or_default();
            let restarts = self.restarts.count(&service.id, &tasks);
            let condition = condition(service, &tasks, &cluster.nodes, restarts, now);
            let what = DiscoveredObject::Container {
                id: service.id.clone(),
                condition,
                created_at: service.created_at,
                port: labels::port(&service.labels),
                service: None,
                stays_up: !matches!(condition, Condition::Gone),
            };
            Some(DiscoveredResource { owner, what })
        });
        found.collect()
    }

    /// Returns the tasks of a service whose output can be read, oldest first. That of a node that is lost is lost, too.
    async fn readable_tasks(&self, service: &ContainerId) -> Result<Vec<Task>, StepError> {
        let (mut tasks, nodes) = tokio::try_join!(self.tasks(service), self.cluster_nodes())?;
        tasks.retain(|task| {
            let is_ready = task.node.as_ref().is_some_and(|node| nodes.ready_address(node).is_some());
            is_ready && task.has_container
        });
        tasks.sort_by_key(|task| task.created_at);
        Ok(tasks)
    }

    async fn lines_after(
        &self,
        container: &ContainerId,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<StampedLine>, StepError> {
        let mut lines = Vec::new();
        for task in self.readable_tasks(container).await? {
            let is_read =
                task.state != TaskState::Running && since.is_some_and(|since| task.changed_at < since);
            if is_read {
                continue;
            }
            let nanoseconds = since.and_then(|since| since.timestamp_nanos_opt());
            let range = nanoseconds.map_or(LogRange::All, LogRange::Since);
            match self.read_task(&task, range, limit).await {
                Ok(read) => lines.extend(read),
                // Later lines would hide that these are missing.
                Err(error) if lines.is_empty() => return Err(error),
                Err(_later) => break,
            }
            lines.retain(|line: &StampedLine| since.is_none_or(|since| line.microsecond() > since));
            if lines.len() > limit {
                break;
            }
        }
        Ok(lines)
    }

    async fn read_task(
        &self,
        task: &Task,
        range: LogRange,
        limit: usize,
    ) -> Result<Vec<StampedLine>, StepError> {
        let Some(socket) = self.engine.docker.socket().await else { return Ok(Vec::new()) };
        let collected = Arc::new(Lines::oldest(limit));
        let read = tokio::select! {
            read = socket.logs(LogSource::Task(&task.id), range, collected.clone(), LOG_TIME) => read,
            // The rest is for the next call.
            () = collected.full() => Ok(()),
        };
        match read {
            // Its container was removed.
            Ok(()) | Err(SocketError::Status(_)) => Ok(collected.take()),
            Err(SocketError::Unavailable(why)) => {
                Err(StepError::Retryable(format!("the output of a task cannot be read: {why}")))
            }
            Err(error) => Err(EngineError::from(error).or_fault()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn managers_are_asked_more_often_after_a_change_of_a_node() {
        let states = |task, is_ready| States {
            tasks: [("a".repeat(25).parse().unwrap(), (task, true))].into(),
            nodes: [("a".to_owned(), is_ready)].into(),
        };
        let last = LastStates::default();
        assert_eq!(last.interval(), ASK_EVERY);
        let first = || states(TaskState::Running, true);
        assert!(last.is_new(first()) && !last.is_new(first()));
        assert_eq!(last.interval(), ASK_SOON);
        tokio::time::advance(UNSETTLED).await;
        // A container that ends all the time costs nothing more.
        assert!(last.is_new(states(TaskState::Failed, true)));
        assert_eq!(last.interval(), ASK_EVERY);
        assert!(last.is_new(states(TaskState::Failed, false)));
        assert_eq!(last.interval(), ASK_SOON);
    }
}
