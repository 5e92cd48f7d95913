//! Limits the number of connections of each client.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The number of connections of each client.
#[derive(Debug, Default)]
pub(crate) struct ConnectionLimiter(Mutex<HashMap<IpAddr, usize>>);

/// A permit for one connection of a client.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    connection_limiter: Arc<ConnectionLimiter>,
    client: IpAddr,
}

impl ConnectionLimiter {
    /// Returns a permit for one more connection, or `None` if the client already has `most`.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<ConnectionPermit> {
        let client = client_of(address);
        let mut clients = self.lock();
        let connections = clients.entry(client).or_default();
        if *connections >= most {
            return None;
        }
        *connections += 1;
        Some(ConnectionPermit { connection_limiter: Arc::clone(self), client })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut clients = self.connection_limiter.lock();
        if let Some(connections) = clients.get_mut(&self.client) {
            *connections -= 1;
            if *connections == 0 {
                clients.remove(&self.client);
            }
        }
    }
}

/// Returns the key of a client. An IPv6 client is its /64 network, because it has all 2⁶⁴ addresses.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_so_many_places_and_gets_them_back() {
        let connection_limiter = Arc::new(ConnectionLimiter::default());
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let one = connection_limiter.admit(address("192.0.2.1"), 2).unwrap();
        let _two = connection_limiter.admit(address("::ffff:192.0.2.1"), 2).unwrap();
        assert!(connection_limiter.admit(address("192.0.2.1"), 2).is_none());
        let _other = connection_limiter.admit(address("192.0.2.2"), 2).unwrap();
        drop(one);
        assert!(connection_limiter.admit(address("192.0.2.1"), 2).is_some());
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let connection_limiter = Arc::new(ConnectionLimiter::default());
        let _one = connection_limiter.admit("2001:db8::1".parse().unwrap(), 1).unwrap();
        assert!(connection_limiter.admit("2001:db8::2".parse().unwrap(), 1).is_none());
        assert!(connection_limiter.admit("2001:db8:0:1::1".parse().unwrap(), 1).is_some());
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let connection_limiter = Arc::new(ConnectionLimiter::default());
        drop(connection_limiter.admit("192.0.2.1".parse().unwrap(), 1));
        assert!(connection_limiter.lock().is_empty());
    }
}
