//! The addresses that Launchway may connect to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A network and a port that the operator allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedEndpoint {
    /// The network.
    pub network: IpNet,
    /// The port.
    pub port: u16,
}

impl AllowedEndpoint {
    /// Returns whether `address` and `port` are allowed.
    #[must_use]
    pub fn covers(&self, address: IpAddr, port: u16) -> bool {
        self.port == port && self.network.contains(&address.to_canonical())
    }
}

/// Returns whether an address belongs to this machine or to its link, where no user's repository can be.
#[must_use]
pub fn is_loopback_or_link_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.is_unspecified() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local(),
    }
}

/// The egress policy for addresses that users choose: public addresses, and those that the operator allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutboundPolicy {
    allowed: Vec<AllowedEndpoint>,
}

impl OutboundPolicy {
    /// Permits `allowed` besides public addresses.
    #[must_use]
    pub fn allowing(allowed: Vec<AllowedEndpoint>) -> Self {
        Self { allowed }
    }

    /// Returns whether connections to `address` at `port` are permitted.
    #[must_use]
    pub fn permits(&self, address: IpAddr, port: u16) -> bool {
        is_public(address) || self.allows(address, port)
    }

    /// Returns whether the operator allows it explicitly.
    #[must_use]
    pub fn allows(&self, address: IpAddr, port: u16) -> bool {
        self.allowed.iter().any(|allowed| allowed.covers(address, port))
    }
}

/// IPv4 networks that are not public: of this machine, of this link, private, for documentation, multicast,
/// or reserved.
const NOT_PUBLIC_V4: [(Ipv4Addr, u8); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // The platform endpoint of a large cloud provider (Azure), which only its machines may reach.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The global unicast addresses of IPv6 …
const PUBLIC_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// … except for these: for protocols, for documentation, and those that contain an IPv4 address.
const NOT_PUBLIC_V6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Returns whether an address is public: not of this machine, private, or reserved.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    // An IPv4-mapped IPv6 address counts as the IPv4 address.
    match address.to_canonical() {
        IpAddr::V4(v4) => !NOT_PUBLIC_V4.into_iter().any(|(network, length)| {
            Ipv4Net::new(network, length).is_ok_and(|network| network.contains(&v4))
        }),
        IpAddr::V6(v6) => {
            let is_in =
                |(network, length)| Ipv6Net::new(network, length).is_ok_and(|network| network.contains(&v6));
            is_in(PUBLIC_V6) && !NOT_PUBLIC_V6.into_iter().any(is_in)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed_is_a_network_and_a_port_together() {
        let allowed = AllowedEndpoint { network: "10.1.0.0/16".parse().unwrap(), port: 9418 };
        for (address, port, covered) in [
            ("10.1.2.3", 9418, true),
            ("::ffff:10.1.2.3", 9418, true),
            ("10.1.2.3", 443, false),
            ("10.2.0.1", 9418, false),
        ] {
            assert_eq!(allowed.covers(address.parse().unwrap(), port), covered, "{address}:{port}");
        }
    }

    #[test]
    fn this_machine_and_its_link_are_distinguished_from_others() {
        for (address, own) in [
            ("127.0.0.1", true),
            ("127.255.0.1", true),
            ("0.0.0.0", true),
            ("169.254.169.254", true),
            ("::1", true),
            ("::", true),
            ("fe80::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("192.0.2.1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_loopback_or_link_local(address.parse().unwrap()), own, "{address}");
        }
    }

    #[test]
    fn private_addresses_are_distinguished_from_public_ones() {
        for (address, public) in [
            ("1.1.1.1", true),
            ("9.255.255.255", true),
            ("11.0.0.0", true),
            ("100.63.255.255", true),
            ("100.128.0.0", true),
            ("172.15.255.255", true),
            ("172.32.0.0", true),
            ("192.0.1.0", true),
            ("223.255.255.255", true),
            ("0.0.0.0", false),
            ("0.255.255.255", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("127.0.0.1", false),
            ("127.255.255.255", false),
            ("168.63.129.15", true),
            ("168.63.129.16", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.0.0.1", false),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("198.19.255.255", false),
            ("198.51.100.1", false),
            ("203.0.113.1", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700:4700::1111", true),
            ("2a00::1", true),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:1.1.1.1", true),
            ("::127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b:1::7f00:1", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("2002:7f00:1::1", false),
            ("3fff::1", false),
            ("4000::1", false),
            ("fc00::1", false),
            ("fd12:3456::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }

    #[test]
    fn the_operator_permits_more_by_network_and_port_only() {
        let policy = OutboundPolicy::allowing(vec![AllowedEndpoint {
            network: "127.0.0.1/32".parse().unwrap(),
            port: 9009,
        }]);
        for (address, port, permitted, allowed) in [
            ("127.0.0.1", 9009, true, true),
            ("::ffff:127.0.0.1", 9009, true, true),
            ("127.0.0.1", 80, false, false),
            ("127.0.0.2", 9009, false, false),
            ("1.1.1.1", 80, true, false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(policy.permits(address, port), permitted, "{address}:{port}");
            assert_eq!(policy.allows(address, port), allowed, "{address}:{port}");
        }
    }
}
