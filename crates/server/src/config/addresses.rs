//! Addresses that two settings cannot share.

use std::net::{IpAddr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Returns whether a network overlaps the container address pool, also one in IPv6 notation.
pub(super) fn has_containers(network: &IpNet, pool: &Ipv4Net) -> bool {
    match network {
        IpNet::V4(network) => network.contains(pool) || pool.contains(network),
        IpNet::V6(network) => {
            let mapped = Ipv6Net::new(pool.network().to_ipv6_mapped(), 96 + pool.prefix_len());
            mapped.is_ok_and(|mapped| network.contains(&mapped) || mapped.contains(network))
        }
    }
}

/// Returns whether a listener on `one` and a listener on `other` would conflict. Port 0 takes a free port,
/// and never conflicts.
pub(super) fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (first, second) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() == other.port()
        && one.port() != 0
        && (first == second || covers(first, second) || covers(second, first))
}

/// Returns whether a listener on `all` gets the connections to `address`. On Linux the unspecified address
/// of IPv6 includes IPv4.
fn covers(all: IpAddr, address: IpAddr) -> bool {
    match all {
        IpAddr::V4(all) => all.is_unspecified() && address.is_ipv4(),
        IpAddr::V6(all) => all.is_unspecified(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_with_an_address_of_the_pool_is_found() {
        let pool = "10.192.0.0/12".parse().unwrap();
        for (network, expected) in [
            ("10.0.0.0/8", true),
            ("0.0.0.0/0", true),
            ("10.192.0.0/12", true),
            ("10.200.1.7/32", true),
            ("::/0", true),
            ("::ffff:10.200.1.7/128", true),
            ("10.0.0.0/9", false),
            ("10.208.0.0/12", false),
            ("127.0.0.1/32", false),
            ("fd00::/8", false),
            ("::ffff:10.0.0.0/105", false),
        ] {
            assert_eq!(has_containers(&network.parse().unwrap(), &pool), expected, "{network}");
        }
    }

    #[test]
    fn listeners_overlap_on_one_port_of_one_address() {
        for (one, other, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080", true),
            ("0.0.0.0:8080", "127.0.0.1:8080", true),
            ("0.0.0.0:8080", "0.0.0.0:8080", true),
            ("[::]:8080", "127.0.0.1:8080", true),
            ("[::]:8080", "0.0.0.0:8080", true),
            ("[::]:8080", "[::1]:8080", true),
            ("[::ffff:127.0.0.1]:8080", "127.0.0.1:8080", true),
            ("127.0.0.1:8080", "127.0.0.1:8000", false),
            ("127.0.0.1:8080", "127.0.0.2:8080", false),
            ("0.0.0.0:8080", "[::1]:8080", false),
            ("127.0.0.1:8080", "[::1]:8080", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
            ("0.0.0.0:0", "0.0.0.0:0", false),
        ] {
            let (a, b): (SocketAddr, SocketAddr) = (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!((overlap(a, b), overlap(b, a)), (expected, expected), "{one} and {other}");
        }
    }
}
