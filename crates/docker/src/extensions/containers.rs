//! Containers of extensions that belong to no composition.

use std::{collections::HashSet, sync::Arc, time::Duration};

use launchway_domain::{
    applications::ImageRef,
    deployments::{Condition, ContainerId, Exit, Output, StepError},
    extensions::{ContainerSpec, ObjectName, Run},
};

use super::{ExtensionObjects, Made, done_or_gone, names};
use crate::{
    command::{ContainerOptions, ImageId, MountedVolume, NewContainer, Program, RetryBudget},
    containers::{ContainerGuard, MOST_ADDRESSES, condition},
    environment::ContainerEnvironment,
    errors::EngineError,
    forwarded_ports::ForwardedPort,
    labels::{Label, Origin},
    networks::Network,
    published::MOST_PORTS,
};

/// The timeout of a container that a step waits for. The step itself times out before.
const LONGEST: Duration = Duration::from_secs(60 * 60);

impl ExtensionObjects {
    /// Pulls an image.
    pub async fn pull(&self, image: &ImageRef, output: &Arc<dyn Output>) -> Result<(), StepError> {
        self.engine.obtain_unmarked(image, output).await.map(drop)
    }

    /// Runs a container: in place of the one that has its name, or to its end. Returns how it ended.
    pub async fn run(
        &self,
        run: &Run,
        order: i32,
        spec: &ContainerSpec,
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError> {
        let environment = ContainerEnvironment::of(&spec.environment)?;
        let whose = self.whose_run(run);
        let name = whose.named(&spec.name);
        let wanted = spec.ports.iter().map(|port| (name.clone(), *port)).collect();
        let ports = self.hold_ports(run, wanted, &output).await?;
        if spec.is_detached {
            let is_replaced = |made: &Made| made.name == name;
            self.require_free_names(run.organization, &[spec.name.as_str()], is_replaced).await?;
        }
        let image = self.engine.obtain_unmarked(&spec.image, &output).await?;
        let volumes: Vec<MountedVolume> = spec
            .volumes
            .iter()
            .map(|mount| MountedVolume {
                name: whose.named(&mount.volume),
                path: mount.path.clone(),
                is_read_only: mount.is_read_only,
            })
            .collect();
        let wanted: Vec<String> = volumes.iter().map(|volume| volume.name.clone()).collect();
        self.make_volumes(&whose, &wanted).await?;
        if spec.is_detached {
            self.set_aside(run, order, |made| made.name == name).await?;
        }
        let mut new = New { run, order, spec, image, environment, volumes, ports: Vec::new() };
        let mut refused = HashSet::new();
        loop {
            let published = match spec.is_detached {
                true => self.publish(run, spec.name.as_str(), &refused).await?,
                false => Vec::new(),
            };
            new.ports =
                ports.iter().map(ForwardedPort::on_loopback).chain(published.iter().copied()).collect();
            match self.run_once(&new, &name, &output).await {
                Err(error)
                    if published.iter().any(|port| port.is_refused_by(&error))
                        && refused.len() < MOST_PORTS =>
                {
                    refused.extend(published.iter().map(|port| port.endpoint.port()));
                }
                done => return done,
            }
        }
    }

    /// Runs a container, of which nothing is left if that fails. Returns how it ended.
    async fn run_once(&self, new: &New<'_>, name: &str, output: &Arc<dyn Output>) -> Result<i32, StepError> {
        let unfinished = ContainerGuard::new(&self.engine.docker);
        let call = unfinished.label();
        let done = match new.spec.is_detached {
            true => self.make(new, name, call).await.map(|_| 0),
            // It is beside the one that stays, if there is one.
            false => {
                let beside = format!("{name}.once.{}", call.value());
                self.run_to_the_end(new, &beside, call, Arc::clone(output)).await
            }
        };
        unfinished.end(new.spec.is_detached && done.is_ok()).await;
        done
    }

    /// Starts a stopped container.
    pub async fn start(&self, run: &Run, name: &ObjectName) -> Result<(), StepError> {
        let made = self.named(run, name).await?.ok_or_else(|| unknown(name))?;
        self.engine.docker.start(&made.id).await.map_err(port_is_taken)
    }

    /// Stops a container, without removing it.
    pub async fn stop(&self, run: &Run, name: &ObjectName) -> Result<(), StepError> {
        let made = self.named(run, name).await?.ok_or_else(|| unknown(name))?;
        done_or_gone(self.engine.docker.stop(&made.id).await)
    }

    /// Returns whether a container runs; `None` when there is none.
    pub async fn is_running(&self, run: &Run, name: &ObjectName) -> Result<Option<bool>, StepError> {
        Ok(self.named(run, name).await?.map(|made| made.is_running))
    }

    /// Sets a container aside, if there is one, without a replacement.
    pub async fn put_away(&self, run: &Run, order: i32, name: &ObjectName) -> Result<(), StepError> {
        let name = self.whose_run(run).named(name);
        self.set_aside(run, order, |made| made.name == name).await
    }

    /// Creates a container in its organization's network. One that stays is started; any other is started
    /// by the caller, which attaches to its output.
    async fn make(
        &self,
        new: &New<'_>,
        name: &str,
        call: Label,
    ) -> Result<(ContainerId, Network), StepError> {
        let Run { organization, reserved, .. } = new.run;
        let (organization, docker) = (*organization, &self.engine.docker);
        let mut retries = RetryBudget::new();
        // Held to the end, so that none of them is tried again.
        let mut refused = Vec::new();
        loop {
            let network = self.engine.network(organization, reserved).await?;
            // The engine has its own part of the network for containers that cannot be routed to.
            let assignment = match !new.spec.is_detached && network.is_divided() {
                true => None,
                false => self.engine.assign(&network, organization, reserved).await?,
            };
            let address = assignment.as_ref().map(|assignment| assignment.address);
            let mut labels = self.labels(new, call.clone());
            labels.push(Label::of_address(address));
            let container = NewContainer {
                name,
                labels: &labels,
                limits: &self.engine.options.limits,
                environment: &new.environment,
                address,
                program: Program::Words(&new.image, &new.spec.command),
                surroundings: ContainerOptions {
                    is_kept: new.spec.is_detached,
                    alias: new.spec.is_detached.then_some(new.spec.name.as_str()),
                    volumes: &new.volumes,
                    ports: &new.ports,
                },
            };
            let made = match new.spec.is_detached {
                true => docker.run(&container, &network.id).await,
                false => docker.create(&container, &network.id).await,
            };
            self.engine.has_lost(organization, &network, &made).await;
            match made {
                Ok(id) => return Ok((id, network)),
                Err(failure)
                    if failure.is_address_taken() && refused.len() < MOST_ADDRESSES
                        || retries.should_retry(&failure).await =>
                {
                    refused.extend(assignment);
                    // It may have been created but not started.
                    let found = docker.containers(std::slice::from_ref(&call)).await;
                    docker
                        .remove(&found.map_err(EngineError::or_fault)?)
                        .await
                        .map_err(EngineError::or_fault)?;
                }
                Err(failure) => return Err(port_is_taken(failure)),
            }
        }
    }

    async fn run_to_the_end(
        &self,
        new: &New<'_>,
        name: &str,
        call: Label,
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError> {
        let (id, _network) = self.make(new, name, call).await?;
        let Err(failure) = self.engine.docker.start_attached(&id, LONGEST, output).await else {
            return Ok(0);
        };
        // Docker exits with the code of the program or of its own error; only the container's record shows
        // which.
        let record = self.engine.record(&id).await?;
        let was_started = record.as_ref().is_some_and(|record| {
            let state = |key: &str| record.get("state")?.get(key)?.as_str();
            state("Error") == Some("") && state("Status") == Some("exited")
        });
        match record.as_ref().map(condition) {
            Some(Condition::Exited(Exit { code, .. })) if was_started => Ok(code),
            _ => Err(port_is_taken(failure)),
        }
    }

    fn labels(&self, new: &New<'_>, call: Label) -> Vec<Label> {
        let said = new.spec.labels.iter().map(|(name, value)| Label::of_definition(name, value));
        let origin = Origin {
            execution: new.run.execution.to_string(),
            step: new.order.to_string(),
            project: String::new(),
            // A container that does not stay has no alias.
            alias: if new.spec.is_detached { new.spec.name.to_string() } else { String::new() },
        };
        // Of two labels with one name the last counts.
        let ours = self.whose_run(new.run).marks().into_iter().chain(origin.labels());
        said.chain(ours).chain([call]).collect()
    }
}

/// A container to be created.
struct New<'a> {
    run: &'a Run,
    order: i32,
    spec: &'a ContainerSpec,
    image: ImageId,
    environment: ContainerEnvironment,
    volumes: Vec<MountedVolume>,
    ports: Vec<ForwardedPort>,
}

fn unknown(name: &ObjectName) -> StepError {
    StepError::Rejected(format!("this extension has created no container `{name}` for this organization"))
}

/// A port that another program uses is a retryable error.
pub(super) fn port_is_taken(failure: EngineError) -> StepError {
    let is_taken =
        ["port is already allocated", "address already in use"].iter().any(|words| failure.says(words));
    if is_taken { failure.or_refused() } else { failure.or_fault() }
}

/// Returns whether a container belongs to a composition, and is not set aside.
pub(super) fn is_in_project(made: &Made, project: &ObjectName) -> bool {
    made.origin.project == project.as_str() && names::aside(&made.name).is_none()
}
