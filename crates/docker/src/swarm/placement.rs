//! Chooses the port of a copy, and its node.

use std::{collections::HashSet, fmt, str::FromStr};

use launchway_domain::{clock::Timestamp, extensions::PortRange, ids::DeploymentId, nodes::NodeId};

use super::records::{Nodes, Service, Task};
use crate::labels;

/// A constraint of a service on the node of its container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeConstraint {
    /// It runs on this node only.
    On(NodeId),
    /// It does not run on this node, which did not take its container.
    NotOn(NodeId),
}

/// The error of a text that is another constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OtherConstraint;

impl fmt::Display for NodeConstraint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::On(node) => write!(formatter, "node.id=={node}"),
            Self::NotOn(node) => write!(formatter, "node.id!={node}"),
        }
    }
}

impl FromStr for NodeConstraint {
    type Err = OtherConstraint;

    /// Reads a constraint as Swarm lists it, with or without spaces.
    fn from_str(text: &str) -> Result<Self, OtherConstraint> {
        let text = text.replace(' ', "");
        let node = |sign: &str| text.strip_prefix("node.id")?.strip_prefix(sign)?.parse().ok();
        node("==").map(Self::On).or_else(|| node("!=").map(Self::NotOn)).ok_or(OtherConstraint)
    }
}

/// Returns a port that no service has. The search begins at another port each second, so that a port is not assigned again
/// soon after its service is removed; `None` if all are taken.
pub(crate) fn free_port(range: PortRange, taken: &HashSet<u16>, now: Timestamp) -> Option<u16> {
    let ports = range.ports();
    let first = usize::try_from(now.timestamp()).unwrap_or_default() % ports.len();
    let all = ports.clone().skip(first).chain(ports.take(first));
    all.into_iter().find(|port| !taken.contains(port))
}

/// Returns the node for a copy after the first one, so that copies are on different machines: Swarm balances the containers
/// of each service, and all containers, but not those of one application. `None` where Swarm decides.
pub(super) fn node_for_copy(
    copy: u16,
    deployment: DeploymentId,
    services: &[Service],
    tasks: &[Task],
    nodes: &Nodes,
) -> Option<NodeId> {
    let mut suitable: Vec<&NodeId> =
        nodes.0.values().filter(|node| node.takes_containers()).map(|node| &node.id).collect();
    suitable.sort();
    let is_first = |service: &&Service| {
        let owner = labels::owner(&service.labels);
        labels::copy(&service.labels) == Some(1) && owner.is_some_and(|owner| owner.deployment == deployment)
    };
    let first = services.iter().filter(is_first).max_by_key(|service| service.age())?;
    let on = tasks.iter().filter(|task| task.is_wanted && task.service == first.id.as_str());
    let node = on.max_by_key(|task| task.created_at)?.node.as_ref()?;
    if copy < 2 || suitable.len() < 2 {
        return None;
    }
    let place = suitable.iter().position(|one| *one == node)?;
    let next = (place + usize::from(copy) - 1) % suitable.len();
    suitable.get(next).map(|node| (*node).clone())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn constraints_on_nodes_are_read_as_they_are_written() {
        let node = || "qk9ltvpzp6r2r8lz1sm1imk1x".parse::<NodeId>().unwrap();
        for constraint in [NodeConstraint::On(node()), NodeConstraint::NotOn(node())] {
            let text = constraint.to_string();
            assert_eq!(text.parse(), Ok(constraint.clone()));
            assert_eq!(text.replace('=', "= ").replace("= = ", " == ").parse(), Ok(constraint), "{text}");
        }
        for other in ["node.labels.launchway.apps==true", "node.id", "node.id==", "node.role!=manager"] {
            assert_eq!(other.parse::<NodeConstraint>(), Err(OtherConstraint), "{other}");
        }
    }

    #[test]
    fn a_port_is_free_and_another_one_each_second() {
        let range: PortRange = "12000-12003".parse().unwrap();
        let at = |second: i64| DateTime::from_timestamp(second, 0).unwrap();
        let taken = |ports: &[u16]| ports.iter().copied().collect::<HashSet<u16>>();
        assert_eq!(free_port(range, &taken(&[]), at(4)), Some(12_000));
        assert_eq!(free_port(range, &taken(&[]), at(5)), Some(12_001));
        assert_eq!(free_port(range, &taken(&[12_001, 12_002, 12_003]), at(5)), Some(12_000));
        assert_eq!(free_port(range, &taken(&[12_000, 12_001, 12_002, 12_003]), at(5)), None);
    }
}
