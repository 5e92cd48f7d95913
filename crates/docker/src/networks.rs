//! The network of each organization, and that of each composition.
//!
//! Each is a bridge of its own, and the engine forwards nothing from one bridge to another; or, in a Swarm, an overlay of
//! its own, whose addresses Swarm assigns. A container is
//! in the network of its organization, or of its composition, and in no other, the engine's default one
//! included.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Instant,
};

use chrono::DateTime;
use ipnet::Ipv4Net;
use launchway_domain::{deployments::StepError, ids::OrganizationId};
use serde_json::Value;

use super::{
    DockerEngine, NetworkDriver,
    addresses::{AddressRange, Assignment, TakenAddress},
    command::NetworkId,
    containers::{Endpoint, Filters, endpoints},
    errors::EngineError,
    host_networks::host_networks,
    labels::{self, Label, LabelSet},
};

/// The prefix length of an organization's network: 190 containers, and 63 addresses that the engine
/// assigns.
const PREFIX: u8 = 24;
/// The number of subnets that are tried when others take them at the same time.
const MOST_TRIES: usize = 16;

/// An existing network.
#[derive(Debug, Clone)]
pub(super) struct Network {
    pub(super) id: NetworkId,
    name: String,
    subnets: Vec<Ipv4Net>,
    driver: NetworkDriver,
    /// The addresses that may be assigned; `None` for an overlay, and for a network without a subnet of its own.
    range: Option<AddressRange>,
    created: String,
}

impl Network {
    fn read(record: &Value) -> Option<Self> {
        let subnets = record.get("subnets").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let text = |subnet: &Value, key: &str| Some(subnet.get(key)?.as_str()?.to_owned());
        let range = |subnet: &Value| {
            Some(AddressRange {
                subnet: text(subnet, "Subnet")?.parse().ok()?,
                engine_range: text(subnet, "IPRange").and_then(|range| range.parse().ok()),
                gateway: text(subnet, "Gateway").and_then(|gateway| gateway.parse().ok()),
            })
        };
        let driver = match record.get("driver").and_then(Value::as_str) {
            Some("overlay") => NetworkDriver::Overlay,
            _ => NetworkDriver::Bridge,
        };
        Some(Self {
            id: NetworkId::parse(record.get("id")?.as_str()?)?,
            name: text(record, "name").unwrap_or_default(),
            subnets: subnets.iter().filter_map(|subnet| text(subnet, "Subnet")?.parse().ok()).collect(),
            // Only the managers of a Swarm know which addresses of an overlay are taken.
            range: subnets.iter().find_map(range).filter(|_| driver == NetworkDriver::Bridge),
            driver,
            created: record.get("created")?.as_str()?.to_owned(),
        })
    }

    /// Returns whether the engine assigns addresses only from a part of the network that is not ours.
    pub(super) fn is_divided(&self) -> bool {
        self.range.is_none_or(|range| range.engine_range.is_some())
    }

    pub(super) fn contains(&self, address: Ipv4Addr) -> bool {
        self.subnets.iter().any(|subnet| subnet.contains(&address))
    }

    /// Returns an address of the network that no container ever has.
    pub(super) fn nobody(&self) -> IpAddr {
        self.subnets.first().map_or(Ipv4Addr::BROADCAST, Ipv4Net::network).into()
    }
}

impl DockerEngine {
    /// Returns the network of an organization, which is created if it does not exist.
    ///
    /// A known one is not looked up again until it [was lost](Self::has_lost).
    ///
    /// A new one has none of the addresses in `reserved`, as long as there is room elsewhere.
    pub(super) async fn network(
        &self,
        organization: OrganizationId,
        reserved: &[IpAddr],
    ) -> Result<Network, StepError> {
        self.prefer_leader().await;
        let mut known = self.networks.lock().await;
        if let Some(network) = known.get(&organization) {
            return Ok(network.clone());
        }
        let labels = [Label::of_instance(self.options.instance), Label::of_organization(organization)];
        let name = self.network_name(organization);
        let network = self.found_or_made(&name, &labels, reserved, false).await?;
        known.insert(organization, network.clone());
        Ok(network)
    }

    /// Returns the name of the network of an organization.
    pub(super) fn network_name(&self, organization: OrganizationId) -> String {
        match self.options.network_driver {
            NetworkDriver::Bridge => format!("launchway-{organization}"),
            // This machine may have the bridge of a time before the Swarm.
            NetworkDriver::Overlay => format!("launchway-overlay-{organization}"),
        }
    }

