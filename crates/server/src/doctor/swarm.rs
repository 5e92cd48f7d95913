//! Checks of a Docker Swarm.

mod ports;

use std::{
    net::{IpAddr, TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use launchway_domain::{
    deployments::{DeploymentRepository as _, DiscoveredResource},
    diagnostics::HealthReport,
    nodes::{Node, NodeAvailability, NodeInventory},
};
use launchway_infrastructure::{database::Database, docker::swarm::SwarmEngine, registry::HttpRegistry};

use super::describe;
use crate::{
    engine::refusal,
    node::{self, PacketFilter},
};

/// The timeout of a connection to the registry.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Checks that this machine can start containers on the Swarm.
pub(super) async fn check(registry: &HttpRegistry, swarm: &SwarmEngine, report: &mut HealthReport) {
    match swarm.role().await {
        None => return,
        Some(role) => match refusal(role) {
            Some(reason) => {
                return report.fail("swarm", reason.to_owned(), "see docs/several-machines.md");
            }
            None => report.ok("swarm", "this machine is a manager".to_owned()),
        },
    }
    let nodes = match swarm.nodes().await {
        Ok(nodes) => nodes,
        Err(error) => {
            report.fail("nodes", describe(&error), "");
            Vec::new()
        }
    };
    if !nodes.is_empty() {
        check_nodes(&nodes, report);
    }
    check_registry(registry, report).await;
    check_machine(&nodes, report);
}

fn check_nodes(nodes: &[Node], report: &mut HealthReport) {
    for node in nodes.iter().filter(|node| !node.is_ready) {
        let hint = "if it does not come back, remove it with `docker node rm --force`";
        report.warn("nodes", format!("`{}` does not answer", node.hostname), hint);
    }
    for node in nodes.iter().filter(|node| node.is_manager() && node.availability != NodeAvailability::Active)
    {
        let text = format!(
            "`{}` is a manager and not active, so that builds and commands fail there",
            node.hostname
        );
        report.warn(
            "nodes",
            text,
            "run `docker node update --availability active` for it, or run no server there",
        );
    }
    match nodes.iter().filter(|node| node.takes_containers()).count() {
        0 => report.fail(
            "nodes",
            "no node takes applications".to_owned(),
            "prepare one with `launchway node prepare`, and run `launchway node activate` for it",
        ),
        number => report.ok("nodes", format!("{number} of {} take applications", nodes.len())),
    }
}

/// Checks that something listens there, and that it deletes images: whether it takes some is known only after a push.
async fn check_registry(registry: &HttpRegistry, report: &mut HealthReport) {
    let host = registry.host();
    let address = if host.contains(':') { host.to_owned() } else { format!("{host}:443") };
    let connected = address.to_socket_addrs().and_then(|mut addresses| {
        let address = addresses.next().ok_or_else(|| std::io::Error::other("the name has no address"))?;
        TcpStream::connect_timeout(&address, CONNECT_TIME)
    });
    match connected {
        Ok(_) => report.ok("registry", format!("`{host}` accepts connections")),
        Err(error) => {
            let hint = "start it: deployments fail until then, and what runs keeps running";
            return report.fail("registry", format!("`{host}` cannot be reached: {error}"), hint);
        }
    }
    match registry.require_deletion().await {
        Ok(()) => report.ok("registry", format!("`{host}` deletes images that are no longer needed")),
        Err(error) => report.warn(
            "registry",
            describe(&error),
            "until then, images of old versions stay there: nothing else depends on it",
        ),
    }
}

/// Checks that this machine reaches the ports of the others.
pub(super) async fn check_ports(
    nodes: &dyn NodeInventory,
    database: &Database,
    containers: &[DiscoveredResource],
    report: &mut HealthReport,
) {
    // Other checks report a Swarm or a database that does not answer.
    if let (Ok(all), Ok((own, _)), Ok(live)) =
        (nodes.nodes().await, nodes.own_node().await, database.live().await)
    {
        ports::check(&all, &own.id, &live, containers, report);
    }
}

/// Checks that containers of different organizations do not reach each other by this machine.
fn check_machine(nodes: &[Node], report: &mut HealthReport) {
    let hint = "run `launchway node prepare` on this machine, and on every other node";
    match node::bridge_address() {
        Ok(Some(address)) if !address.is_empty() => {
            report.ok("node ports", format!("are published at {address} only"));
        }
        Ok(_) => report.warn("node ports", "are published at all addresses of this machine".to_owned(), hint),
        Err(error) => report.warn("node ports", describe(&*error), hint),
    }
    match node::packet_filter() {
        Some(filter) => report_filter(&filter, nodes, report),
        None => report.warn("node packet filter", "only root can see its rules".to_owned(), hint),
    }
}

/// Reports rules of the packet filter that are missing, and nodes that they do not cover.
fn report_filter(filter: &PacketFilter, nodes: &[Node], report: &mut HealthReport) {
    const SUBJECT: &str = "node packet filter";
    let hint = "run `launchway node prepare` on this machine, as root";
    let Some(network) = filter.network else {
        let text =
            "containers reach the ports of every machine: the chain DOCKER-USER has no rules for nodes";
        return report.fail(SUBJECT, text.to_owned(), hint);
    };
    let outside: Vec<String> = nodes
        .iter()
        .filter(|node| matches!(node.address, Some(IpAddr::V4(address)) if !network.contains(&address)))
        .map(|node| format!("`{}`", node.hostname))
        .collect();
    if !outside.is_empty() {
        let text = format!("containers reach the ports of {}, not in {network}", outside.join(", "));
        report.fail(SUBJECT, text, "run `launchway node prepare` with a network of all machines");
    }
    for rule in &filter.missing {
        report.fail(SUBJECT, format!("containers reach ports of machines: `{rule}` is missing"), hint);
    }
    if outside.is_empty() && filter.missing.is_empty() {
        report.ok(SUBJECT, format!("keeps containers from the machines in {network}"));
    }
}

#[cfg(test)]
mod tests;
