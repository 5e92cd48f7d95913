//! Runs containers.

mod guard;
mod list;
mod record;
mod resume;
mod uptime;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use launchway_domain::{
    applications::RunCommand,
    deployments::{
        Condition, Container, ContainerId, ContainerPlan, Deployer, Exit, ImageName, Output, Owner, StepError,
    },
    ids::DeploymentId,
};
use launchway_system::process::ProcessError;
use serde_json::Value;
use tokio::time::sleep;

pub(super) use self::{
    guard::ContainerGuard,
    list::{Filters, ListMemory, NAME_PREFIX},
    record::{Endpoint, condition, endpoints, is_kept, read},
};
use super::{
    DockerEngine, NetworkDriver,
    command::{ContainerOptions, NewContainer, Program, RetryBudget},
    environment::ContainerEnvironment,
    errors::EngineError,
    labels::{self, Label},
    networks::Network,
};

/// The exit code of a killed program.
const KILLED: i32 = 137;
/// The time after the end of a container at which the engine has reported its cause, even on a busy machine.
const CAUSE_REPORTED: Duration = Duration::from_millis(500);
/// The most looks for a network that was removed, and the pause between two.
const MOST_LOOKS: usize = 100;
const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// The most addresses that are tried for one container.
pub(super) const MOST_ADDRESSES: usize = 16;

#[async_trait]
impl Deployer for DockerEngine {
    /// A container that exits immediately is kept, so that its logs can be read.
    async fn start(&self, plan: &ContainerPlan) -> Result<Container, StepError> {
        let unfinished = ContainerGuard::new(&self.docker);
        let started = self.start_marked(plan, unfinished.label()).await;
        unfinished.end(started.is_ok()).await;
        started
    }

    async fn run_once(
        &self,
        plan: &ContainerPlan,
        command: &RunCommand,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        self.run_in(None, plan, command, output).await
    }

    async fn enable_restart_policy(&self, container: &ContainerId) -> Result<(), StepError> {
        let group = self.group(container).await?;
        if group.is_empty() {
            return self
                .docker
                .set_restart_policy(container, "unless-stopped")
                .await
                .map_err(EngineError::or_fault);
        }
        for member in &group {
            if let Some(policy) = member.policy() {
                self.docker.set_restart_policy(&member.id, policy).await.map_err(EngineError::or_fault)?;
            }
        }
        Ok(())
    }

    async fn condition(&self, container: &ContainerId) -> Result<Condition, StepError> {
        let record = self.record(container).await?;
        Ok(record.as_ref().map_or(Condition::Gone, condition))
    }

    /// A container that is paused, stopped, was never started or is in none of its networks is started with
    /// the address that it was created with. One that cannot be repaired is rejected, so that another is
    /// created in its place: its address belongs to another container by now, or a killed engine left only
    /// a part of it.
    async fn resume(&self, container: &ContainerId) -> Result<Container, StepError> {
        self.resume_container(container).await
    }

    /// A container of an earlier version gets a static address here, and keeps it from then on.
    async fn restart(&self, container: &ContainerId) -> Result<Container, StepError> {
        self.restart_sidecars(container).await?;
        let record = self.record(container).await?.ok_or_else(gone)?;
        self.attach(container, &record).await?;
        self.docker.restart(container).await.map_err(|failure| match failure.is_gone() {
            true => gone(),
            false => failure.or_fault(),
        })?;
        self.started(container).await
    }

    async fn stop(&self, container: &ContainerId) -> Result<(), StepError> {
        let group = self.group(container).await?;
        if group.is_empty() {
            return done_or_gone(self.docker.stop(container).await);
        }
        for member in group.iter().rev() {
            done_or_gone(self.docker.stop_in_its_own_time(&member.id).await)?;
        }
        Ok(())
    }

    async fn remove(&self, deployment: DeploymentId) -> Result<(), StepError> {
        let marks = [Label::of_instance(self.options.instance), Label::of_deployment(deployment)];
        self.remove_with_network(&marks, &marks).await
    }

    async fn remove_attempt(&self, owner: &Owner) -> Result<(), StepError> {
        let containers = labels::of(self.options.instance, owner);
        self.remove_with_network(&containers, &labels::of_image(self.options.instance, owner)).await
    }
}

impl DockerEngine {
    async fn start_marked(&self, plan: &ContainerPlan, call: Label) -> Result<Container, StepError> {
        let name = container_name(plan);
        let (id, network) = self.make(plan, &name, None, None, call).await?;
        let record = self.record(&id).await?;
        let started = record.and_then(|record| read(&record, Some(&network)));
        started.ok_or_else(|| {
            StepError::Retryable("the container was removed as soon as it was started".to_owned())
        })
    }

