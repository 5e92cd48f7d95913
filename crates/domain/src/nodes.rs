//! Nodes: the machines that run the containers of applications.

use std::{fmt, net::IpAddr, str::FromStr};

use async_trait::async_trait;

use crate::deployments::StepError;

/// The length of the longest id.
const MAX_ID_LENGTH: usize = 64;

/// The id of a node: lower-case letters and digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(String);

/// The error of a text that is no id of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id of a node has 1 to {MAX_ID_LENGTH} lower-case letters and digits")]
pub struct InvalidNodeId;

impl NodeId {
    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NodeId {
    type Err = InvalidNodeId;

    fn from_str(text: &str) -> Result<Self, InvalidNodeId> {
        let is_id = (1..=MAX_ID_LENGTH).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
        if is_id { Ok(Self(text.to_owned())) } else { Err(InvalidNodeId) }
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The availability of a node for containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeAvailability {
    /// Containers may be started on it.
    Active,
    /// Its containers stay, but no others are started on it.
    Pause,
    /// Its containers are moved away.
    Drain,
}

impl NodeAvailability {
    /// Every availability.
    pub const ALL: [Self; 3] = [Self::Active, Self::Pause, Self::Drain];

    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Pause => "pause",
            Self::Drain => "drain",
        }
    }

    /// Returns the availability with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

/// The role of a node among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeRole {
    /// The manager that leads.
    Leader,
    /// A manager.
    Manager,
    /// A worker.
    Worker,
}

impl NodeRole {
    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Manager => "manager",
            Self::Worker => "worker",
        }
    }
}

/// A machine of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The id of the node.
    pub id: NodeId,
    /// The name of the machine.
    pub hostname: String,
    /// The address at which the others reach it; `None` if it is unknown.
    pub address: Option<IpAddr>,
    /// True unless the managers know that it is lost.
    pub is_ready: bool,
    /// The availability for containers.
    pub availability: NodeAvailability,
    /// The role among the others.
    pub role: NodeRole,
    /// True if it may run containers of applications.
    pub is_prepared: bool,
    /// The version of its engine.
    pub version: String,
}

impl Node {
    /// Returns whether new containers of applications can be started on it.
    #[must_use]
    pub fn takes_containers(&self) -> bool {
        self.is_ready && self.is_prepared && self.availability == NodeAvailability::Active
    }

    /// Returns whether it is a manager.
    #[must_use]
    pub fn is_manager(&self) -> bool {
        self.role != NodeRole::Worker
    }
}

/// Lists the nodes of a cluster.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait NodeInventory: Send + Sync {
    /// Returns the nodes, by their names.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] or [`StepError::Retryable`] if the cluster cannot be asked.
    async fn nodes(&self) -> Result<Vec<Node>, StepError>;

    /// Returns the node that the machine of this server is, and the id of its engine.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] or [`StepError::Retryable`] if the cluster cannot be asked.
    async fn own_node(&self) -> Result<(Node, String), StepError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_lower_case_letters_and_digits() {
        for text in ["a", "qk9ltvpzp6r2r8lz1sm1imk1x", &"a".repeat(64)] {
            assert_eq!(text.parse::<NodeId>().unwrap().as_str(), text);
        }
        for text in ["", "A", "a b", "--help", "a\n", &"a".repeat(65)] {
            assert_eq!(text.parse::<NodeId>(), Err(InvalidNodeId), "{text}");
        }
    }

    #[test]
    fn a_node_takes_containers_if_nothing_keeps_it_from_that() {
        let node = Node {
            id: "a".parse().unwrap(),
            hostname: "server-1".to_owned(),
            address: None,
            is_ready: true,
            availability: NodeAvailability::Active,
            role: NodeRole::Worker,
            is_prepared: true,
            version: "20.10".to_owned(),
        };
        assert!(node.takes_containers());
        assert!(!Node { is_ready: false, ..node.clone() }.takes_containers());
        assert!(!Node { is_prepared: false, ..node.clone() }.takes_containers());
        for availability in [NodeAvailability::Pause, NodeAvailability::Drain] {
            assert!(!Node { availability, ..node.clone() }.takes_containers());
        }
    }

    #[test]
    fn names_are_read_back() {
        for one in NodeAvailability::ALL {
            assert_eq!(NodeAvailability::from_name(one.as_str()), Some(one));
        }
        assert_eq!(NodeAvailability::from_name("Active"), None);
    }
}
