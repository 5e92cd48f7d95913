//! The engine's record of a container.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

use launchway_domain::deployments::{Condition, Container, Exit};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    command::NetworkId,
    labels::{self, LabelSet},
    networks::Network,
};

/// A container's endpoint in a network. It stays, without an address, while the container is stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Endpoint {
    #[serde(rename = "IPAddress")]
    address: String,
    #[serde(rename = "IPAMConfig")]
    configuration: Option<EndpointConfiguration>,
    #[serde(rename = "NetworkID")]
    network: String,
    #[serde(rename = "Aliases")]
    aliases: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct EndpointConfiguration {
    #[serde(rename = "IPv4Address")]
    address: String,
}

/// The networks of a container, by their names.
pub(crate) type Endpoints = BTreeMap<String, Endpoint>;

impl Endpoint {
    /// Returns the address that the container has, or had when it was last inspected.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.address.parse().ok()
    }

    /// Returns the static address, which it gets at every start.
    pub(crate) fn assigned(&self) -> Option<Ipv4Addr> {
        self.configuration.as_ref()?.address.parse().ok()
    }

    pub(crate) fn network(&self) -> Option<NetworkId> {
        NetworkId::parse(&self.network)
    }

    pub(crate) fn aliases(&self) -> &[String] {
        self.aliases.as_deref().unwrap_or_default()
    }
}

/// Returns the networks in a record.
pub(crate) fn endpoints(record: &Value) -> Endpoints {
    let networks = record.get("networks").filter(|networks| networks.is_object());
    networks.and_then(|networks| Endpoints::deserialize(networks).ok()).unwrap_or_default()
}

/// Returns the endpoint in the network that we created a container in, if it is there. A user may have
/// connected the container to other networks as well, or instead.
pub(crate) fn own_endpoint<'a>(labels: &impl LabelSet, endpoints: &'a Endpoints) -> Option<&'a Endpoint> {
    match labels::address(labels) {
        Some(own) => endpoints.values().find(|endpoint| endpoint.assigned() == Some(own)),
        // It was made by an earlier version.
        None => endpoints
            .iter()
            .find(|(name, _)| name.starts_with("launchway-"))
            .or(endpoints.iter().next())
            .map(|(_, endpoint)| endpoint),
    }
}

/// Returns a started container; `None` when docker's record of it cannot be read.
pub(crate) fn read(record: &Value, network: Option<&Network>) -> Option<Container> {
    let endpoints = endpoints(record);
    let endpoint = own_endpoint(record.get("labels").unwrap_or(&Value::Null), &endpoints);
    let address = endpoint.and_then(|endpoint| endpoint.assigned().map(IpAddr::V4).or(endpoint.address()));
    Some(Container {
        id: record.get("id")?.as_str()?.parse().ok()?,
        name: record.get("name")?.as_str()?.trim_start_matches('/').to_owned(),
        address: address.or(network.map(Network::nobody))?,
        port: None,
    })
}

/// Returns the condition of a container from docker's record of it.
pub(crate) fn condition(record: &Value) -> Condition {
    let state = record.get("state").unwrap_or(&Value::Null);
    let is = |key: &str| state.get(key).and_then(Value::as_bool).unwrap_or_default();
    let number = |value: Option<&Value>| value.and_then(Value::as_i64).unwrap_or_default();
    let restarts = u32::try_from(number(record.get("restarts"))).unwrap_or_default();
    if matches!(state.get("Status").and_then(Value::as_str), Some("removing" | "dead")) {
        return Condition::Gone;
    }
    let exit = Exit {
        code: i32::try_from(number(state.get("ExitCode"))).unwrap_or(i32::MAX),
        out_of_memory: is("OOMKilled"),
        restarts,
    };
    // Docker reports a container as running that waits for its next start, or that is paused.
    if is("Restarting") {
        return Condition::Restarting(exit);
    }
    if is("Paused") {
        return Condition::Paused;
    }
    let address = || {
        let endpoints = endpoints(record);
        own_endpoint(record.get("labels").unwrap_or(&Value::Null), &endpoints)?.address()
    };
    match (is("Running"), state.get("Status").and_then(Value::as_str)) {
        (true, _) => {
            address().map_or(Condition::Detached, |address| Condition::Running { address, restarts })
        }
        (false, Some("created")) => Condition::Created,
        (false, _) => Condition::Exited(exit),
    }
}

