//! Runs each copy of an application as a service with one container.

use std::{collections::HashSet, net::IpAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use launchway_domain::{
    applications::{Port, RunCommand},
    clock::Clock as _,
    deployments::{Condition, Container, ContainerId, ContainerPlan, Deployer, Output, Owner, StepError},
    ids::DeploymentId,
    nodes::NodeId,
};
use launchway_system::clock::SystemClock;
use tokio::time::{Instant, sleep};

use super::{
    SwarmEngine, TaskId,
    condition::condition,
    images::PublishedImage,
    placement::{NodeConstraint, free_port, node_for_copy},
    records::{Nodes, Service, Task, TaskState},
    startup::NotStarted,
};
use crate::{
    command::{NewService, RetryBudget, ServiceChange},
    containers::{ContainerGuard, Filters, container_name, gone},
    environment::ContainerEnvironment,
    errors::EngineError,
    labels::{self, Label},
    networks::Network,
};

/// The interval between two looks at the tasks of a service.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// The time after which a container that was told to stop is not waited for any more: its grace period, and the way there.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);
/// The most ports that are tried for one copy.
const MOST_PORTS: usize = 8;

/// Services with their tasks, and all nodes.
pub(super) struct Cluster {
    pub(super) services: Vec<Service>,
    pub(super) tasks: Vec<Task>,
    pub(super) nodes: Nodes,
}

impl Cluster {
    pub(super) fn tasks_of(&self, service: &ContainerId) -> Vec<&Task> {
        self.tasks.iter().filter(|task| task.service == service.as_str()).collect()
    }
}

/// The parts that a service is made of.
#[derive(Clone, Copy)]
struct Parts<'a> {
    image: &'a PublishedImage,
    environment: &'a ContainerEnvironment,
    network: &'a Network,
    published: u16,
}

#[async_trait]
impl Deployer for SwarmEngine {
    async fn start(&self, plan: &ContainerPlan) -> Result<Container, StepError> {
        let unfinished = ContainerGuard::of_service(&self.engine.docker);
        let started = self.start_marked(plan, unfinished.label()).await;
        unfinished.end(started.is_ok()).await;
        started
    }

    /// The command runs on this machine, in the same overlay: its output is complete and arrives as it is written.
    async fn run_once(
        &self,
        plan: &ContainerPlan,
        command: &RunCommand,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        self.fetch(&plan.image).await?;
        let plan = ContainerPlan { image: plan.image.without_digest(), ..plan.clone() };
        self.engine.run_once(&plan, command, output).await
    }

    /// Swarm restarts the container from the beginning, because another policy would replace it. From here on its failures
    /// are restarts, and it may be moved.
    async fn enable_restart_policy(&self, container: &ContainerId) -> Result<(), StepError> {
        if !container.is_service() {
            return self.engine.enable_restart_policy(container).await;
        }
        let Some(service) = self.service(container).await? else {
            return Err(StepError::Retryable("the service is gone".to_owned()));
        };
        if service.is_kept() && service.constraints.is_empty() {
            return Ok(());
        }
        self.change(container, ServiceChange::Keep(&service.constraints)).await
    }

    async fn condition(&self, container: &ContainerId) -> Result<Condition, StepError> {
        if !container.is_service() {
            return self.composed_condition(container).await;
        }
        let Some(service) = self.service(container).await? else { return Ok(Condition::Gone) };
        let (tasks, nodes) = tokio::try_join!(self.tasks(container), self.cluster_nodes())?;
        let tasks: Vec<&Task> = tasks.iter().collect();
        let restarts = self.restarts.count(container, &tasks);
        Ok(condition(&service, &tasks, &nodes, restarts, SystemClock.now()))
    }

    async fn resume(&self, container: &ContainerId) -> Result<Container, StepError> {
        if !container.is_service() {
            self.require_published(container).await?;
            return self.engine.reached(self.engine.resume(container).await?).await;
        }
        let service = self.unconstrained(container).await?;
        if !service.is_run {
            self.change(container, ServiceChange::Run(true)).await?;
        }
        self.running_again(&service, &HashSet::new()).await
    }

    async fn restart(&self, container: &ContainerId) -> Result<Container, StepError> {
        if !container.is_service() {
            self.require_published(container).await?;
            return self.engine.reached(self.engine.restart(container).await?).await;
        }
        let service = self.unconstrained(container).await?;
        let before = self.tasks(container).await?.into_iter().map(|task| task.id).collect();
        self.change(container, ServiceChange::Restart).await?;
        self.running_again(&service, &before).await
    }

