//! The rules of `launchway node prepare`: containers open no connection to the machines of a Swarm.
//!
//! Needs root, and the packages `iptables`, `iproute2`, `bash` and `busybox-static`.

use std::process::Output;

use launchway_testkit::server::binary;

use crate::namespaces::Namespace;

const NETWORK: &str = "10.78.7.0/24";
const MACHINE: &str = "10.78.7.11";
const OTHER: &str = "10.78.7.12";
const INTERNET: &str = "203.0.113.2";
/// Ports of containers that the machines publish.
const NODE_PORT: u16 = 10_000;
/// The bridges of builds with BuildKit, of extensions from before the Swarm, and of services.
const BRIDGES: [&str; 3] = ["docker0", "br-0123456789ab", "docker_gwbridge"];

/// The address of the machine in an overlay network.
const IN_OVERLAY: &str = "10.79.0.1";
const OVERLAY: &str = "vxlan id 4097 dstport 4789";

/// Adds the rules as the unit does: without an engine.
fn add_rules(machine: &Namespace) -> Output {
    let mut command = machine.command(&binary());
    command.args(["node", "prepare", "--address", MACHINE, "--network", NETWORK, "--packet-filter-only"]);
    command.env("DOCKER_HOST", "unix:///nonexistent/docker.sock").output().unwrap()
}

#[test]
fn containers_of_every_bridge_reach_no_machine() {
    let (machine, other, internet) = (Namespace::new("m"), Namespace::new("o"), Namespace::new("i"));
    machine.exec("sysctl -q -w net.ipv4.ip_forward=1");
    // The interface of the private network is a bridge of the machine.
    machine.connect_by("br-private", &format!("{MACHINE}/24"), &other, &format!("{OTHER}/24"));
    machine.connect("203.0.113.1/24", &internet, &format!("{INTERNET}/24"));
    internet.exec("ip route add default via 203.0.113.1");
    other.exec(&format!("ip route add 172.16.0.0/12 via {MACHINE}"));
    let containers: Vec<(&str, Namespace)> = BRIDGES
        .into_iter()
        .zip(17..)
        .map(|(bridge, subnet)| {
            let container = Namespace::new(&format!("c{subnet}"));
            let gateway = format!("172.{subnet}.0.1");
            machine.connect_by(bridge, &format!("{gateway}/16"), &container, &format!("172.{subnet}.0.2/16"));
            container.exec(&format!("ip route add default via {gateway}"));
            // It sends packets of the overlay network to the machine, as another machine would.
            container.exec(&format!("ip link add vx0 type {OVERLAY} remote {gateway}"));
            container.exec(&format!("ip addr add 10.79.0.{subnet}/24 dev vx0"));
            container.exec("ip link set vx0 up");
            (bridge, container)
        })
        .collect();
    machine.exec(&format!("ip link add vx0 type {OVERLAY} local {MACHINE}"));
    machine.exec(&format!("ip addr add {IN_OVERLAY}/24 dev vx0"));
    machine.exec("ip link set vx0 up");
    // A container is published at the machine, as by an engine that does not isolate its networks.
    let published = "172.19.0.2:8080";
    machine.exec(&format!(
        "iptables -t nat -A PREROUTING ! -i docker_gwbridge -d {MACHINE} -p tcp --dport {NODE_PORT} -j DNAT --to {published}"
    ));
    let _servers = [
        machine.serve(80),
        other.serve(NODE_PORT),
        other.serve(5000),
        internet.serve(443),
        containers[2].1.serve(8080),
    ];

    assert!(other.reaches_soon(MACHINE, NODE_PORT), "front proxies reach the published port");
    for (bridge, container) in &containers {
        for (address, port) in
            [(OTHER, NODE_PORT), (OTHER, 5000), (INTERNET, 443), (MACHINE, 80), (IN_OVERLAY, 80)]
        {
            assert!(container.reaches_soon(address, port), "{bridge}: {address}:{port} without the rules");
        }
    }
    for (bridge, container) in &containers[..2] {
        assert!(container.reaches(MACHINE, NODE_PORT), "{bridge}: the own machine without the rules");
    }

    // A second time changes nothing.
    for _ in 0..2 {
        let output = add_rules(&machine);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let listed = machine.command("iptables".as_ref()).arg("--list-rules").output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    assert_eq!(listed.matches("-j REJECT").count(), 6, "{listed}");
    // Docker calls the chain when it starts.
    machine.exec("iptables --insert FORWARD --jump DOCKER-USER");

    for (bridge, container) in &containers {
        for (address, port) in [(OTHER, NODE_PORT), (OTHER, 5000), (MACHINE, NODE_PORT), (IN_OVERLAY, 80)] {
            assert!(!container.reaches(address, port), "{bridge}: {address}:{port} with the rules");
        }
        assert!(container.reaches(INTERNET, 443), "{bridge}: the internet with the rules");
        let is_builder = *bridge != "docker_gwbridge";
        assert_eq!(container.reaches(MACHINE, 80), is_builder, "{bridge}: the front proxy of its machine");
    }
    assert!(other.reaches(MACHINE, NODE_PORT), "front proxies reach the published port");
}

#[test]
fn an_address_outside_of_the_network_adds_no_rule() {
    let machine = Namespace::new("n");
    let mut command = machine.command(&binary());
    command.args(["node", "prepare", "--address", "10.0.0.1", "--network", NETWORK, "--packet-filter-only"]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("is not in the network"), "{stderr}");
    let listed = machine.command("iptables".as_ref()).arg("--list-rules").output().unwrap().stdout;
    assert!(!String::from_utf8_lossy(&listed).contains("DOCKER-USER"));
}
