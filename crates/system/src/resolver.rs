//! Resolves host names. Callers resolve once, and use only the result.

use std::{
    fmt::Debug,
    io,
    net::{IpAddr, ToSocketAddrs as _},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};

/// Resolves host names.
#[async_trait]
pub trait Resolver: Debug + Send + Sync {
    /// Returns the addresses of `name`, in the order in which they are to be tried.
    ///
    /// # Errors
    /// [`io::Error`] when there is no such name, or no server answers.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Resolves with this machine's files and name servers.
///
/// A lookup occupies a thread until it is answered, even if the caller is gone, and a tenant who names a
/// host may also control its name servers. So that tenants cannot occupy all threads of the process, the
/// number of concurrent lookups is limited; others wait.
#[derive(Debug, Clone)]
pub struct SystemResolver {
    places: Arc<Semaphore>,
}

impl SystemResolver {
    /// The most concurrent lookups.
    const PLACES: usize = 16;
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(Self::PLACES)) }
    }
}

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)?;
        let name = name.to_owned();
        let asked = spawn_blocking(move || {
            // The port is irrelevant for the lookup.
            let found = (name.as_str(), 0).to_socket_addrs();
            // Not before: the lookup outlives its caller.
            drop(place);
            found
        });
        let found = asked.await.map_err(io::Error::other)??;
        let mut addresses: Vec<_> = found.map(|found| found.ip()).collect();
        addresses.dedup();
        Ok(addresses)
    }
}

/// Returns the addresses of a host, which may itself be an address. `None` if there are none, or if the
/// lookup timed out.
pub async fn look_up(resolver: &dyn Resolver, host: &str, max_wait: Duration) -> Option<Vec<IpAddr>> {
    if let Ok(address) = host.parse() {
        return Some(vec![address]);
    }
    let addresses = timeout(max_wait, resolver.resolve(host)).await.ok()?.ok()?;
    (!addresses.is_empty()).then_some(addresses)
}

#[cfg(test)]
mod tests {
    use std::{future::pending, net::Ipv4Addr};

    use super::*;

    #[derive(Debug)]
    enum Odd {
        Empty,
        Broken,
        Silent,
    }

    #[async_trait]
    impl Resolver for Odd {
        async fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
            match self {
                Self::Empty => Ok(vec![]),
                Self::Broken => Err(io::Error::other("broken")),
                Self::Silent => pending().await,
            }
        }
    }

    #[tokio::test]
    async fn names_without_an_answer_have_no_addresses() {
        for odd in [Odd::Empty, Odd::Broken, Odd::Silent] {
            let addresses = look_up(&odd, "example.com", Duration::from_millis(20)).await;
            assert_eq!(addresses, None, "{odd:?}");
        }
    }

    #[tokio::test]
    async fn an_address_is_not_asked_for() {
        let addresses = look_up(&Odd::Silent, "127.0.0.1", Duration::from_secs(1)).await;
        assert_eq!(addresses, Some(vec![Ipv4Addr::LOCALHOST.into()]));
    }

    #[tokio::test]
    async fn this_machine_knows_its_own_name() {
        let addresses =
            look_up(&SystemResolver::default(), "localhost", Duration::from_secs(5)).await.unwrap();
        assert!(addresses.iter().all(IpAddr::is_loopback), "{addresses:?}");
    }
}