    async fn stop(&self, container: &ContainerId) -> Result<(), StepError> {
        if !container.is_service() {
            return self.engine.stop(container).await;
        }
        if self.service(container).await?.is_none() {
            return Ok(());
        }
        self.change(container, ServiceChange::Run(false)).await?;
        let began = Instant::now();
        while began.elapsed() < STOPPED_WITHIN {
            let (tasks, nodes) = tokio::try_join!(self.tasks(container), self.cluster_nodes())?;
            // One on a machine that does not answer is not waited for.
            let runs = |task: &Task| {
                matches!(task.state, TaskState::Starting | TaskState::Running)
                    && task.node.as_ref().is_some_and(|node| nodes.ready_address(node).is_some())
            };
            if !tasks.iter().any(runs) {
                return Ok(());
            }
            sleep(PAUSE).await;
        }
        Err(StepError::Retryable("the container did not stop in time".to_owned()))
    }

    async fn remove(&self, deployment: DeploymentId) -> Result<(), StepError> {
        self.remove_services(&[Label::of_deployment(deployment)]).await?;
        // Those of compositions and commands, and of a time before the Swarm.
        Deployer::remove(&*self.engine, deployment).await
    }

    async fn remove_attempt(&self, owner: &Owner) -> Result<(), StepError> {
        self.remove_services(&labels::of(self.engine.options.instance, owner)).await?;
        self.engine.remove_attempt(owner).await
    }
}

impl SwarmEngine {
    async fn start_marked(&self, plan: &ContainerPlan, call: Label) -> Result<Container, StepError> {
        let image = self.published(&plan.image).await?;
        let environment = ContainerEnvironment::of(&plan.environment)?;
        let (mut is_replaced, mut refused, mut retries) = (false, HashSet::new(), RetryBudget::new());
        loop {
            let published = self.free_port(&refused).await?;
            let network = self.engine.network(plan.owner.organization, &[]).await?;
            let parts = Parts { image: &image, environment: &environment, network: &network, published };
            match self.create(plan, parts, call.clone()).await {
                Ok(service) if self.shares_port(&service).await? => {
                    refused.insert(published);
                    self.remove_services(std::slice::from_ref(&call)).await?;
                }
                Ok(service) => match self.wait_until_started(&service, HashSet::new()).await {
                    Ok(address) => return Ok(started(&service, address)),
                    Err(NotStarted::PortInUse) if refused.len() < MOST_PORTS => {
                        refused.insert(published);
                        self.remove_services(std::slice::from_ref(&call)).await?;
                    }
                    Err(not_started) => return Err(not_started.into_step()),
                },
                Err(failure) if failure.says("already exists") && !is_replaced => {
                    is_replaced = true;
                    let mut same = labels::of(self.engine.options.instance, &plan.owner);
                    same.extend((plan.copy > 1).then(|| Label::of_copy(plan.copy)));
                    self.remove_services(&same).await?;
                }
                Err(failure) if retries.should_retry(&failure).await => {
                    self.remove_services(std::slice::from_ref(&call)).await?;
                }
                Err(failure) => return Err(failure.or_fault()),
            }
        }
    }

    async fn create(
        &self,
        plan: &ContainerPlan,
        parts: Parts<'_>,
        call: Label,
    ) -> Result<Service, EngineError> {
        let Parts { image, environment, network, published } = parts;
        let node = self.node_for_copy(plan).await?;
        let name = container_name(plan);
        let mut labels = labels::of(self.engine.options.instance, &plan.owner);
        labels.extend([Label::of_port(plan.port), Label::of_copy(plan.copy), call]);
        let service = NewService {
            name: &name,
            labels: &labels,
            limits: &self.engine.options.limits,
            environment,
            image,
            target: plan.port,
            published,
            node: node.as_ref(),
        };
        let made = self.engine.docker.create_service(&service, &network.id).await;
        self.engine.has_lost(plan.owner.organization, network, &made).await;
        let labels = labels.iter().map(|label| (label.name().to_owned(), label.value().to_owned())).collect();
        Ok(Service {
            id: made?,
            name,
            labels,
            created_at: SystemClock.now(),
            is_run: true,
            published: Some(published),
            constraints: node.map(NodeConstraint::On).into_iter().collect(),
        })
    }

    /// Returns a port that no service of this Swarm has, and that is none of `refused`.
    async fn free_port(&self, refused: &HashSet<u16>) -> Result<u16, StepError> {
        // Services of others may publish ports, too.
        let services = self.engine.docker.list_services(&[]).await.map_err(EngineError::or_fault)?;
        let mut taken: HashSet<u16> = services.iter().filter_map(|service| service.published).collect();
        taken.extend(refused);
        // The rest is for compositions.
        let (range, _) = self.options.ports.divided();
        free_port(range, &taken, SystemClock.now()).ok_or_else(|| {
            StepError::Rejected(format!(
                "no port of the nodes is left for another container ({range}, LAUNCHWAY_NODE_PORTS)"
            ))
        })
    }

