//! Runs containers.

mod unfinished;

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;
use launchway_domain::{
    applications::RunCommand,
    deployments::{
        Condition, Container, ContainerId, ContainerPlan, Deployer, ImageName, Output, Owner, StepError,
    },
    ids::DeploymentId,
};
use serde_json::Value;

pub(super) use self::unfinished::Unfinished;
use super::{
    DockerEngine,
    command::{NetworkId, NewContainer, Patience, Program, Surroundings},
    complaints::Failure,
    environment::ContainerEnvironment,
    labels::{self, Label},
    networks::Network,
};
use crate::process::ProcessError;

/// How a program ends that was killed.
const KILLED: i32 = 137;

#[async_trait]
impl Deployer for DockerEngine {
    /// A container that ends at once is there all the same, so that its last words can be read.
    /// Its address is then one of its network at which nobody answers.
    async fn start(&self, plan: &ContainerPlan) -> Result<Container, StepError> {
        let unfinished = Unfinished::new(&self.docker);
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

    async fn keep(&self, container: &ContainerId) -> Result<(), StepError> {
        let group = self.group(container).await?;
        if group.is_empty() {
            return self.docker.keep(container, "unless-stopped").await.map_err(Failure::or_fault);
        }
        for member in &group {
            if let Some(policy) = member.policy() {
                self.docker.keep(&member.id, policy).await.map_err(Failure::or_fault)?;
            }
        }
        Ok(())
    }

    async fn condition(&self, container: &ContainerId) -> Result<Condition, StepError> {
        let record = self.record(container).await?;
        Ok(record.as_ref().map_or(Condition::Gone, condition))
    }

    async fn restart(&self, container: &ContainerId) -> Result<Container, StepError> {
        let gone = || StepError::Refused("the container is gone".to_owned());
        self.restart_companions(container).await?;
        self.docker.restart(container).await.map_err(|failure| match failure.is_gone() {
            true => gone(),
            false => failure.or_fault(),
        })?;
        let record = self.record(container).await?.ok_or_else(gone)?;
        let network = match address(&record) {
            Some(_) => None,
            None => self.read_networks(&network_id(&record).into_iter().collect::<Vec<_>>()).await?.pop(),
        };
        read(&record, network.as_ref()).ok_or_else(gone)
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
        let (removed, networks) = tokio::join!(self.remove_marked(&marks[1..]), self.docker.networks(&marks));
        removed?;
        for network in networks.map_err(Failure::or_fault)? {
            done_or_gone(self.docker.remove_network(&network).await)?;
        }
        Ok(())
    }
}

impl DockerEngine {
    async fn start_marked(&self, plan: &ContainerPlan, call: Label) -> Result<Container, StepError> {
        let name = format!("launchway-{}-{}", plan.owner.deployment, plan.owner.attempt);
        let (id, network) = self.make(plan, &name, None, None, call).await?;
        let record = self.record(&id).await?;
        let started = record.and_then(|record| read(&record, Some(&network)));
        started
            .ok_or_else(|| StepError::Fault("the container was removed as soon as it was started".to_owned()))
    }

