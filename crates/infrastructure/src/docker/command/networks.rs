//! The commands about networks.

use ipnet::Ipv4Net;
use serde_json::Value;

use super::{Docker, answer, existing_records, unreadable, with_labels};
use crate::docker::{complaints::Failure, labels::Label};

/// A network, by the engine's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::docker) struct NetworkId(String);

impl NetworkId {
    pub(in crate::docker) fn parse(text: &str) -> Option<Self> {
        let id = text.trim();
        let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| Self(id.to_owned()))
    }

    pub(in crate::docker) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Docker {
    /// The networks with all of these labels; every network without labels.
    pub(in crate::docker) async fn networks(&self, labels: &[Label]) -> Result<Vec<NetworkId>, Failure> {
        let call = self.call(&["network", "ls", "--quiet", "--no-trunc"]);
        let listed = answer(with_labels(call, labels)).await?;
        let ids = listed.lines().filter(|line| !line.trim().is_empty()).map(NetworkId::parse);
        ids.collect::<Option<Vec<_>>>().ok_or_else(unreadable)
    }

    /// Whose and how old each network is that is still there, and its subnets.
    pub(in crate::docker) async fn inspect_networks(
        &self,
        networks: &[NetworkId],
    ) -> Result<Vec<Value>, Failure> {
        const FORMAT: &str = r#"{"id":{{json .Id}},"name":{{json .Name}},"created":{{json .Created}},"labels":{{json .Labels}},"subnets":{{json .IPAM.Config}}}"#;
        if networks.is_empty() {
            return Ok(Vec::new());
        }
        let call = self.call(&["network", "inspect", "--format", FORMAT]);
        existing_records(call.args(networks.iter().map(NetworkId::as_str))).await
    }

    pub(in crate::docker) async fn create_network(
        &self,
        name: &str,
        subnet: Ipv4Net,
        labels: &[Label],
    ) -> Result<NetworkId, Failure> {
        let subnet = subnet.to_string();
        let mut call = self.call(&["network", "create", "--driver", "bridge", "--subnet", &subnet]);
        for label in labels {
            call = call.args(["--label", label.as_str()]);
        }
        let id = answer(call.arg(name)).await?;
        NetworkId::parse(&id).ok_or_else(unreadable)
    }

    /// Removes the network with a name of our own making.
    pub(in crate::docker) async fn remove_network_named(&self, name: &str) -> Result<(), Failure> {
        answer(self.call(&["network", "rm", name])).await.map(drop)
    }

    pub(in crate::docker) async fn remove_network(&self, network: &NetworkId) -> Result<(), Failure> {
        answer(self.call(&["network", "rm", network.as_str()])).await.map(drop)
    }
}
