use std::net::Ipv4Addr;

use launchway_domain::{diagnostics::CheckOutcome, nodes::NodeRole};

use super::*;

fn node(name: &str, address: [u8; 4]) -> Node {
    Node {
        id: "a".parse().unwrap(),
        hostname: name.to_owned(),
        address: Some(Ipv4Addr::from(address).into()),
        is_ready: true,
        availability: NodeAvailability::Active,
        role: NodeRole::Manager,
        is_prepared: true,
        version: "20.10".to_owned(),
    }
}

fn filter(network: Option<&str>, missing: &[&str]) -> PacketFilter {
    let network = network.map(|network| network.parse().unwrap());
    PacketFilter { network, missing: missing.iter().map(|rule| (*rule).to_owned()).collect() }
}

#[test]
fn each_missing_rule_and_uncovered_node_is_a_failure() {
    let nodes = [node("server-1", [10, 0, 0, 1]), node("server-2", [10, 1, 0, 2])];
    let all = Some("10.0.0.0/8");
    for (filter, failures, words) in [
        (filter(all, &[]), 0, "keeps containers from the machines in 10.0.0.0/8"),
        (filter(None, &[]), 1, "the chain DOCKER-USER has no rules"),
        (filter(all, &["INPUT -i x", "FORWARD -j DOCKER-USER"]), 2, "`FORWARD -j DOCKER-USER` is missing"),
        (filter(Some("10.0.0.0/24"), &[]), 1, "the ports of `server-2`, not in 10.0.0.0/24"),
    ] {
        let mut report = HealthReport::default();
        report_filter(&filter, &nodes, &mut report);
        assert_eq!(report.count(CheckOutcome::Failure), failures, "{report}");
        assert!(report.to_string().contains(words), "{report}");
    }
}
