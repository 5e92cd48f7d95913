//! Ports of the host that containers of extensions publish: which ones there are, and which extension holds each.

use std::{collections::BTreeSet, fmt, ops::RangeInclusive, str::FromStr};

use async_trait::async_trait;

use super::{Action, ExtensionKey, PublishedPort, Values};
use crate::{
    applications::Port,
    ids::{ExecutionId, OrganizationId},
    quotas::{Quota, QuotaExceeded},
    store_error::StoreError,
    value::InvalidValue,
};

/// A range of ports, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Every port that needs no privilege.
    pub const UNPRIVILEGED: Self = Self { first: 1024, last: u16::MAX };

    /// Returns every port of the range.
    #[must_use]
    pub fn ports(self) -> RangeInclusive<u16> {
        self.first..=self.last
    }

    /// Returns the first three quarters of the range, and the last one. A range of one port is in both.
    #[must_use]
    pub fn divided(self) -> (Self, Self) {
        let quarter = (self.last - self.first) / 4;
        let first_of_last = self.last - quarter;
        let last_of_first = self.first.max(first_of_last - 1);
        (Self { last: last_of_first, ..self }, Self { first: first_of_last, ..self })
    }

    /// Returns whether `port` is in the range.
    #[must_use]
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl FromStr for PortRange {
    type Err = InvalidValue;

    fn from_str(raw: &str) -> Result<Self, InvalidValue> {
        let refused = || InvalidValue::text("a range of ports from 1024 on, such as 20000-29999", raw);
        let (first, last) = raw.split_once('-').ok_or_else(refused)?;
        let port = |text: &str| text.trim().parse::<u16>().map_err(|_no_port| refused());
        let range = Self { first: port(first)?, last: port(last)? };
        let is_range = range.first >= Self::UNPRIVILEGED.first && range.first <= range.last;
        if is_range { Ok(range) } else { Err(refused()) }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// A port of the host that is forwarded to a port of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPort {
    /// The port on the host's loopback.
    pub host: Port,
    /// The port in the container.
    pub container: Port,
    /// True for UDP, false for TCP.
    pub is_udp: bool,
}

impl HostPort {
    /// Returns the key under which a host port exists once: its number, and true for UDP.
    #[must_use]
    pub fn key(&self) -> PortKey {
        (self.host.get(), self.is_udp)
    }
}

/// The number of a host port, and true for UDP.
pub type PortKey = (u16, bool);

/// A host port that an extension holds for an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortRecord {
    /// The organization.
    pub organization: OrganizationId,
    /// The extension.
    pub extension: ExtensionKey,
    /// The run that published it.
    pub execution: ExecutionId,
    /// The name of the container on the engine.
    pub container: String,
    /// The port.
    pub port: HostPort,
}

/// A request for the host ports of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortRequest {
    /// The organization.
    pub organization: OrganizationId,
    /// The extension.
    pub extension: ExtensionKey,
    /// The run.
    pub execution: ExecutionId,
    /// The ports, each with the name of its container on the engine.
    pub wanted: Vec<(String, PublishedPort)>,
    /// The ports that containers of the extension publish already for this organization. They stay
    /// allowed, whatever the range is now.
    pub published: BTreeSet<PortKey>,
    /// Ports that must not be assigned: another program of the host has them.
    pub unavailable: BTreeSet<u16>,
}

/// The rules for host ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortPolicy {
    /// The ports that may be published.
    pub range: PortRange,
    /// The quota of one organization.
    pub quota: Quota,
}

