//! Addresses that two listeners cannot have at the same time.

use std::net::{IpAddr, SocketAddr};

/// Reports that a listener on `one` and a listener on `other` would be in each other's way. Port 0 takes a free port, and
/// never is.
pub(super) fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (first, second) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() == other.port()
        && one.port() != 0
        && (first == second || covers(first, second) || covers(second, first))
}

/// Reports that a listener on `all` gets the connections to `address`. The unspecified address of IPv6 stands for IPv4
/// too, as Linux has it.
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
