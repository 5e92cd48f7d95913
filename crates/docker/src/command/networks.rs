//! The commands about networks.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use launchway_domain::deployments::ContainerId;
use serde_json::Value;

use super::{Docker, unreadable, with_labels};
use crate::{addresses::AddressRange, errors::EngineError, labels::Label};

/// The length of a Swarm id, in base 36.
const SWARM_ID: usize = 25;

/// A network, by the engine's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetworkId(String);

impl NetworkId {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let id = text.trim();
        let is_plain = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_of_swarm =
            id.len() == SWARM_ID && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
        (is_plain || is_of_swarm).then(|| Self(id.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Docker {
    /// Returns the networks with all of these labels; every network without labels.
    pub(crate) async fn networks(&self, labels: &[Label]) -> Result<Vec<NetworkId>, EngineError> {
        let call = self.call(&["network", "ls", "--quiet", "--no-trunc"]);
        let listed = self.answer(with_labels(call, labels)).await?;
        let ids = listed.lines().filter(|line| !line.trim().is_empty()).map(NetworkId::parse);
        ids.collect::<Option<Vec<_>>>().ok_or_else(unreadable)
    }

    /// Returns the labels, the age and the subnets of each network that still exists.
    pub(crate) async fn inspect_networks(&self, networks: &[NetworkId]) -> Result<Vec<Value>, EngineError> {
        const FORMAT: &str = r#"{"id":{{json .Id}},"name":{{json .Name}},"driver":{{json .Driver}},"created":{{json .Created}},"labels":{{json .Labels}},"subnets":{{json .IPAM.Config}}}"#;
        if networks.is_empty() {
            return Ok(Vec::new());
        }
        let call = self.call(&["network", "inspect", "--format", FORMAT]);
        self.existing_records(call.args(networks.iter().map(NetworkId::as_str))).await
    }

    pub(crate) async fn create_network(
        &self,
        name: &str,
        range: AddressRange,
        labels: &[Label],
    ) -> Result<NetworkId, EngineError> {
        let mut call = self.call(&["network", "create", "--driver", "bridge"]);
        call = call.args(["--subnet", &range.subnet.to_string()]);
        if let Some(gateway) = range.gateway {
            call = call.args(["--gateway", &gateway.to_string()]);
        }
        if let Some(engine_range) = range.engine_range {
            call = call.args(["--ip-range", &engine_range.to_string()]);
        }
        for label in labels {
            call = call.args(["--label", label.as_str()]);
        }
        let id = self.answer(call.arg(name)).await?;
        NetworkId::parse(&id).ok_or_else(unreadable)
    }

    /// Creates an overlay that containers of any machine of the Swarm may join, those of builds included. Its name is unique
    /// in the Swarm.
    pub(crate) async fn create_overlay(
        &self,
        name: &str,
        subnet: Ipv4Net,
        labels: &[Label],
    ) -> Result<NetworkId, EngineError> {
        let mut call = self.call(&["network", "create", "--driver", "overlay", "--attachable"]);
        call = call.args(["--subnet", &subnet.to_string()]);
        for label in labels {
            call = call.args(["--label", label.as_str()]);
        }
        let id = self.answer_of_leader(call.arg(name)).await?;
        NetworkId::parse(&id).ok_or_else(unreadable)
    }

    /// Connects a container to a network, at an address of the engine's choice if there is none.
    pub(crate) async fn connect(
        &self,
        network: &NetworkId,
        container: &ContainerId,
        address: Option<Ipv4Addr>,
        aliases: &[String],
    ) -> Result<(), EngineError> {
        let mut call = self.call(&["network", "connect"]);
        if let Some(address) = address {
            call = call.args(["--ip", &address.to_string()]);
        }
        for alias in aliases {
            call = call.arg(format!("--alias={alias}"));
        }
        self.answer(call.args([network.as_str(), container.as_str()])).await.map(drop)
    }

    /// Disconnects a container from a network, with the engine's record of it.
    pub(crate) async fn disconnect(&self, network: &str, container: &ContainerId) -> Result<(), EngineError> {
        let call = self.call(&["network", "disconnect", "--force", network, container.as_str()]);
        self.answer(call).await.map(drop)
    }

    /// Removes the network with a name of our own making.
    pub(crate) async fn remove_network_named(&self, name: &str) -> Result<(), EngineError> {
        self.answer(self.call(&["network", "rm", name])).await.map(drop)
    }

    pub(crate) async fn remove_network(&self, network: &NetworkId) -> Result<(), EngineError> {
        self.answer(self.call(&["network", "rm", network.as_str()])).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_ids_of_the_engine_and_of_swarm() {
        for id in
            ["0".repeat(64).as_str(), "abcdef0123456789".repeat(4).as_str(), "qk9ltvpzp6r2r8lz1sm1imk1x"]
        {
            assert_eq!(NetworkId::parse(&format!("{id}\n")).unwrap().as_str(), id);
        }
        for text in ["", "bridge", "--all", "qk9ltvpzp6r2r8lz1sm1imk1X", "g".repeat(64).as_str()] {
            assert!(NetworkId::parse(text).is_none(), "{text}");
        }
    }
}