impl PortPolicy {
    /// Decides which host ports a step gets, in the order of `request.wanted`, if `held` are held.
    ///
    /// # Errors
    /// The reason why it gets none.
    pub fn allocate(
        &self,
        request: &PortRequest,
        held: &[PortRecord],
    ) -> Result<Vec<PortRecord>, PortRefusal> {
        let is_own = |record: &&PortRecord| {
            record.organization == request.organization && record.extension == request.extension
        };
        let (own, foreign): (Vec<&PortRecord>, Vec<&PortRecord>) = held.iter().partition(is_own);
        let keys = |records: &[&PortRecord]| records.iter().map(|record| record.port.key()).collect();
        let (own_keys, foreign_keys): (BTreeSet<PortKey>, BTreeSet<PortKey>) = (keys(&own), keys(&foreign));
        let mut taken: BTreeSet<PortKey> = &own_keys | &foreign_keys;
        let named = request.wanted.iter().filter_map(|(_, port)| Some((port.host?.get(), port.is_udp)));
        taken.extend(named);
        let mut given: Vec<PortRecord> = Vec::new();
        for (container, wanted) in &request.wanted {
            let host = match wanted.host {
                Some(host) => {
                    let key = (host.get(), wanted.is_udp);
                    let is_repeated = given.iter().any(|record| record.port.key() == key);
                    if is_repeated || foreign_keys.contains(&key) {
                        return Err(PortRefusal::Taken(host.get()));
                    }
                    let exists = own_keys.contains(&key) || request.published.contains(&key);
                    if !exists && !self.range.contains(host.get()) {
                        return Err(PortRefusal::OutOfRange { port: host.get(), range: self.range });
                    }
                    host
                }
                None => {
                    let is_same = |record: &&&PortRecord| {
                        let HostPort { container: inside, is_udp, .. } = record.port;
                        record.container == *container
                            && (inside, is_udp) == (wanted.container, wanted.is_udp)
                    };
                    let is_free = |port: &u16| {
                        !taken.contains(&(*port, wanted.is_udp)) && !request.unavailable.contains(port)
                    };
                    let previous = own.iter().find(is_same).map(|record| record.port.host);
                    let next = || (self.range.first..=self.range.last).find(is_free);
                    let host = previous.or_else(|| Port::try_from(i64::from(next()?)).ok());
                    host.ok_or(PortRefusal::RangeFull(self.range))?
                }
            };
            let port = HostPort { host, container: wanted.container, is_udp: wanted.is_udp };
            taken.insert(port.key());
            given.push(PortRecord {
                organization: request.organization,
                extension: request.extension.clone(),
                execution: request.execution,
                container: container.clone(),
                port,
            });
        }
        let used = held.iter().filter(|record| record.organization == request.organization).count();
        let is_more = |record: &&PortRecord| {
            !own_keys.contains(&record.port.key()) && !request.published.contains(&record.port.key())
        };
        self.quota.check(used as u64, given.iter().filter(is_more).count() as u64)?;
        Ok(given)
    }

    /// Decides if the steps of a run would get their ports, one request for each step. The ports that an
    /// installed extension publishes are known to the engine alone: for such a one, only named ports that
    /// others hold are refused.
    ///
    /// # Errors
    /// [`PortRefusal`].
    pub fn preview(&self, requests: &[PortRequest], held: &HeldPorts) -> Result<(), PortRefusal> {
        let mut records = held.records.clone();
        for request in requests {
            let mut request = request.clone();
            if held.is_installed {
                request.wanted.retain(|(_, port)| port.host.is_some());
                let named =
                    request.wanted.iter().filter_map(|(_, port)| Some((port.host?.get(), port.is_udp)));
                request.published.extend(named.collect::<Vec<_>>());
            }
            let given = self.allocate(&request, &records)?;
            records.retain(|record| given.iter().all(|given| given.port.key() != record.port.key()));
            records.extend(given);
        }
        Ok(())
    }
}

/// The reason why a step gets no host port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PortRefusal {
    /// The port may not be published.
    #[error(
        "the port {port} of this machine is not among those that extensions may publish, {range}: choose one of them, or 0 for \
         any that is free"
    )]
    OutOfRange {
        /// The port.
        port: u16,
        /// The allowed ports.
        range: PortRange,
    },
    /// Launchway itself has the port.
    #[error("the port {0} of this machine is Launchway's own: choose another")]
    Reserved(u16),
    /// Another container holds the port.
    #[error("the port {0} of this machine is published already: choose another, or 0 for any that is free")]
    Taken(u16),
    /// No port is free.
    #[error("no port of {0} is free on this machine: ask who runs it for a larger range")]
    RangeFull(PortRange),
    /// The quota of the organization is used up.
    #[error(transparent)]
    Quota(#[from] QuotaExceeded),
}

/// The reason why no port was recorded.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The rules forbid it.
    #[error(transparent)]
    Refused(#[from] PortRefusal),
    /// The records cannot be reached.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The records of host ports, as one extension of one organization meets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPorts {
    /// The ports of all extensions.
    pub records: Vec<PortRecord>,
    /// True if the organization has the extension already, so that its containers may publish ports.
    pub is_installed: bool,
}

/// Decides about the host ports of a run before there is one, and changes nothing. Another run may take a
/// port between the answer and the step.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait PortCheck: Send + Sync {
    /// Fails if one of the steps would get no host port. Compose files in the workspace are not there yet,
    /// and left to their step.
    ///
    /// # Errors
    /// [`PortError`].
    async fn check(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
        actions: &[Action],
        values: &Values,
    ) -> Result<(), PortError>;
}

/// The records of host ports. It writes nothing but its own table.
///
/// Promises: a port is held by one extension of one organization at a time, however many ask at
/// once; a port is held before a container publishes it, and until [`retain`](HostPorts::retain)
/// leaves it out.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait HostPorts: fmt::Debug + Send + Sync {
    /// Records the ports that `policy` gives to `request`, in the order of its wanted ports.
    ///
    /// # Errors
    /// [`PortError`]; then nothing was recorded.
    async fn allocate(&self, policy: PortPolicy, request: PortRequest) -> Result<Vec<HostPort>, PortError>;

    /// Returns what is held, for `extension` of `organization`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn held(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
    ) -> Result<HeldPorts, StoreError>;

    /// Releases every port that the extension holds for the organization, except `published`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn retain(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
        published: BTreeSet<PortKey>,
    ) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests;