    /// Runs a command in a container of its own, in `network` or in the organization's.
    pub(super) async fn run_in(
        &self,
        network: Option<&Network>,
        plan: &ContainerPlan,
        command: &RunCommand,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let unfinished = Unfinished::new(&self.docker);
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
        if self.has_lost(plan.owner.organization, &made_in, &ended).await {
            self.remove_marked(std::slice::from_ref(&call)).await?;
            (id, _) = self.make(plan, &name, network, Some(command), call).await?;
            ended = self.docker.start_attached(&id, limit, output).await;
        }
        let failure = match ended {
            Ok(()) => return Ok(()),
            Err(Failure::Client(ProcessError::TookTooLong(..))) => {
                return Err(StepError::Refused(format!("the command took longer than {limit:?}")));
            }
            Err(failure) => failure,
        };
        // Docker ends like the command or for reasons of its own; only the container knows which.
        let record = self.record(&id).await?;
        let was_started = record.as_ref().is_some_and(|record| {
            let state = |key: &str| record.get("state")?.get(key)?.as_str();
            state("Error") == Some("") && state("Status") == Some("exited")
        });
        match record.as_ref().map(condition) {
            Some(Condition::Exited { code, out_of_memory, .. }) if was_started => {
                Err(StepError::Refused(self.how_it_ended(code, out_of_memory)))
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

    /// Makes a container in `network`, or in the organization's. One for a command is started by who wants
    /// to see what it prints; the other runs, in place of the one that has its name.
    async fn make(
        &self,
        plan: &ContainerPlan,
        name: &str,
        network: Option<&Network>,
        command: Option<&RunCommand>,
        call: Label,
    ) -> Result<(ContainerId, Network), StepError> {
        let environment = ContainerEnvironment::of(&plan.environment)?;
        let mut labels = labels::of(self.options.instance, &plan.owner);
        labels.extend([Label::of_no_service(), call.clone()]);
        let container = NewContainer {
            name,
            labels: &labels,
            limits: &self.options.limits,
            environment: &environment,
            program: match command {
                None => Program::Own(&plan.image),
                Some(command) => Program::Shell(&plan.image, command),
            },
            surroundings: Surroundings::default(),
        };
        let (mut patience, mut is_replaced) = (Patience::new(), false);
        loop {
            let network = match network {
                Some(network) => network.clone(),
                None => self.network(plan.owner.organization).await?,
            };
            let made = match command {
                None => self.docker.run(&container, &network.id).await,
                Some(_) => self.docker.create(&container, &network.id).await,
            };
            self.has_lost(plan.owner.organization, &network, &made).await;
            let failure = match made {
                Ok(id) => return Ok((id, network)),
                Err(failure) => failure,
            };
            let is_taken = failure.says("is already in use");
            if is_taken && command.is_none() && !is_replaced {
                is_replaced = true;
                self.remove_attempt(&plan.owner).await?;
            } else if patience.bears(&failure).await {
                // It may have been made, and not started.
                self.remove_marked(std::slice::from_ref(&call)).await?;
            } else {
                return Err(not_made(failure, &plan.image));
            }
        }
    }

    async fn remove_attempt(&self, owner: &Owner) -> Result<(), StepError> {
        let marks = labels::of(self.options.instance, owner);
        self.remove_marked(&marks).await
    }

    /// Removes the containers of this installation that have all of these labels.
    async fn remove_marked(&self, labels: &[Label]) -> Result<(), StepError> {
        let mut marks = vec![Label::of_instance(self.options.instance)];
        marks.extend_from_slice(labels);
        let found = self.docker.containers(&marks).await.map_err(Failure::or_fault)?;
        self.docker.remove(&found).await.map_err(Failure::or_fault)
    }

    /// Starts everything anew that the container of a composition needs.
    async fn restart_companions(&self, container: &ContainerId) -> Result<(), StepError> {
        let group = self.group(container).await?;
        for member in group.iter().filter(|member| member.id != *container) {
            self.docker.restart(&member.id).await.map_err(|failure| match failure.or_fault() {
                StepError::Refused(why) => {
                    StepError::Refused(format!("the service `{}` cannot be started: {why}", member.service()))
                }
                fault => fault,
            })?;
        }
        Ok(())
    }

    pub(super) async fn record(&self, container: &ContainerId) -> Result<Option<Value>, StepError> {
        let records = self.docker.inspect(std::slice::from_ref(container)).await;
        Ok(records.map_err(Failure::or_fault)?.into_iter().next())
    }
}

/// What is gone needs no end.
pub(super) fn done_or_gone(done: Result<(), Failure>) -> Result<(), StepError> {
    match done {
        Err(failure) if !failure.is_gone() => Err(failure.or_fault()),
        _ => Ok(()),
    }
}

fn not_made(failure: Failure, image: &ImageName) -> StepError {
    if failure.is_gone() {
        StepError::Refused(format!("the image `{}` is not there any more", image.as_str()))
    } else {
        failure.or_fault()
    }
}

/// A started container; `None` when docker's record of it cannot be read.
pub(super) fn read(record: &Value, network: Option<&Network>) -> Option<Container> {
    Some(Container {
        id: record.get("id")?.as_str()?.parse().ok()?,
        name: record.get("name")?.as_str()?.trim_start_matches('/').to_owned(),
        address: address(record).or(network.map(Network::nobody))?,
    })
}

/// The address in the one network that the container is in, while it runs.
fn address(record: &Value) -> Option<IpAddr> {
    let networks = record.get("networks")?.as_object()?;
    networks.values().find_map(|network| network.get("IPAddress")?.as_str()?.parse().ok())
}

fn network_id(record: &Value) -> Option<NetworkId> {
    let networks = record.get("networks")?.as_object()?;
    networks.values().find_map(|network| NetworkId::parse(network.get("NetworkID")?.as_str()?))
}

/// How a container is by docker's record of it.
pub(super) fn condition(record: &Value) -> Condition {
    let state = record.get("state").unwrap_or(&Value::Null);
    let is = |key: &str| state.get(key).and_then(Value::as_bool).unwrap_or_default();
    let number = |value: Option<&Value>| value.and_then(Value::as_i64).unwrap_or_default();
    let restarts = u32::try_from(number(record.get("restarts"))).unwrap_or_default();
    if matches!(state.get("Status").and_then(Value::as_str), Some("removing" | "dead")) {
        return Condition::Gone;
    }
    // Docker calls a container running that waits for its next start.
    match address(record).filter(|_| is("Running") && !is("Restarting")) {
        Some(address) => Condition::Running { address, restarts },
        None => Condition::Exited {
            code: i32::try_from(number(state.get("ExitCode"))).unwrap_or(i32::MAX),
            out_of_memory: is("OOMKilled"),
            restarts,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_runs_stands_still_or_is_gone() {
        let networks = json!({ "n": { "IPAddress": "10.0.0.2" } });
        let at = |state: Value| condition(&json!({ "state": state, "restarts": 2, "networks": networks }));
        let exited = |code, out_of_memory| Condition::Exited { code, out_of_memory, restarts: 2 };
        let address = "10.0.0.2".parse().unwrap();
        assert_eq!(
            at(json!({ "Status": "running", "Running": true })),
            Condition::Running { address, restarts: 2 }
        );
        assert_eq!(at(json!({ "Status": "exited", "ExitCode": 3 })), exited(3, false));
        assert_eq!(at(json!({ "Status": "exited", "ExitCode": 137, "OOMKilled": true })), exited(137, true));
        let waits = json!({ "Status": "restarting", "Running": true, "Restarting": true, "ExitCode": 1 });
        assert_eq!(at(waits), exited(1, false));
        assert_eq!(at(json!({ "Status": "removing" })), Condition::Gone);
    }
}
