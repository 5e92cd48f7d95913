//! Ports of this machine that are forwarded to ports of containers.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
};

use launchway_domain::{
    applications::Port,
    deployments::StepError,
    extensions::{HostPort, PortKey},
};
use serde_json::Value;

/// A port of this machine that is forwarded to a port of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForwardedPort {
    /// The address and port of this machine.
    pub(crate) endpoint: SocketAddr,
    /// The port in the container.
    pub(crate) container: Port,
    /// True for UDP, false for TCP.
    pub(crate) is_udp: bool,
}

impl ForwardedPort {
    /// Returns a port of the loopback.
    pub(crate) fn on_loopback(port: &HostPort) -> Self {
        let endpoint = SocketAddr::from((Ipv4Addr::LOCALHOST, port.host.get()));
        Self { endpoint, container: port.container, is_udp: port.is_udp }
    }

    /// Returns a port at which front proxies of other machines reach a container.
    pub(crate) fn published(endpoint: SocketAddr, container: Port) -> Self {
        Self { endpoint, container, is_udp: false }
    }

    /// Returns the key under which the port of this machine exists once.
    pub(crate) fn key(&self) -> PortKey {
        (self.endpoint.port(), self.is_udp)
    }

    /// Returns whether an error says that another program uses the port of this machine.
    pub(crate) fn is_refused_by(&self, error: &StepError) -> bool {
        let endpoint = self.endpoint.to_string();
        matches!(error, StepError::Rejected(why) | StepError::Retryable(why) if why.contains(&endpoint))
    }

    /// Reads the ports that are forwarded to a container, as in `{"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "20000"}]}`. One without an
    /// address is on all of this machine.
    pub(crate) fn read_all(record: &Value) -> Vec<Self> {
        let Some(bound) = record.get("ports").and_then(Value::as_object) else { return Vec::new() };
        let of_port = |(port, bindings): (&String, &Value)| -> Vec<Self> {
            let (number, protocol) = port.split_once('/').unwrap_or((port, "tcp"));
            let Some(container) = number.parse::<u16>().ok().and_then(|port| port.try_into().ok()) else {
                return Vec::new();
            };
            let read = |binding: &Value| {
                let text = |key: &str| binding.get(key)?.as_str();
                let host: u16 = text("HostPort")?.parse().ok()?;
                let address = text("HostIp").and_then(|address| address.parse().ok());
                let address = address.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
                Some(Self { endpoint: SocketAddr::new(address, host), container, is_udp: protocol == "udp" })
            };
            bindings.as_array().into_iter().flatten().filter_map(read).collect()
        };
        bound.iter().flat_map(of_port).collect()
    }
}

/// The text for docker, as in `127.0.0.1:20000:80/tcp`.
impl fmt::Display for ForwardedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = if self.is_udp { "udp" } else { "tcp" };
        write!(f, "{}:{}/{protocol}", self.endpoint, self.container.get())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bindings_are_read_with_their_protocol() {
        let record = json!({"ports": {
            "80/tcp": [{"HostIp": "10.0.0.9", "HostPort": "20000"}],
            "53/udp": [{"HostIp": "", "HostPort": "20001"}],
            "9/tcp": null,
            "10/tcp": [{"HostIp": "127.0.0.1", "HostPort": ""}],
        }});
        let mut read: Vec<String> =
            ForwardedPort::read_all(&record).iter().map(ForwardedPort::to_string).collect();
        read.sort();
        assert_eq!(read, ["0.0.0.0:20001:53/udp", "10.0.0.9:20000:80/tcp"]);
        assert_eq!(ForwardedPort::read_all(&json!({"ports": null})), []);
    }

    #[test]
    fn only_the_port_that_an_error_names_is_refused() {
        let binding =
            |endpoint: &str| ForwardedPort::published(endpoint.parse().unwrap(), 80_u16.try_into().unwrap());
        let error =
            StepError::Rejected("Bind for 10.0.0.9:17500 failed: port is already allocated".to_owned());
        assert!(binding("10.0.0.9:17500").is_refused_by(&error));
        assert!(!binding("10.0.0.9:17501").is_refused_by(&error));
    }
}
