//! The optional nftables rules: they load, and drop what they should, in network namespaces of the
//! test.
//!
//! Needs root, and the packages `nftables`, `iproute2`, `bash` and `busybox-static`.

use std::process::{Child, Command, Stdio};

use crate::packaging;

const METADATA: &str = "169.254.169.254";
const MACHINE: &str = "10.192.0.1";
const CONTAINER: &str = "10.192.0.2";

fn run(words: &str) {
    let mut parts = words.split(' ');
    let output = Command::new(parts.next().unwrap()).args(parts).output().unwrap();
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A network namespace; removed when dropped.
struct Namespace(String);

impl Namespace {
    fn new(role: &str) -> Self {
        let name = format!("lw{role}{}", std::process::id());
        run(&format!("ip netns add {name}"));
        let made = Self(name);
        made.exec("ip link set lo up");
        made
    }

    fn exec(&self, words: &str) {
        run(&format!("ip netns exec {} {words}", self.0));
    }

    /// Connects two namespaces, each end with its address.
    fn connect(&self, address: &str, other: &Self, other_address: &str) {
        let link = format!("a{}", &other.0[2..]);
        run(&format!("ip link add {link} netns {} type veth peer name up0 netns {}", self.0, other.0));
        self.exec(&format!("ip addr add {address} dev {link}"));
        self.exec(&format!("ip link set {link} up"));
        other.exec(&format!("ip addr add {other_address} dev up0"));
        other.exec("ip link set up0 up");
    }

    /// Listens on a port.
    fn serve(&self, port: u16) -> Server {
        let port = port.to_string();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, "busybox", "httpd", "-f", "-p", &port, "-h", "/etc"]);
        Server(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Returns whether a connection from here is accepted within two seconds.
    fn reaches(&self, address: &str, port: u16) -> bool {
        let script = format!("exec 3<>/dev/tcp/{address}/{port}");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, "timeout", "2", "bash", "-c", &script]);
        command.stderr(Stdio::null()).status().unwrap().success()
    }

    /// Waits for a server.
    fn reaches_soon(&self, address: &str, port: u16) -> bool {
        (0..50).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            self.reaches(address, port)
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _removed = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// A program that is killed when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

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
