//! The network of each organization, and that of each composition.
//!
//! Each is a bridge of its own, and the engine lets nothing pass from one bridge to another. A
//! container is in the network of its organization, or of its composition, and in no other, the
//! engine's default one included.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::Ipv4Net;
use launchway_domain::{deployments::StepError, ids::OrganizationId};
use serde_json::Value;

use super::{DockerEngine, command::NetworkId, complaints::Failure, labels::Label, neighbours::neighbours};

/// The length of the prefix of an organization's network: 253 containers.
const PREFIX: u8 = 24;
/// How many subnets are tried that somebody else takes at the same moment.
const MOST_TRIES: usize = 16;

/// A network that is there.
#[derive(Debug, Clone)]
pub(super) struct Network {
    pub(super) id: NetworkId,
    subnets: Vec<Ipv4Net>,
    created: String,
}

impl Network {
    fn read(record: &Value) -> Option<Self> {
        let subnets = record.get("subnets").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            id: NetworkId::parse(record.get("id")?.as_str()?)?,
            subnets: subnets.filter_map(|subnet| subnet.get("Subnet")?.as_str()?.parse().ok()).collect(),
            created: record.get("created")?.as_str()?.to_owned(),
        })
    }

    /// An address of the network that no container ever has, and at which nobody answers.
    pub(super) fn nobody(&self) -> IpAddr {
        self.subnets.first().map_or(Ipv4Addr::BROADCAST, Ipv4Net::network).into()
    }
}

impl DockerEngine {
    /// The network of an organization, which is made if it is not there.
    ///
    /// One that was there before is not looked for again, until somebody [has lost](Self::has_lost)
    /// it.
    pub(super) async fn network(&self, organization: OrganizationId) -> Result<Network, StepError> {
        let mut known = self.networks.lock().await;
        if let Some(network) = known.get(&organization) {
            return Ok(network.clone());
        }
        let labels = [Label::of_instance(self.options.instance), Label::of_organization(organization)];
        let network = self.found_or_made(&format!("launchway-{organization}"), &labels).await?;
        known.insert(organization, network.clone());
        Ok(network)
    }

    /// The network that all of these labels mark, which is made if it is not there.
    pub(super) async fn network_called(&self, name: &str, labels: &[Label]) -> Result<Network, StepError> {
        let _alone = self.networks.lock().await;
        self.found_or_made(name, labels).await
    }

    async fn found_or_made(&self, name: &str, labels: &[Label]) -> Result<Network, StepError> {
        match self.oldest_network(labels).await? {
            Some(network) => Ok(network),
            None => self.create_network(name, labels).await,
        }
    }

    /// Whether something did not succeed because `network` is gone, which is then looked for again
    /// when it is needed next.
    pub(super) async fn has_lost<T>(
        &self,
        organization: OrganizationId,
        network: &Network,
        outcome: &Result<T, Failure>,
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

    /// Another process may make the same network at the same moment: then both take the older one.
    async fn oldest_network(&self, labels: &[Label]) -> Result<Option<Network>, StepError> {
        let found = self.docker.networks(labels).await.map_err(Failure::or_fault)?;
        let mut networks = self.read_networks(&found).await?;
        networks.sort_by(|a, b| (&a.created, a.id.as_str()).cmp(&(&b.created, b.id.as_str())));
        Ok(networks.into_iter().next())
    }

    async fn create_network(&self, name: &str, labels: &[Label]) -> Result<Network, StepError> {
        let mut taken: Vec<Ipv4Net> = Vec::new();
        for _ in 0..MOST_TRIES {
            let everyone = self.docker.networks(&[]).await.map_err(Failure::or_fault)?;
            let others = self.read_networks(&everyone).await?;
            let others = others.iter().flat_map(|network| &network.subnets).chain(&taken).copied().collect();
            let neighbours = neighbours().await.map_err(|error| {
                StepError::Fault(format!("the routes of this machine cannot be read: {error}"))
            })?;
            let subnet = best_free(self.options.network_pool, others, neighbours).ok_or_else(|| {
                StepError::Fault("there is no room for another network in the pool".to_owned())
            })?;
            match self.docker.create_network(name, subnet, labels).await {
                Ok(ours) => {
                    let Some(network) = self.oldest_network(labels).await? else { continue };
                    if network.id != ours {
                        // Nobody uses it yet.
                        let _left_behind = self.docker.remove_network(&ours).await;
                    }
                    return Ok(network);
                }
                // The engine gives a subnet to one caller only: perhaps to one with the same wish.
                Err(failure) if failure.says("overlaps") => match self.oldest_network(labels).await? {
                    Some(network) => return Ok(network),
                    None => taken.push(subnet),
                },
                Err(failure) if failure.says("already exists") => match self.oldest_network(labels).await? {
                    Some(network) => return Ok(network),
                    None => return Err(failure.or_fault()),
                },
                Err(failure) => return Err(failure.or_fault()),
            }
        }
        Err(StepError::Fault("every subnet that was tried for a network was taken".to_owned()))
    }

    /// The networks with these ids that are still there.
    pub(super) async fn read_networks(&self, networks: &[NetworkId]) -> Result<Vec<Network>, StepError> {
        let records = self.docker.inspect_networks(networks).await.map_err(Failure::or_fault)?;
        Ok(records.iter().filter_map(Network::read).collect())
    }
}

/// The lowest subnet that is neither another network's nor a neighbour's; where neighbours fill the
/// pool, the lowest one inside of a wider neighbour, whose other addresses are reached as before.
fn best_free(pool: Ipv4Net, others: Vec<Ipv4Net>, neighbours: Vec<Ipv4Net>) -> Option<Ipv4Net> {
    let without = |neighbours: &[Ipv4Net]| lowest_free(pool, [&others, neighbours].concat());
    let narrow = |neighbour: &Ipv4Net| neighbour.prefix_len() >= pool.prefix_len().max(PREFIX);
    without(&neighbours).or_else(|| {
        let narrow = neighbours.into_iter().filter(narrow).collect::<Vec<_>>();
        without(&narrow)
    })
}

/// The lowest subnet of the pool that shares no address with others.
fn lowest_free(pool: Ipv4Net, taken: Vec<Ipv4Net>) -> Option<Ipv4Net> {
    let overlaps = |one: &Ipv4Net, other: &Ipv4Net| one.contains(other) || other.contains(one);
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
    fn a_subnet_of_a_neighbour_is_avoided_while_there_is_another() {
        let pool = net("10.0.0.0/23");
        for (others, neighbours, best) in [
            (vec![], vec!["10.0.0.0/24"], Some("10.0.1.0/24")),
            (vec!["10.0.1.0/24"], vec!["10.0.0.128/32"], None),
            // A wide one that holds the whole pool leaves no choice.
            (vec![], vec!["10.0.0.0/8"], Some("10.0.0.0/24")),
            (vec![], vec!["10.0.0.0/8", "10.0.0.0/24"], Some("10.0.1.0/24")),
            (vec!["10.0.0.0/24", "10.0.1.0/24"], vec!["10.0.0.0/8"], None),
        ] {
            let nets = |texts: Vec<&str>| texts.into_iter().map(net).collect();
            assert_eq!(best_free(pool, nets(others), nets(neighbours)), best.map(net));
        }
    }

    #[test]
    fn a_small_pool_is_one_network() {
        assert_eq!(lowest_free(net("10.0.0.64/26"), vec![]), Some(net("10.0.0.64/26")));
        assert_eq!(lowest_free(net("10.0.0.64/26"), vec![net("10.0.0.65/32")]), None);
    }
}
