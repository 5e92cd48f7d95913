//! Looks up domains by the resolver of the machine, which also knows `/etc/hosts`.

use std::{net::IpAddr, time::Duration};

use async_trait::async_trait;
use launchway_domain::{applications::Hostname, certificates::DomainResolver};
use tokio::{net::lookup_host, time::timeout};

/// The timeout of a lookup.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The resolver of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl DomainResolver for SystemResolver {
    async fn addresses(&self, domain: &Hostname) -> Result<Vec<IpAddr>, String> {
        look_up(domain.as_str()).await
    }
}

async fn look_up(name: &str) -> Result<Vec<IpAddr>, String> {
    // The port is not part of the lookup.
    let found = timeout(TIMEOUT, lookup_host((name, 0))).await;
    let found = found.map_err(|_elapsed| format!("the lookup took longer than {} s", TIMEOUT.as_secs()))?;
    let found = found.map_err(|error| error.to_string())?;
    let mut addresses: Vec<IpAddr> = found.map(|address| address.ip().to_canonical()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_of_the_machine_are_found_and_unknown_ones_are_not() {
        let local = look_up("localhost").await.unwrap();
        assert!(!local.is_empty() && local.iter().all(IpAddr::is_loopback), "{local:?}");
        assert!(local.is_sorted_by(|one, next| one < next), "{local:?}");
        let reason = SystemResolver.addresses(&"shop.invalid".parse().unwrap()).await.unwrap_err();
        assert!(!reason.is_empty());
    }
}
