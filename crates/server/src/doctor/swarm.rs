//! Checks of a Docker Swarm.

use std::{
    net::{TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use launchway_domain::{
    diagnostics::HealthReport,
    nodes::{NodeAvailability, NodeInventory as _},
};
use launchway_infrastructure::docker::swarm::{SwarmEngine, SwarmOptions};

use super::describe;
use crate::{engine::refusal, node};

/// The timeout of a connection to the registry.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Checks that this machine can start containers on the Swarm.
pub(super) async fn check(options: &SwarmOptions, swarm: &SwarmEngine, report: &mut HealthReport) {
    match swarm.role().await {
        None => return,
        Some(role) => match refusal(role) {
            Some(reason) => {
                return report.fail("swarm", reason.to_owned(), "see Several machines in docs/operations.md");
            }
            None => report.ok("swarm", "this machine is a manager".to_owned()),
        },
    }
    check_nodes(swarm, report).await;
    check_registry(options.registry.host(), report);
    check_machine(report);
}

async fn check_nodes(swarm: &SwarmEngine, report: &mut HealthReport) {
    let nodes = match swarm.nodes().await {
        Ok(nodes) => nodes,
        Err(error) => return report.fail("nodes", describe(&error), ""),
    };
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

/// Checks that something listens there: whether it takes images is known only after a push.
fn check_registry(host: &str, report: &mut HealthReport) {
    let address = if host.contains(':') { host.to_owned() } else { format!("{host}:443") };
    let connected = address.to_socket_addrs().and_then(|mut addresses| {
        let address = addresses.next().ok_or_else(|| std::io::Error::other("the name has no address"))?;
        TcpStream::connect_timeout(&address, CONNECT_TIME)
    });
    match connected {
        Ok(_) => report.ok("registry", format!("`{host}` accepts connections")),
        Err(error) => {
            let hint = "start it: deployments fail until then, and what runs keeps running";
            report.fail("registry", format!("`{host}` cannot be reached: {error}"), hint);
        }
    }
}

/// Checks that containers of different organizations do not reach each other by this machine.
fn check_machine(report: &mut HealthReport) {
    let hint = "run `launchway node prepare` on this machine, and on every other node";
    match node::bridge_address() {
        Ok(Some(address)) if !address.is_empty() => {
            report.ok("node ports", format!("are published at {address} only"));
        }
        Ok(_) => report.warn("node ports", "are published at all addresses of this machine".to_owned(), hint),
        Err(error) => report.warn("node ports", describe(&*error), hint),
    }
    match node::has_input_rule() {
        Some(true) => report.ok("node packet filter", "keeps containers from this machine".to_owned()),
        Some(false) => {
            report.fail("node packet filter", "containers reach the ports of this machine".to_owned(), hint);
        }
        None => report.warn("node packet filter", "only root can see its rules".to_owned(), hint),
    }
}
