//! The static addresses of containers.
//!
//! A route names a container by its address, so that an address is the identity of an upstream. One that
//! the engine chooses changes with a restart of the container, and may have belonged to another container
//! just before. So each container that can be routed to has an address that was chosen here, which the
//! engine assigns it again at every start.
//!
//! **Invariant:** a container that a route can name has an address that was assigned here, and keeps it.
//! The engine assigns addresses only from the top quarter of a network (decision 34).

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use ipnet::Ipv4Net;

/// The time for which an address stays reserved after its container was created: a list of containers that
/// was requested earlier does not include it.
const HELD_AFTERWARDS: Duration = Duration::from_secs(60);
/// The longest prefix of a subnet that is divided between the engine and us.
const LONGEST_DIVIDED: u8 = 28;

/// The addresses of a network that may be assigned to containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddressRange {
    pub(super) subnet: Ipv4Net,
    /// The part of the subnet from which the engine assigns addresses itself; all of it if `None`.
    pub(super) engine_range: Option<Ipv4Net>,
    pub(super) gateway: Option<Ipv4Addr>,
}

impl AddressRange {
    /// Returns the addresses of a new network: the first one is the gateway's, and the engine assigns the
    /// top quarter.
    pub(super) fn divide(subnet: Ipv4Net) -> Self {
        let quarter = (subnet.prefix_len() <= LONGEST_DIVIDED)
            .then(|| subnet.subnets(subnet.prefix_len() + 2).ok()?.last())
            .flatten();
        Self { subnet, engine_range: quarter, gateway: subnet.hosts().next() }
    }

    /// Returns the next free address after `last` in the range, wrapping around at its end. So the address
    /// that was free for longest is taken first.
    ///
    /// In a network without a range of its own the engine assigns addresses from the lowest up. There, ours
    /// come from the upper half as long as it has free ones.
    pub(super) fn choose(&self, taken: &HashSet<Ipv4Addr>, last: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
        let first = self.subnet.hosts().next();
        let is_free = |address: &Ipv4Addr| {
            Some(*address) != first
                && Some(*address) != self.gateway
                && !self.engine_range.is_some_and(|range| range.contains(address))
                && !taken.contains(address)
        };
        let free: Vec<Ipv4Addr> = self.subnet.hosts().filter(is_free).collect();
        let is_upper = |address: &&Ipv4Addr| self.engine_range.is_some() || **address >= self.middle();
        let upper: Vec<Ipv4Addr> = free.iter().filter(is_upper).copied().collect();
        let candidates = if upper.is_empty() { free } else { upper };
        let next = candidates.iter().find(|address| last.is_none_or(|last| **address > last));
        next.or(candidates.first()).copied()
    }

    fn middle(&self) -> Ipv4Addr {
        let (low, high) = (u32::from(self.subnet.network()), u32::from(self.subnet.broadcast()));
        Ipv4Addr::from(low + (high - low).div_ceil(2))
    }
}

/// An address that a container has, or had when it last ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TakenAddress {
    pub(super) address: Ipv4Addr,
    /// The time at which the container was created, in seconds since 1970.
    pub(super) created: i64,
}

/// The addresses that this process is assigning to containers, for each network.
#[derive(Debug, Clone, Default)]
pub(super) struct AddressBook(Arc<Mutex<HashMap<String, Page>>>);

#[derive(Debug, Default)]
struct Page {
    last: Option<Ipv4Addr>,
    /// The reserved addresses, with the time of their release if they were released recently.
    held: HashMap<Ipv4Addr, Option<Instant>>,
}

/// An address that is reserved until this value is dropped.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) address: Ipv4Addr,
    network: String,
    book: AddressBook,
}

impl AddressBook {
    /// Assigns a free address of `network`. `taken` are the addresses in a list that was requested at
    /// `listed_at`; none of `reserved` is assigned either. Returns `None` when there is no other.
    pub(super) fn assign(
        &self,
        network: &str,
        range: AddressRange,
        taken: &[TakenAddress],
        reserved: &[IpAddr],
        listed_at: Instant,
    ) -> Option<Assignment> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let page = pages.entry(network.to_owned()).or_default();
        page.held.retain(|_, released| released.is_none_or(|at| at.elapsed() < HELD_AFTERWARDS));
        let held = page.held.iter().filter(|(_, released)| released.is_none_or(|at| at >= listed_at));
        let held = held.map(|(address, _)| *address);
        let reserved = reserved.iter().filter_map(|address| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        });
        let unusable = taken.iter().map(|taken| taken.address).chain(held).chain(reserved).collect();
        let newest = taken.iter().filter(|taken| range.subnet.contains(&taken.address));
        // Of those of one second the last one has the highest address, except at the end of the range.
        let newest = newest.max_by_key(|taken| (taken.created, taken.address)).map(|taken| taken.address);
        let address = range.choose(&unusable, page.last.or(newest))?;
        page.last = Some(address);
        page.held.insert(address, None);
        Some(Assignment { address, network: network.to_owned(), book: self.clone() })
    }

    /// Reserves one address of `network`, unless it is reserved already.
    pub(super) fn hold(&self, network: &str, address: Ipv4Addr) -> Option<Assignment> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let page = pages.entry(network.to_owned()).or_default();
        if page.held.get(&address).is_some_and(Option::is_none) {
            return None;
        }
        page.held.insert(address, None);
        Some(Assignment { address, network: network.to_owned(), book: self.clone() })
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        let mut pages = self.book.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = pages.get_mut(&self.network) {
            page.held.insert(self.address, Some(Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests;
