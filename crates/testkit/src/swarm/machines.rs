//! The machines of a laboratory: network namespaces on a switch of their own.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use super::{HOST_ADDRESS, SwarmLab};

/// The namespace of the switch. On the machine's own bridges its packet filter could drop packets.
const SWITCH: &str = "lwt-switch";
/// The interface of this machine that is connected to the switch.
const HOST: &str = "lwt-host";

/// Ends the engines and servers of a test that was killed, and removes its namespaces and files.
pub(super) fn remove_leftovers(folder: &Path) {
    for home in fs::read_dir(folder).into_iter().flatten().flatten() {
        for file in ["pid", "exec/containerd/containerd.pid"] {
            let Ok(id) = fs::read_to_string(home.path().join(file)) else { continue };
            let line = fs::read(format!("/proc/{}/cmdline", id.trim())).unwrap_or_default();
            if String::from_utf8_lossy(&line).contains(&folder.display().to_string()) {
                let _ = Command::new("kill").args(["-s", "KILL", id.trim()]).status();
            }
        }
    }
    let namespaces = Command::new("ip").args(["netns", "list"]).output().unwrap().stdout;
    for line in String::from_utf8_lossy(&namespaces).lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        if name.starts_with("lwt-") {
            end_processes(name);
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
    let _ = Command::new("ip").args(["link", "delete", HOST]).stderr(Stdio::null()).status();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut mounts: Vec<&str> = mounts.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    mounts.retain(|mount| Path::new(mount).starts_with(folder));
    for mount in mounts.iter().rev() {
        let _ = Command::new("umount").args(["--lazy", mount]).status();
    }
    let _ = fs::remove_dir_all(folder);
}

/// Ends what runs in the network of a node: engines, servers, and front proxies, which outlive their servers.
fn end_processes(namespace: &str) {
    let listed = Command::new("ip").args(["netns", "pids", namespace]).output().unwrap().stdout;
    for process in String::from_utf8_lossy(&listed).lines() {
        let _ = Command::new("kill").args(["-s", "KILL", process.trim()]).status();
    }
}

pub(super) fn make_switch() {
    ip(&["netns", "add", SWITCH]);
    ip(&["-n", SWITCH, "link", "add", "br0", "type", "bridge"]);
    ip(&["-n", SWITCH, "link", "set", "br0", "up"]);
    ip(&["link", "add", HOST, "type", "veth", "peer", "name", "lwt-h", "netns", SWITCH]);
    ip(&["-n", SWITCH, "link", "set", "lwt-h", "master", "br0", "up"]);
    ip(&["address", "add", &format!("{HOST_ADDRESS}/24"), "dev", HOST]);
    ip(&["link", "set", HOST, "up"]);
}

pub(super) fn make_node(node: usize) {
    let (space, cable) = (SwarmLab::hostname(node), cable(node));
    ip(&["netns", "add", &space]);
    ip(&["link", "add", &cable, "netns", SWITCH, "type", "veth", "peer", "name", "eth0", "netns", &space]);
    ip(&["-n", SWITCH, "link", "set", &cable, "master", "br0", "up"]);
    ip(&["-n", &space, "address", "add", &format!("10.78.0.{}/24", 10 + node), "dev", "eth0"]);
    ip(&["-n", &space, "link", "set", "eth0", "up"]);
    ip(&["-n", &space, "link", "set", "lo", "up"]);
}

fn cable(node: usize) -> String {
    format!("lwt-v{node}")
}

fn ip(arguments: &[&str]) {
    let output =
        Command::new("ip").args(arguments).output().expect("this test needs ip, of the package iproute2");
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Disconnects the network cable of a node.
pub(super) fn disconnect(node: usize) {
    ip(&["-n", SWITCH, "link", "set", &cable(node), "down"]);
}

/// Connects the network cable of a node again.
pub(super) fn connect(node: usize) {
    ip(&["-n", SWITCH, "link", "set", &cable(node), "up"]);
}