    /// Returns the network with all of these labels, which is created if it does not exist, and then with
    /// none of the addresses in `reserved`.
    pub(super) async fn network_called(
        &self,
        name: &str,
        labels: &[Label],
        reserved: &[IpAddr],
    ) -> Result<Network, StepError> {
        self.prefer_leader().await;
        let _alone = self.networks.lock().await;
        self.found_or_made(name, labels, reserved, true).await
    }

    /// Waits until the managers of the Swarm have a leader, if networks are overlays: without one they hold each call
    /// about an overlay for 20 seconds, the start of a container in it included. No leader is no failure, because a
    /// machine that joins its Swarm again knows its networks before it knows the leader.
    async fn prefer_leader(&self) {
        if self.options.network_driver == NetworkDriver::Overlay {
            let _no_leader = self.docker.wait_for_leader().await;
        }
    }

    async fn found_or_made(
        &self,
        name: &str,
        labels: &[Label],
        reserved: &[IpAddr],
        is_strict: bool,
    ) -> Result<Network, StepError> {
        match self.oldest_network(labels).await? {
            Some(network) => Ok(network),
            None => self.create_network(name, labels, reserved, is_strict).await,
        }
    }

    /// Assigns an address of `network` that no container has or had, and that is none of `reserved`; `None`
    /// in a network in which none can be assigned.
    pub(super) async fn assign(
        &self,
        network: &Network,
        organization: OrganizationId,
        reserved: &[IpAddr],
    ) -> Result<Option<Assignment>, StepError> {
        let Some(range) = network.range else { return Ok(None) };
        let listed_at = Instant::now();
        let taken = self.taken_addresses(network, organization).await.map_err(EngineError::or_fault)?;
        let assigned = self.addresses.assign(network.id.as_str(), range, &taken, reserved, listed_at);
        assigned.map(Some).ok_or_else(|| {
            StepError::Rejected(format!(
                "the network `{}` has no address left for another container: remove some of the containers in it",
                network.name
            ))
        })
    }

    /// Returns the addresses that containers have or had: those in the network, and those of the
    /// organization that were disconnected from it.
    async fn taken_addresses(
        &self,
        network: &Network,
        organization: OrganizationId,
    ) -> Result<Vec<TakenAddress>, EngineError> {
        let ours = [Label::of_instance(self.options.instance), Label::of_organization(organization)];
        let Some(socket) = self.docker.socket().await else {
            let (inside, own) = tokio::try_join!(
                self.docker.containers_in(&network.id, &network.name),
                self.docker.containers(&ours)
            )?;
            let mut ids = [inside, own].concat();
            ids.sort_by(|one, other| one.as_str().cmp(other.as_str()));
            ids.dedup();
            let records = self.docker.inspect(&ids).await?;
            return Ok(records.iter().flat_map(taken_by_record).collect());
        };
        let mut inside = vec![network.id.as_str().to_owned()];
        inside.extend(Some(network.name.clone()).filter(|name| !name.is_empty()));
        let inside = Filters::from([("network", inside)]);
        let own = Filters::from([("label", ours.map(|label| label.as_str().to_owned()).to_vec())]);
        let (inside, own) = tokio::try_join!(self.list(socket, &inside), self.list(socket, &own))?;
        let listed = inside.iter().chain(&own);
        Ok(listed.flat_map(|one| taken(one.endpoints(), &one.labels, one.created)).collect())
    }

    /// Checks whether a call failed because `network` is gone, which is then looked up again when it is
    /// needed next.
    pub(super) async fn has_lost<T>(
        &self,
        organization: OrganizationId,
        network: &Network,
        outcome: &Result<T, EngineError>,
    ) -> bool {
        let is_gone = matches!(outcome, Err(failure) if failure.is_about_a_missing_network());
        if is_gone {
            let mut known = self.networks.lock().await;
            if known.get(&organization).is_some_and(|known| known.id == network.id) {
                known.remove(&organization);
            }
        }
        is_gone
    }

    /// Returns the oldest network with these labels. If two processes create the same network at the same
    /// time, both use the older one.
    pub(super) async fn oldest_network(&self, labels: &[Label]) -> Result<Option<Network>, StepError> {
        let found = self.docker.networks(labels).await.map_err(EngineError::or_fault)?;
        let mut networks = self.read_networks(&found).await?;
        networks.retain(|network| network.driver == self.options.network_driver);
        networks.sort_by(|a, b| (&a.created, a.id.as_str()).cmp(&(&b.created, b.id.as_str())));
        Ok(networks.into_iter().next())
    }

