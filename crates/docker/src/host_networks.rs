//! The networks that the machine already has routes to: its own, those of a VPN, unmanaged bridges.
//!
//! The engine checks them only when it chooses a subnet itself.

use std::{io, net::Ipv4Addr};

use ipnet::Ipv4Net;
use tokio::fs;

/// The kernel's routing table; below the process, where a confined one can read it too.
const ROUTES: &str = "/proc/self/net/route";

/// Returns every network that there is a route to, except for the default route.
pub(super) async fn host_networks() -> io::Result<Vec<Ipv4Net>> {
    match fs::read_to_string(ROUTES).await {
        Ok(table) => Ok(read(&table)),
        // Another system, or a kernel without it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn read(table: &str) -> Vec<Ipv4Net> {
    let networks = table.lines().skip(1).filter_map(destination);
    networks.filter(|network| network.prefix_len() > 0).collect()
}

/// The second and the eighth column are numbers in the machine's byte order.
fn destination(line: &str) -> Option<Ipv4Net> {
    let mut columns = line.split_whitespace();
    let mut address = |nth| {
        let number = u32::from_str_radix(columns.nth(nth)?, 16).ok()?;
        Some(Ipv4Addr::from(number.to_ne_bytes()))
    };
    let (network, mask) = (address(1)?, address(5)?);
    Ipv4Net::with_netmask(network, mask).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn every_route_but_the_default_one_is_returned() {
        let table = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
br-8b8369e60d9c\t0000C00A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
tun0\t0000000A\t00000000\t0001\t0\t0\t50\t000000FF\t0\t0\t0
wg0\t0502C00A\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0
eth0\tnot a number\t00000000\t0001
";
        let networks = read(table).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(networks, ["10.192.0.0/24", "10.0.0.0/8", "10.192.2.5/32"]);
    }
}
