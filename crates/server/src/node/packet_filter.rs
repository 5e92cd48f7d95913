//! The packet filter of a node: containers open no connection to the machines of the Swarm.
//!
//! At the published ports of these machines they would reach the containers of other organizations, and also the registry
//! and the overlay networks.

use std::error::Error;

use ipnet::Ipv4Net;

use super::prepare::{run, succeeded};

/// The chain that Docker calls for forwarded packets before any chain of its own. Docker keeps the rules in it.
const CHAIN: &str = "DOCKER-USER";
/// The rule by which Docker calls the chain.
const JUMP: &str = "FORWARD -j DOCKER-USER";
/// The option that names the network of the machines. The address before a published port is translated counts, so that
/// the ports of this machine are covered too.
const NETWORK_OPTION: &str = "--ctorigdst";

/// The packets of overlay networks (VXLAN) between machines.
const OVERLAY_PACKETS: &str = "-p udp -m udp --dport 4789";

/// The packet filter of this machine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PacketFilter {
    /// The network that containers are kept from; `None` if the chain has no such rule.
    pub(crate) network: Option<Ipv4Net>,
    /// The rules that are missing.
    pub(crate) missing: Vec<String>,
}

/// Returns the rules for the machines in `network`, each with its chain.
///
/// Builds with BuildKit run on `docker0`, and extensions from before the Swarm on a bridge of their own.
fn rules(network: Ipv4Net) -> [String; 6] {
    let forwarded = |from: &str| {
        format!("{CHAIN} {from} -m conntrack --ctstate NEW {NETWORK_OPTION} {network} -j REJECT")
    };
    [
        forwarded("-i docker_gwbridge"),
        forwarded("-i docker0"),
        // A network card of the machine may have such a name: what comes from other machines is let through.
        forwarded(&format!("-i br-+ ! -s {network}")),
        // Docker does not translate the ports that it publishes on a bridge for packets from the same bridge.
        "INPUT -i docker_gwbridge -m conntrack --ctstate NEW -j REJECT".to_owned(),
        // The machine would pass these packets on to a container of an overlay network, as if another machine sent them.
        format!("INPUT -i docker0 {OVERLAY_PACKETS} -j REJECT"),
        format!("INPUT -i br-+ ! -s {network} {OVERLAY_PACKETS} -j REJECT"),
    ]
}

/// Adds the rules that are missing. Does not need the engine, which creates the chain only if there is none.
pub(super) fn add_rules(network: Ipv4Net) -> Result<(), Box<dyn Error>> {
    if !run("iptables", &["--wait", "--list-rules", CHAIN])?.status.success() {
        iptables("--new-chain", CHAIN)?;
    }
    for rule in rules(network) {
        if !has(&rule)? {
            iptables("--insert", &rule)?;
        }
    }
    Ok(())
}

/// Returns the packet filter of this machine; `None` if only root can see it.
pub(crate) fn packet_filter() -> Option<PacketFilter> {
    let list = |chain| run("iptables", &["--wait", "--list-rules", chain]).ok();
    // This chain always exists. Other users and restricted units get different errors.
    if !list("INPUT")?.status.success() {
        return None;
    }
    let listed = list(CHAIN)?;
    let network = network_of(&String::from_utf8_lossy(&listed.stdout));
    let expected = network.into_iter().flat_map(rules).chain([JUMP.to_owned()]);
    let missing = expected.filter(|rule| !has(rule).unwrap_or_default()).collect();
    Some(PacketFilter { network, missing })
}

/// Returns the network that the listed rules keep containers from.
fn network_of(listed: &str) -> Option<Ipv4Net> {
    let mut words = listed.split_whitespace().skip_while(|word| *word != NETWORK_OPTION);
    words.nth(1)?.parse().ok()
}

fn has(rule: &str) -> Result<bool, Box<dyn Error>> {
    Ok(run("iptables", &arguments("--check", rule))?.status.success())
}

fn iptables(verb: &str, rule: &str) -> Result<(), Box<dyn Error>> {
    succeeded("iptables", run("iptables", &arguments(verb, rule))?).map(drop)
}

fn arguments<'a>(verb: &'a str, rule: &'a str) -> Vec<&'a str> {
    ["--wait", verb].into_iter().chain(rule.split(' ')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_is_read_from_the_rules() {
        let network: Ipv4Net = "10.0.0.0/24".parse().unwrap();
        let [first, ..] = rules(network);
        let listed =
            format!("-N {CHAIN}\n-A {first} --reject-with icmp-port-unreachable\n-A {CHAIN} -j RETURN\n");
        assert_eq!(network_of(&listed), Some(network));
        assert_eq!(network_of(&format!("-N {CHAIN}\n-A {CHAIN} -j RETURN\n")), None);
    }
}