    /// Returns whether an older service has the port of a new one: two servers may choose the same port at the same time.
    async fn shares_port(&self, new: &Service) -> Result<bool, StepError> {
        let services = self.engine.docker.list_services(&[]).await.map_err(EngineError::or_fault)?;
        let Some(own) = services.iter().find(|service| service.id == new.id) else {
            return Err(StepError::Retryable("the service was removed as soon as it was created".to_owned()));
        };
        let has_it = |other: &&Service| other.published == own.published && other.age() < own.age();
        Ok(services.iter().any(|other| has_it(&other)))
    }

    async fn node_for_copy(&self, plan: &ContainerPlan) -> Result<Option<NodeId>, EngineError> {
        if plan.copy < 2 {
            return Ok(None);
        }
        let cluster = self.cluster(&[Label::of_deployment(plan.owner.deployment)]).await?;
        let Cluster { services, tasks, mut nodes } = cluster;
        nodes.0.retain(|id, _| !self.silent_nodes.contains(id));
        Ok(node_for_copy(plan.copy, plan.owner.deployment, &services, &tasks, &nodes))
    }

    /// Returns a service that has run, after it was allowed to return to nodes that it was moved away from.
    async fn unconstrained(&self, id: &ContainerId) -> Result<Service, StepError> {
        let mut service = self.service(id).await?.ok_or_else(gone)?;
        if !service.constraints.is_empty() {
            self.change(id, ServiceChange::Free(&service.constraints)).await?;
            service.constraints.clear();
        }
        Ok(service)
    }

    async fn running_again(
        &self,
        service: &Service,
        before: &HashSet<TaskId>,
    ) -> Result<Container, StepError> {
        // Tasks that ended earlier say nothing about the one that is started now.
        let tasks = self.tasks(&service.id).await?;
        let ended = tasks.into_iter().filter(|task| !task.is_wanted).map(|task| task.id);
        let before = before.iter().cloned().chain(ended).collect();
        let address = self.wait_until_started(service, before).await.map_err(NotStarted::into_step)?;
        Ok(started(service, address))
    }

    pub(super) async fn change(
        &self,
        service: &ContainerId,
        change: ServiceChange<'_>,
    ) -> Result<(), StepError> {
        match self.engine.docker.update_service(service, change).await {
            Err(failure) if failure.is_gone() => Err(gone()),
            changed => changed.map_err(EngineError::or_fault),
        }
    }

    /// Removes the services of this installation that have all of these labels.
    pub(super) async fn remove_services(&self, labels: &[Label]) -> Result<(), StepError> {
        let mut marks = vec![Label::of_instance(self.engine.options.instance)];
        marks.extend_from_slice(labels);
        let found = self.engine.docker.services(&marks).await.map_err(EngineError::or_fault)?;
        self.engine.docker.remove_services(&found).await.map_err(EngineError::or_fault)
    }

    /// Returns a service of this installation.
    pub(super) async fn service(&self, id: &ContainerId) -> Result<Option<Service>, StepError> {
        let ours = [Label::of_instance(self.engine.options.instance)];
        let services = self.engine.docker.list_services(&ours).await.map_err(EngineError::or_fault)?;
        Ok(services.into_iter().find(|service| service.id == *id))
    }

    /// Returns the tasks of a service.
    pub(super) async fn tasks(&self, service: &ContainerId) -> Result<Vec<Task>, StepError> {
        self.engine.docker.tasks_of(service).await.map_err(EngineError::or_fault)
    }

    pub(super) async fn cluster_nodes(&self) -> Result<Nodes, StepError> {
        self.engine.docker.list_nodes().await.map_err(EngineError::or_fault)
    }

    /// Returns the services of this installation with these labels, their tasks, and all nodes.
    pub(super) async fn cluster(&self, labels: &[Label]) -> Result<Cluster, EngineError> {
        let mut marks = vec![Label::of_instance(self.engine.options.instance)];
        marks.extend_from_slice(labels);
        let filters = marks.iter().map(|label| label.as_str().to_owned()).collect();
        let filters = Filters::from([("label", filters)]);
        let docker = &self.engine.docker;
        let (services, tasks, nodes) =
            tokio::try_join!(docker.list_services(&marks), docker.list_tasks(&filters), docker.list_nodes())?;
        Ok(Cluster { services, tasks, nodes })
    }
}

fn started(service: &Service, address: IpAddr) -> Container {
    let port = service.published.and_then(|port| Port::try_from(port).ok());
    Container { id: service.id.clone(), name: service.name.clone(), address, port }
}
