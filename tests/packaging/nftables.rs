//! The optional nftables rules: they load, and drop what they should, in network namespaces of the
//! test.
//!
//! Needs root, and the packages `nftables`, `iproute2`, `bash` and `busybox-static`.

use crate::{
    namespaces::{Namespace, run},
    packaging,
};

const METADATA: &str = "169.254.169.254";
const MACHINE: &str = "10.192.0.1";
const CONTAINER: &str = "10.192.0.2";

#[test]
fn the_rules_keep_containers_from_the_machine_and_metadata() {
    let (machine, container, metadata) = (Namespace::new("m"), Namespace::new("c"), Namespace::new("d"));
    machine.connect(&format!("{MACHINE}/24"), &container, &format!("{CONTAINER}/24"));
    machine.connect("169.254.169.1/24", &metadata, &format!("{METADATA}/24"));
    machine.exec("sysctl -q -w net.ipv4.ip_forward=1");
    container.exec(&format!("ip route add default via {MACHINE}"));
    metadata.exec("ip route add default via 169.254.169.1");
    let _servers = [machine.serve(80), machine.serve(8080), container.serve(8080), metadata.serve(80)];

    for (address, port) in [(METADATA, 80), (MACHINE, 80), (MACHINE, 8080)] {
        assert!(container.reaches_soon(address, port), "{address}:{port} without the rules");
    }
    let rules = packaging("nftables/launchway.nft").display().to_string();
    run(&format!("nft --check --file {rules}"));
    // A second time replaces the first.
    for _ in 0..2 {
        machine.exec(&format!("nft --file {rules}"));
    }
    for (address, port, is_reached) in [(METADATA, 80, false), (MACHINE, 80, true), (MACHINE, 8080, false)] {
        assert_eq!(container.reaches(address, port), is_reached, "{address}:{port} with the rules");
    }
    assert!(machine.reaches(CONTAINER, 8080), "the machine reaches its containers");
    machine.exec("nft delete table inet launchway");
    assert!(container.reaches(METADATA, 80), "the rules are gone");
}