    async fn create_network(
        &self,
        name: &str,
        labels: &[Label],
        reserved: &[IpAddr],
        is_strict: bool,
    ) -> Result<Network, StepError> {
        let mut taken: Vec<Ipv4Net> = Vec::new();
        for _ in 0..MOST_TRIES {
            let everyone = self.docker.networks(&[]).await.map_err(EngineError::or_fault)?;
            let others = self.read_networks(&everyone).await?;
            let others: Vec<Ipv4Net> =
                others.iter().flat_map(|network| &network.subnets).chain(&taken).copied().collect();
            let avoided = [others.clone(), reserved.iter().filter_map(single).collect()].concat();
            let host_networks = host_networks()
                .await
                .map_err(|error| StepError::failed("the routes of this machine cannot be read", error))?;
            let pool = self.options.network_pool;
            let subnet = best_free(pool, avoided, host_networks.clone())
                .or_else(|| if is_strict { None } else { best_free(pool, others, host_networks) })
                .ok_or_else(|| {
                    StepError::Retryable("the address pool has no room for another network".to_owned())
                })?;
            let created = match self.options.network_driver {
                NetworkDriver::Bridge => {
                    self.docker.create_network(name, AddressRange::divide(subnet), labels).await
                }
                NetworkDriver::Overlay => self.docker.create_overlay(name, subnet, labels).await,
            };
            match created {
                Ok(ours) if self.has_older_overlap(&ours, subnet).await? => {
                    // It is not in use yet.
                    let _left_behind = self.docker.remove_network(&ours).await;
                    taken.push(subnet);
                }
                Ok(ours) => {
                    let Some(network) = self.oldest_network(labels).await? else { continue };
                    if network.id != ours {
                        // It is not in use yet.
                        let _left_behind = self.docker.remove_network(&ours).await;
                    }
                    return Ok(network);
                }
                // The engine gives a subnet to one caller only: perhaps to one that creates the same
                // network.
                Err(failure) if failure.says("overlaps") || failure.says("overlapping") => {
                    match self.oldest_network(labels).await? {
                        Some(network) => return Ok(network),
                        None => taken.push(subnet),
                    }
                }
                Err(failure) if failure.says("already exists") => match self.oldest_network(labels).await? {
                    Some(network) => return Ok(network),
                    None => return Err(failure.or_fault()),
                },
                Err(failure) => return Err(failure.or_fault()),
            }
        }
        Err(StepError::Retryable("all subnets that were tried for a network are in use".to_owned()))
    }

    /// Returns whether an older network has addresses of `subnet` as well. A bridge has none: the engine refuses it. Two
    /// managers of a Swarm may create overlays at the same time, and of these the younger one never gets addresses.
    async fn has_older_overlap(&self, ours: &NetworkId, subnet: Ipv4Net) -> Result<bool, StepError> {
        if self.options.network_driver == NetworkDriver::Bridge {
            return Ok(false);
        }
        let everyone = self.docker.networks(&[]).await.map_err(EngineError::or_fault)?;
        let networks = self.read_networks(&everyone).await?;
        let Some(own) = networks.iter().find(|network| network.id == *ours) else { return Ok(false) };
        let is_older = |other: &Network| {
            (&other.created, other.id.as_str()) < (&own.created, own.id.as_str())
                && other.subnets.iter().any(|other| overlaps(other, &subnet))
        };
        Ok(networks.iter().any(is_older))
    }

    /// Returns the networks with these ids that still exist.
    pub(super) async fn read_networks(&self, networks: &[NetworkId]) -> Result<Vec<Network>, StepError> {
        let records = self.docker.inspect_networks(networks).await.map_err(EngineError::or_fault)?;
        Ok(records.iter().filter_map(Network::read).collect())
    }
}

/// Returns an address as a `/32` network.
fn single(address: &IpAddr) -> Option<Ipv4Net> {
    as_v4(*address).map(Ipv4Net::from)
}

fn taken_by_record(record: &Value) -> Vec<TakenAddress> {
    let created = record.get("created").and_then(Value::as_str).unwrap_or_default();
    let created = DateTime::parse_from_rfc3339(created).map_or(0, |created| created.timestamp());
    let labels = record.get("labels").unwrap_or(&Value::Null);
    taken(endpoints(record).values(), labels, created)
}

fn taken<'a>(
    endpoints: impl Iterator<Item = &'a Endpoint>,
    labels: &impl LabelSet,
    created: i64,
) -> Vec<TakenAddress> {
    let has = endpoints.flat_map(|endpoint| [endpoint.assigned(), endpoint.address().and_then(as_v4)]);
    let all = has.chain([labels::address(labels)]).flatten();
    all.map(|address| TakenAddress { address, created }).collect()
}

