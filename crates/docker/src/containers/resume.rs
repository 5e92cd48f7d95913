//! Starts existing containers that do not run.

use launchway_domain::deployments::{Condition, Container, ContainerId, Owner, StepError};
use serde_json::Value;

use super::{
    gone,
    record::{Endpoint, condition, endpoints, own_endpoint, read},
};
use crate::{
    DockerEngine, NetworkDriver,
    addresses::Assignment,
    command::NetworkId,
    errors::EngineError,
    labels::{self, Label, Role},
    networks::Network,
};

/// The most steps from any condition to a running container.
const MOST_STEPS: usize = 6;
/// Parts of error messages about remains that a killed engine has left behind. They stay until the
/// container is removed.
const LEFTOVERS: [&str; 2] = ["failed to start shim", "already exists"];

impl DockerEngine {
    /// Starts a container, and before and after it the other containers of its composition that should run,
    /// in the order of starting.
    pub(super) async fn resume_container(&self, container: &ContainerId) -> Result<Container, StepError> {
        let group = self.group(container).await?;
        if group.is_empty() {
            self.bring_up(container).await?;
        }
        for member in group.iter().filter(|member| member.stays_up() || member.id == *container) {
            self.bring_up(&member.id).await.map_err(|error| match error {
                StepError::Rejected(why) if member.id != *container => StepError::Rejected(format!(
                    "the service `{}` cannot be started: {why}",
                    member.service()
                )),
                error => error,
            })?;
        }
        self.started(container).await
    }

    /// Returns the state of the container after a start.
    pub(super) async fn started(&self, container: &ContainerId) -> Result<Container, StepError> {
        let record = self.record(container).await?.ok_or_else(gone)?;
        if let Some(container) = read(&record, None) {
            return Ok(container);
        }
        let network = endpoints(&record).values().find_map(Endpoint::network);
        let network = self.read_networks(network.as_slice()).await?.pop();
        read(&record, network.as_ref()).ok_or_else(gone)
    }

    async fn bring_up(&self, container: &ContainerId) -> Result<(), StepError> {
        let mut is_mended = false;
        for _ in 0..MOST_STEPS {
            let record = self.record(container).await?.ok_or_else(gone)?;
            match condition(&record) {
                Condition::Gone => return Err(gone()),
                Condition::Running { .. } | Condition::Restarting(_) => return Ok(()),
                Condition::Paused => {
                    let unpaused = self.docker.unpause(container).await;
                    // Another process may have done it at the same time.
                    unpaused
                        .or_else(|failure| if failure.says("is not paused") { Ok(()) } else { Err(failure) })
                        .map_err(cannot_be_started)?;
                }
                Condition::Detached => self.attach(container, &record).await?,
                Condition::Created | Condition::Exited(_) => {
                    self.attach(container, &record).await?;
                    match self.docker.start(container).await {
                        Ok(()) => return Ok(()),
                        // An engine that was killed may have kept the endpoint of the container's last run.
                        Err(failure) if is_about_an_endpoint(&failure) && !is_mended => {
                            is_mended = true;
                            self.detach(container, &record).await?;
                        }
                        Err(failure) => return Err(cannot_be_started(failure)),
                    }
                }
            }
        }
        Err(StepError::Retryable("the container changed while it was started".to_owned()))
    }

    /// Connects a container to its network if it is in none of ours, with the address that it was created
    /// with. A container that can be routed to gets a static address if it has none yet, and loses its
    /// connections for that.
    pub(super) async fn attach(&self, container: &ContainerId, record: &Value) -> Result<(), StepError> {
        let labels = record.get("labels").unwrap_or(&Value::Null);
        let role = Role::read(labels);
        let all = endpoints(record);
        let endpoint = own_endpoint(labels, &all);
        let is_named_by_routes = role.as_ref().is_none_or(|role| role.is_web);
        // The addresses of an overlay are not ours to assign.
        let keeps_address = !is_named_by_routes || self.options.network_driver == NetworkDriver::Overlay;
        if endpoint.is_some_and(|endpoint| endpoint.assigned().is_some() || keeps_address) {
            return Ok(());
        }
        // Networks of others are not ours to change.
        let Some(owner) = labels::owner(labels) else { return Ok(()) };
        let network = self.existing_network(&owner, role.is_some()).await?.ok_or_else(network_is_gone)?;
        // An image may come with any label, but only those of a composition are always ours.
        let mut aliases = if role.is_some() { labels::aliases(labels) } else { Vec::new() };
        aliases.extend(role.iter().map(|role| role.service.to_string()));
        let assignment = match (labels::address(labels), is_named_by_routes) {
            (Some(own), _) => Some(self.hold(&network, own)?),
            (None, true) => self.assign(&network, owner.organization, &[]).await?,
            (None, false) => None,
        };
        if let Some(endpoint) = endpoint {
            aliases.extend(endpoint.aliases().iter().filter(|alias| is_a_name(alias, container)).cloned());
            self.detach(container, record).await?;
        }
        aliases.sort();
        aliases.dedup();
        let address = assignment.as_ref().map(|assignment| assignment.address);
        self.docker.connect(&network.id, container, address, &aliases).await.map_err(cannot_be_started)
    }

