//! The check of the ports of other nodes.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpStream},
    time::Duration,
};

use launchway_domain::{
    deployments::{Condition, DiscoveredObject, DiscoveredResource, LiveVersion},
    diagnostics::HealthReport,
    nodes::{Node, NodeId},
};

/// The timeout of a connection.
const CONNECT_TIME: Duration = Duration::from_secs(2);
/// The port at which managers take commands of nodes.
const MANAGERS: u16 = 2377;
/// The port by which nodes find each other.
const GOSSIP: u16 = 7946;

/// A port of another node that should accept connections.
#[derive(Debug, PartialEq, Eq)]
struct Probe {
    node: String,
    endpoint: SocketAddr,
    purpose: &'static str,
}

/// Checks that other nodes accept connections at the ports of Swarm, and at a port of a container.
pub(crate) fn check(
    nodes: &[Node],
    own: &NodeId,
    live: &[LiveVersion],
    containers: &[DiscoveredResource],
    report: &mut HealthReport,
) {
    let others = nodes.iter().filter(|node| node.is_ready && node.id != *own);
    let running = running_endpoints(live, containers);
    let probes: Vec<Probe> = others.flat_map(|node| probes(node, &running)).collect();
    report_probes(&probes, |endpoint| TcpStream::connect_timeout(&endpoint, CONNECT_TIME).map(drop), report);
}

/// Returns the addresses and ports of nodes at which containers of services are published.
fn running_endpoints(live: &[LiveVersion], containers: &[DiscoveredResource]) -> Vec<SocketAddr> {
    let address_of = |found: &DiscoveredResource| match &found.what {
        DiscoveredObject::Container { id, condition: Condition::Running { address, .. }, .. } => {
            Some((id.clone(), *address))
        }
        _ => None,
    };
    let running: Vec<_> = containers.iter().filter_map(address_of).collect();
    let recorded =
        live.iter().flat_map(|version| version.deployment.copies()).filter(|one| one.id.is_service());
    recorded
        .filter_map(|one| {
            let (_, address) = running.iter().find(|(id, _)| *id == one.id)?;
            Some(SocketAddr::new(*address, one.port.get()))
        })
        .collect()
}

/// Returns the ports of a node to be probed; one is enough for all that are published.
fn probes(node: &Node, running: &[SocketAddr]) -> Vec<Probe> {
    let Some(address) = node.address else { return Vec::new() };
    let probe = |address: IpAddr, port: u16, purpose| Probe {
        node: node.hostname.clone(),
        endpoint: SocketAddr::new(address, port),
        purpose,
    };
    let managers = node.is_manager().then(|| probe(address, MANAGERS, "managers of the Swarm"));
    let published = running.iter().find(|endpoint| endpoint.ip() == address);
    let published = published.map(|endpoint| probe(address, endpoint.port(), "LAUNCHWAY_NODE_PORTS"));
    [Some(probe(address, GOSSIP, "nodes of the Swarm")), managers, published].into_iter().flatten().collect()
}

fn report_probes(
    probes: &[Probe],
    connect: impl Fn(SocketAddr) -> io::Result<()>,
    report: &mut HealthReport,
) {
    const SUBJECT: &str = "ports of nodes";
    let mut silent = 0;
    for Probe { node, endpoint, purpose } in probes {
        if let Err(error) = connect(*endpoint) {
            silent += 1;
            let text = format!("`{node}` does not answer at {endpoint}/tcp ({purpose}): {error}");
            report.warn(SUBJECT, text, &format!("open port {} in the firewall of `{node}`", endpoint.port()));
        }
    }
    if silent == 0 && !probes.is_empty() {
        let number = probes.len();
        let text = format!("{number} of other nodes answer; 7946/udp and 4789/udp cannot be probed");
        report.ok(SUBJECT, text);
    }
}

#[cfg(test)]
mod tests {
    use launchway_domain::nodes::{NodeAvailability, NodeRole};

    use super::*;

    fn node(role: NodeRole) -> Node {
        Node {
            id: "b".parse().unwrap(),
            hostname: "server-2".to_owned(),
            address: Some([10, 0, 0, 12].into()),
            is_ready: true,
            availability: NodeAvailability::Active,
            role,
            is_prepared: true,
            version: "20.10".to_owned(),
        }
    }

    #[test]
    fn a_node_is_probed_at_the_ports_that_it_has() {
        let running: Vec<SocketAddr> = ["10.0.0.11:10000", "10.0.0.12:10001", "10.0.0.12:10002"]
            .into_iter()
            .map(|endpoint| endpoint.parse().unwrap())
            .collect();
        let ports = |role, running: &[SocketAddr]| -> Vec<u16> {
            probes(&node(role), running).iter().map(|probe| probe.endpoint.port()).collect()
        };
        assert_eq!(ports(NodeRole::Manager, &running), [7946, 2377, 10_001]);
        assert_eq!(ports(NodeRole::Worker, &running[..1]), [7946]);
    }

    #[test]
    fn a_silent_port_is_a_warning_that_names_the_node() {
        let mut report = HealthReport::default();
        let connect = |endpoint: SocketAddr| match endpoint.port() {
            MANAGERS => Err(io::Error::from(io::ErrorKind::TimedOut)),
            _ => Ok(()),
        };
        report_probes(&probes(&node(NodeRole::Leader), &[]), connect, &mut report);
        assert_eq!(
            report.to_string(),
            "warn  ports of nodes: `server-2` does not answer at 10.0.0.12:2377/tcp (managers of the Swarm): timed out\n      \
             hint: open port 2377 in the firewall of `server-2`\n"
        );
        let mut report = HealthReport::default();
        report_probes(&probes(&node(NodeRole::Worker), &[]), connect, &mut report);
        let expected =
            "ok    ports of nodes: 1 of other nodes answer; 7946/udp and 4789/udp cannot be probed\n";
        assert_eq!(report.to_string(), expected);
    }
}