/// Returns whether the engine restarts the container when it ends.
pub(crate) fn is_kept(record: &Value) -> bool {
    record.get("policy").and_then(Value::as_str).is_some_and(|policy| !matches!(policy, "" | "no"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_runs_is_stopped_or_is_gone() {
        let networks = json!({ "n": { "IPAddress": "10.0.0.2" } });
        let at = |state: Value| condition(&json!({ "state": state, "restarts": 2, "networks": networks }));
        let exit = |code, out_of_memory| Exit { code, out_of_memory, restarts: 2 };
        let exited = |code, out_of_memory| Condition::Exited(exit(code, out_of_memory));
        let address = "10.0.0.2".parse().unwrap();
        assert_eq!(
            at(json!({ "Status": "running", "Running": true })),
            Condition::Running { address, restarts: 2 }
        );
        assert_eq!(at(json!({ "Status": "exited", "ExitCode": 3 })), exited(3, false));
        assert_eq!(at(json!({ "Status": "exited", "ExitCode": 137, "OOMKilled": true })), exited(137, true));
        let waits = json!({ "Status": "restarting", "Running": true, "Restarting": true, "ExitCode": 1 });
        assert_eq!(at(waits), Condition::Restarting(exit(1, false)));
        assert_eq!(at(json!({ "Status": "paused", "Running": true, "Paused": true })), Condition::Paused);
        assert_eq!(at(json!({ "Status": "created" })), Condition::Created);
        let nowhere = json!({ "state": { "Status": "running", "Running": true }, "networks": {} });
        assert_eq!(condition(&nowhere), Condition::Detached);
        assert_eq!(at(json!({ "Status": "removing" })), Condition::Gone);
    }

    #[test]
    fn the_address_is_that_of_our_network() {
        let running = |labels: Value, networks: Value| {
            let state = json!({ "Status": "running", "Running": true });
            condition(&json!({ "state": state, "labels": labels, "networks": networks }))
        };
        let endpoint =
            |address: &str| json!({ "IPAddress": address, "IPAMConfig": { "IPv4Address": address } });
        let at = |address: &str| Condition::Running { address: address.parse().unwrap(), restarts: 0 };
        let both = json!({ "a": endpoint("172.18.0.2"), "launchway-1": endpoint("10.0.0.2") });
        assert_eq!(running(json!({ "launchway.address": "10.0.0.2" }), both.clone()), at("10.0.0.2"));
        assert_eq!(running(json!({}), both), at("10.0.0.2"));
        let foreign = json!({ "a": endpoint("172.18.0.2") });
        assert_eq!(running(json!({ "launchway.address": "10.0.0.2" }), foreign), Condition::Detached);
        let unassigned = json!({ "a": { "IPAddress": "10.0.0.3", "IPAMConfig": null, "Aliases": null } });
        assert_eq!(running(Value::Null, unassigned), at("10.0.0.3"));
    }

    #[test]
    fn a_stopped_container_is_listed_with_its_assigned_address() {
        let record = json!({
            "id": "a".repeat(64),
            "name": "/launchway-1",
            "labels": { "launchway.address": "10.0.0.7" },
            "networks": { "n": { "IPAddress": "", "IPAMConfig": { "IPv4Address": "10.0.0.7" } } },
        });
        assert_eq!(read(&record, None).unwrap().address, IpAddr::from([10, 0, 0, 7]));
    }
}
