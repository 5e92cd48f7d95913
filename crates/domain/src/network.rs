//! Addresses that may be reached although they are not everyone's.

use std::net::IpAddr;

use ipnet::IpNet;

/// A network and a port that the operator allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedEndpoint {
    /// The network.
    pub network: IpNet,
    /// The port.
    pub port: u16,
}

impl AllowedEndpoint {
    /// Whether `address` and `port` are among what is allowed.
    #[must_use]
    pub fn covers(&self, address: IpAddr, port: u16) -> bool {
        self.port == port && self.network.contains(&address.to_canonical())
    }
}

/// Whether an address leads back to this machine or to its link, where what answers is nobody's
/// repository.
#[must_use]
pub fn is_loopback_or_link_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.is_unspecified() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local(),
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
    fn this_machine_and_its_link_are_told_from_the_rest() {
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
}