    /// Runs a command in a container of its own, in `network` or in the organization's.
    pub(super) async fn run_in(
        &self,
        network: Option<&Network>,
        plan: &ContainerPlan,
        command: &RunCommand,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let unfinished = ContainerGuard::new(&self.docker);
        let ended = self.run_marked(network, plan, command, unfinished.label(), output).await;
        unfinished.end(false).await;
        ended
    }

    async fn run_marked(
        &self,
        network: Option<&Network>,
        plan: &ContainerPlan,
        command: &RunCommand,
        call: Label,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let limit = self.options.command_time;
        let (deployment, attempt) = (plan.owner.deployment, plan.owner.attempt);
        let name = format!("launchway-{deployment}-{attempt}-task-{}", call.value());
        let (mut id, made_in) = self.make(plan, &name, network, Some(command), call.clone()).await?;
        let mut ended = self.docker.start_attached(&id, limit, output.clone()).await;
        let is_taken = matches!(&ended, Err(failure) if failure.is_address_taken());
        if self.has_lost(plan.owner.organization, &made_in, &ended).await || is_taken {
            self.remove_marked(std::slice::from_ref(&call)).await?;
            (id, _) = self.make(plan, &name, network, Some(command), call).await?;
            ended = self.docker.start_attached(&id, limit, output).await;
        }
        let failure = match ended {
            Ok(()) => return Ok(()),
            Err(EngineError::Client(ProcessError::TookTooLong(..))) => {
                return Err(StepError::Rejected(format!("the command took longer than {limit:?}")));
            }
            Err(failure) => failure,
        };
        // Docker exits with the code of the command or of its own error; only the container's record shows
        // which.
        let mut record = self.record(&id).await?;
        if record.as_ref().is_some_and(is_killed_for_no_reason) {
            // The engine learns of the end and of its cause by separate events.
            sleep(CAUSE_REPORTED).await;
            record = self.record(&id).await?;
        }
        let was_started = record.as_ref().is_some_and(|record| {
            let state = |key: &str| record.get("state")?.get(key)?.as_str();
            state("Error") == Some("") && state("Status") == Some("exited")
        });
        match record.as_ref().map(condition) {
            Some(Condition::Exited(Exit { code, out_of_memory, .. })) if was_started => {
                Err(StepError::Rejected(self.how_it_ended(code, out_of_memory)))
            }
            _ => Err(failure.or_fault()),
        }
    }

    fn how_it_ended(&self, code: i32, out_of_memory: bool) -> String {
        let mebibytes = self.options.limits.memory / 1024 / 1024;
        match out_of_memory && code == KILLED {
            true => format!("the command wanted more than {mebibytes} MiB of memory"),
            false => format!("the command ended with exit code {code}"),
        }
    }

    /// Creates a container in `network`, or in the organization's. One for a command is started by the
    /// caller, which attaches to its output; any other is started here, and replaces the one that has its
    /// name.
    async fn make(
        &self,
        plan: &ContainerPlan,
        name: &str,
        network: Option<&Network>,
        command: Option<&RunCommand>,
        call: Label,
    ) -> Result<(ContainerId, Network), StepError> {
        let environment = ContainerEnvironment::of(&plan.environment)?;
        let (organization, reserved) = (plan.owner.organization, plan.reserved.as_slice());
        let (mut retries, mut is_replaced) = (RetryBudget::new(), false);
        // Held to the end, so that none of them is tried again.
        let mut refused = Vec::new();
        loop {
            let network = match network {
                Some(network) => network.clone(),
                None => self.network(organization, reserved).await?,
            };
            // The engine has its own part of the network for containers that cannot be routed to.
            let assignment = match command.is_some() && network.is_divided() {
                true => None,
                false => self.assign(&network, organization, reserved).await?,
            };
            let address = assignment.as_ref().map(|assignment| assignment.address);
            let mut labels = labels::of(self.options.instance, &plan.owner);
            let port = Label::of_port(plan.port);
            let copy = Label::of_copy(plan.copy);
            labels.extend([
                Label::of_no_service(),
                Label::of_address(address),
                port,
                copy.clone(),
                call.clone(),
            ]);
            let container = NewContainer {
                name,
                labels: &labels,
                limits: &self.options.limits,
                environment: &environment,
                address,
                program: match command {
                    None => Program::Own(&plan.image),
                    Some(command) => Program::Shell(&plan.image, command),
                },
                surroundings: ContainerOptions::default(),
            };
            let made = match command {
                None => self.docker.run(&container, &network.id).await,
                Some(_) => self.docker.create(&container, &network.id).await,
            };
            self.has_lost(organization, &network, &made).await;
            let failure = match made {
                Ok(id) => return Ok((id, network)),
                Err(failure) => failure,
            };
            let is_taken = failure.says("is already in use");
            if is_taken && command.is_none() && !is_replaced {
                is_replaced = true;
                let mut same = labels::of(self.options.instance, &plan.owner);
                // A container of an earlier release has no such label, and is the only one of its attempt.
                same.extend((plan.copy > 1).then_some(copy));
                self.remove_marked(&same).await?;
            } else if failure.is_address_taken() && refused.len() < MOST_ADDRESSES {
                refused.extend(assignment);
                self.remove_marked(std::slice::from_ref(&call)).await?;
            } else if retries.should_retry(&failure).await {
                // It may have been created but not started.
                self.remove_marked(std::slice::from_ref(&call)).await?;
            } else {
                return Err(not_made(failure, &plan.image));
            }
        }
    }