fn as_v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// Returns the lowest subnet that overlaps neither another network nor a route of the machine; if routes
/// fill the pool, the lowest one inside of a wider route, whose other addresses stay reachable.
fn best_free(pool: Ipv4Net, others: Vec<Ipv4Net>, host_networks: Vec<Ipv4Net>) -> Option<Ipv4Net> {
    let without = |host_networks: &[Ipv4Net]| lowest_free(pool, [&others, host_networks].concat());
    let narrow = |neighbour: &Ipv4Net| neighbour.prefix_len() >= pool.prefix_len().max(PREFIX);
    without(&host_networks).or_else(|| {
        let narrow = host_networks.into_iter().filter(narrow).collect::<Vec<_>>();
        without(&narrow)
    })
}

fn overlaps(one: &Ipv4Net, other: &Ipv4Net) -> bool {
    one.contains(other) || other.contains(one)
}

/// Returns the lowest subnet of the pool that overlaps no other.
fn lowest_free(pool: Ipv4Net, taken: Vec<Ipv4Net>) -> Option<Ipv4Net> {
    let mut subnets = pool.subnets(pool.prefix_len().max(PREFIX)).ok()?;
    subnets.find(|subnet| !taken.iter().any(|other| overlaps(subnet, other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> Ipv4Net {
        text.parse().unwrap()
    }

    #[test]
    fn the_lowest_subnet_that_nobody_has_is_taken() {
        let pool = net("10.0.0.0/22");
        for (taken, free) in [
            (vec![], Some("10.0.0.0/24")),
            (vec!["10.0.0.0/24", "10.0.2.0/24"], Some("10.0.1.0/24")),
            (vec!["10.0.0.128/25"], Some("10.0.1.0/24")),
            (vec!["10.0.0.0/23", "172.17.0.0/16"], Some("10.0.2.0/24")),
            (vec!["10.0.0.0/8"], None),
        ] {
            let taken = taken.into_iter().map(net).collect();
            assert_eq!(lowest_free(pool, taken), free.map(net));
        }
    }

    #[test]
    fn a_routed_subnet_is_avoided_while_there_is_another() {
        let pool = net("10.0.0.0/23");
        for (others, host_networks, best) in [
            (vec![], vec!["10.0.0.0/24"], Some("10.0.1.0/24")),
            (vec!["10.0.1.0/24"], vec!["10.0.0.128/32"], None),
            // A wide one that holds the whole pool leaves no choice.
            (vec![], vec!["10.0.0.0/8"], Some("10.0.0.0/24")),
            (vec![], vec!["10.0.0.0/8", "10.0.0.0/24"], Some("10.0.1.0/24")),
            (vec!["10.0.0.0/24", "10.0.1.0/24"], vec!["10.0.0.0/8"], None),
        ] {
            let nets = |texts: Vec<&str>| texts.into_iter().map(net).collect();
            assert_eq!(best_free(pool, nets(others), nets(host_networks)), best.map(net));
        }
    }

    #[test]
    fn a_subnet_with_a_reserved_address_is_taken() {
        let reserved: IpAddr = "10.0.0.77".parse().unwrap();
        let taken = single(&reserved).into_iter().collect();
        assert_eq!(lowest_free(net("10.0.0.0/22"), taken), Some(net("10.0.1.0/24")));
        assert_eq!(single(&"fd00::1".parse().unwrap()), None);
    }

    #[test]
    fn a_network_is_read_with_what_may_be_assigned() {
        let read = |subnets: Value| {
            let id = "qk9ltvpzp6r2r8lz1sm1imk1x";
            Network::read(&serde_json::json!({ "id": id, "name": "n", "created": "", "subnets": subnets }))
                .unwrap()
        };
        let divided = serde_json::json!([
            { "Subnet": "fd00::/64" },
            { "Subnet": "10.0.0.0/24", "IPRange": "10.0.0.192/26", "Gateway": "10.0.0.1" },
        ]);
        assert_eq!(read(divided.clone()).range, Some(AddressRange::divide(net("10.0.0.0/24"))));
        assert!(read(divided).is_divided());
        assert!(!read(serde_json::json!([{ "Subnet": "10.0.0.0/24" }])).is_divided());
        assert_eq!(read(Value::Null).range, None);
    }

    #[test]
    fn a_small_pool_is_one_network() {
        assert_eq!(lowest_free(net("10.0.0.64/26"), vec![]), Some(net("10.0.0.64/26")));
        assert_eq!(lowest_free(net("10.0.0.64/26"), vec![net("10.0.0.65/32")]), None);
    }
}
