//! How many connections each client has, so that none can have them all.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The clients that are here.
#[derive(Debug, Default)]
pub(crate) struct Crowd(Mutex<HashMap<IpAddr, usize>>);

/// A connection's place among those of its client.
#[derive(Debug)]
pub(crate) struct Seat {
    crowd: Arc<Crowd>,
    client: IpAddr,
}

impl Crowd {
    /// A place for one more connection; `None` when the client has `most` already.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<Seat> {
        let client = client_of(address);
        let mut clients = self.lock();
        let connections = clients.entry(client).or_default();
        if *connections >= most {
            return None;
        }
        *connections += 1;
        Some(Seat { crowd: Arc::clone(self), client })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut clients = self.crowd.lock();
        if let Some(connections) = clients.get_mut(&self.client) {
            *connections -= 1;
            if *connections == 0 {
                clients.remove(&self.client);
            }
        }
    }
}

/// Who has one address of IPv6 has the 2⁶⁴ of its network.
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
        let crowd = Arc::new(Crowd::default());
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let one = crowd.admit(address("192.0.2.1"), 2).unwrap();
        let _two = crowd.admit(address("::ffff:192.0.2.1"), 2).unwrap();
        assert!(crowd.admit(address("192.0.2.1"), 2).is_none());
        let _other = crowd.admit(address("192.0.2.2"), 2).unwrap();
        drop(one);
        assert!(crowd.admit(address("192.0.2.1"), 2).is_some());
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let crowd = Arc::new(Crowd::default());
        let _one = crowd.admit("2001:db8::1".parse().unwrap(), 1).unwrap();
        assert!(crowd.admit("2001:db8::2".parse().unwrap(), 1).is_none());
        assert!(crowd.admit("2001:db8:0:1::1".parse().unwrap(), 1).is_some());
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let crowd = Arc::new(Crowd::default());
        drop(crowd.admit("192.0.2.1".parse().unwrap(), 1));
        assert!(crowd.lock().is_empty());
    }
}