    /// Removes the containers with all of `containers`, and the networks with all of `networks`.
    async fn remove_with_network(&self, containers: &[Label], networks: &[Label]) -> Result<(), StepError> {
        let (removed, found) = tokio::join!(self.remove_marked(containers), self.docker.networks(networks));
        removed?;
        let mut left = found.map_err(EngineError::or_fault)?;
        for network in &left {
            done_or_gone(self.docker.remove_network(network).await)?;
        }
        // A manager of a Swarm lists an overlay for a moment after it is removed. It would be taken for an existing one.
        for _ in 0..MOST_LOOKS {
            if left.is_empty() || self.options.network_driver == NetworkDriver::Bridge {
                return Ok(());
            }
            sleep(LOOK_PAUSE).await;
            left = self.docker.networks(networks).await.map_err(EngineError::or_fault)?;
        }
        Err(StepError::Retryable("a network that was removed is still there".to_owned()))
    }

    /// Removes the containers of this installation that have all of these labels.
    async fn remove_marked(&self, labels: &[Label]) -> Result<(), StepError> {
        let mut marks = vec![Label::of_instance(self.options.instance)];
        marks.extend_from_slice(labels);
        let found = self.docker.containers(&marks).await.map_err(EngineError::or_fault)?;
        self.docker.remove(&found).await.map_err(EngineError::or_fault)
    }

    /// Restarts the other containers of a container's composition.
    async fn restart_sidecars(&self, container: &ContainerId) -> Result<(), StepError> {
        let group = self.group(container).await?;
        for member in group.iter().filter(|member| member.id != *container) {
            self.docker.restart(&member.id).await.map_err(|failure| match failure.or_fault() {
                StepError::Rejected(why) => StepError::Rejected(format!(
                    "the service `{}` cannot be started: {why}",
                    member.service()
                )),
                fault => fault,
            })?;
        }
        Ok(())
    }

    pub(super) async fn record(&self, container: &ContainerId) -> Result<Option<Value>, StepError> {
        let records = self.docker.inspect(std::slice::from_ref(container)).await;
        Ok(records.map_err(EngineError::or_fault)?.into_iter().next())
    }
}

/// Returns the name of a copy's container, or of the service that runs it.
pub(super) fn container_name(plan: &ContainerPlan) -> String {
    let name = format!("launchway-{}-{}", plan.owner.deployment, plan.owner.attempt);
    if plan.copy > 1 { format!("{name}-{}", plan.copy) } else { name }
}

/// Returns whether a container was killed, and its record does not say that it wanted too much memory.
fn is_killed_for_no_reason(record: &Value) -> bool {
    matches!(condition(record), Condition::Exited(exit) if exit.code == KILLED && !exit.out_of_memory)
}

pub(super) fn gone() -> StepError {
    StepError::Rejected("the container is gone".to_owned())
}

/// Treats a missing object as success.
pub(super) fn done_or_gone(done: Result<(), EngineError>) -> Result<(), StepError> {
    match done {
        Err(failure) if !failure.is_gone() => Err(failure.or_fault()),
        _ => Ok(()),
    }
}

fn not_made(failure: EngineError, image: &ImageName) -> StepError {
    if failure.is_gone() {
        StepError::Rejected(format!("the image `{}` no longer exists", image.as_str()))
    } else {
        failure.or_fault()
    }
}