    fn hold(&self, network: &Network, address: std::net::Ipv4Addr) -> Result<Assignment, StepError> {
        if !network.contains(address) {
            return Err(StepError::Rejected("the network of the container was recreated".to_owned()));
        }
        self.addresses.hold(network.id.as_str(), address).ok_or_else(address_is_taken)
    }

    /// Disconnects a container from our networks, with the engine's records of its last run.
    async fn detach(&self, container: &ContainerId, record: &Value) -> Result<(), StepError> {
        let labels = record.get("labels").unwrap_or(&Value::Null);
        let all = endpoints(record);
        let Some(endpoint) = own_endpoint(labels, &all) else { return Ok(()) };
        let name = all.iter().find(|(_, other)| *other == endpoint).map(|(name, _)| name.as_str());
        let network = endpoint.network().as_ref().map(NetworkId::as_str).map(str::to_owned);
        let Some(network) = network.or(name.map(str::to_owned)) else { return Ok(()) };
        match self.docker.disconnect(&network, container).await {
            Err(failure) if failure.says("is not connected to") => Ok(()),
            Err(failure) => Err(cannot_be_started(failure)),
            Ok(()) => Ok(()),
        }
    }

    /// Returns the network that a container was created in, if it exists.
    async fn existing_network(&self, owner: &Owner, is_composed: bool) -> Result<Option<Network>, StepError> {
        let instance = self.options.instance;
        let labels = match is_composed {
            true => labels::of_image(instance, owner),
            false => vec![Label::of_instance(instance), Label::of_organization(owner.organization)],
        };
        self.oldest_network(&labels).await
    }
}

/// The engine also adds the prefix of a container's id as an alias.
fn is_a_name(alias: &str, container: &ContainerId) -> bool {
    !container.as_str().starts_with(alias)
}

fn is_about_an_endpoint(failure: &EngineError) -> bool {
    failure.is_address_taken() || failure.says("endpoint with name")
}

fn address_is_taken() -> StepError {
    StepError::Rejected("the address of the container is used by another container".to_owned())
}

fn network_is_gone() -> StepError {
    StepError::Rejected("the network of the container is gone".to_owned())
}

/// Rejects a container that cannot be repaired, so that another is created.
fn cannot_be_started(failure: EngineError) -> StepError {
    if failure.is_about_a_missing_network() {
        network_is_gone()
    } else if failure.says("No such image") {
        StepError::Rejected("the image of the container is gone".to_owned())
    } else if failure.is_gone() {
        gone()
    } else if failure.is_address_taken() {
        address_is_taken()
    } else if LEFTOVERS.iter().any(|words| failure.says(words)) {
        failure.or_refused()
    } else {
        failure.or_fault()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_mended_is_refused() {
        for (error_text, told) in [
            ("Error response from daemon: network 0a1b not found", "the network of the container is gone"),
            ("Error response from daemon: No such container: x", "the container is gone"),
            ("Error response from daemon: No such image: x", "the image of the container is gone"),
            (
                "Error response from daemon: Address already in use",
                "the address of the container is used by another container",
            ),
            ("Error response from daemon: task 62d2: already exists", "task 62d2: already exists"),
            (
                "Error response from daemon: failed to start shim: mkdir /x: file exists: unknown",
                "failed to start shim: mkdir /x: file exists",
            ),
        ] {
            let refused = cannot_be_started(EngineError::Message(error_text.to_owned()));
            assert_eq!(refused, StepError::Rejected(told.to_owned()), "{error_text}");
        }
        let full = EngineError::Message("Error response from daemon: no space left on device".to_owned());
        assert!(matches!(cannot_be_started(full), StepError::Retryable(_)));
    }
}
