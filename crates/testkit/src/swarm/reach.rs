//! The places of containers, and the addresses that one container reaches.

use std::{path::Path, process::Command};

use super::SwarmLab;

/// A container on a node of the laboratory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalContainer {
    /// The number of its node.
    pub node: usize,
    /// Its id.
    pub id: String,
}

impl SwarmLab {
    /// Returns the machines of the running containers of a deployment, as the first manager sees them.
    #[must_use]
    pub fn running_on(&self, deployment: &str) -> Vec<String> {
        self.machines_with(1, &format!("launchway.deployment={deployment}"))
    }

    /// Returns the machines of the running containers of services with a label, as a manager sees them.
    #[must_use]
    pub fn machines_with(&self, manager: usize, label: &str) -> Vec<String> {
        let filter = format!("label={label}");
        let services = self.docker_at_last(manager, &["service", "ls", "--quiet", "--filter", &filter]);
        let mut machines = Vec::new();
        for service in services.lines() {
            let format = "{{.Node}} {{.CurrentState}}";
            let states = ["service", "ps", "--filter", "desired-state=running", "--format", format, service];
            // It may be removed meanwhile.
            let listed = self.try_docker(manager, &states).stdout;
            let listed = String::from_utf8_lossy(&listed).into_owned();
            let running = listed.lines().filter_map(|line| line.split_once(' '));
            let running = running.filter(|(_, state)| state.starts_with("Running"));
            machines.extend(running.map(|(machine, _)| machine.to_owned()));
        }
        machines.sort();
        machines
    }

    /// Returns the containers of a deployment on the first `nodes` nodes.
    #[must_use]
    pub fn containers_of(&self, nodes: usize, deployment: &str) -> Vec<LocalContainer> {
        let filter = format!("name=launchway-{deployment}");
        let on = |node: usize| {
            let listed = self.docker(node, &["ps", "--quiet", "--filter", &filter]);
            listed.lines().map(|id| LocalContainer { node, id: id.to_owned() }).collect::<Vec<_>>()
        };
        (1..=nodes).flat_map(on).collect()
    }

    /// Returns every address and port by which a deployment might be reached: the ports of its services at each of the first
    /// `nodes` nodes, and `port` at the addresses of its containers in their overlay and at the bridges of their nodes.
    #[must_use]
    pub fn addresses_of(&self, nodes: usize, deployment: &str, port: u16) -> Vec<String> {
        let filter = format!("label=launchway.deployment={deployment}");
        let services = self.docker(1, &["service", "ls", "--quiet", "--filter", &filter]);
        let mut addresses = Vec::new();
        for service in services.lines() {
            let format = "{{(index .Spec.EndpointSpec.Ports 0).PublishedPort}}";
            let published = self.docker(1, &["service", "inspect", "--format", format, service]);
            addresses.extend((1..=nodes).map(|node| format!("{}:{published}", self.address(node))));
        }
        for container in self.containers_of(nodes, deployment) {
            let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}";
            let listed = self.docker(container.node, &["inspect", "--format", format, &container.id]);
            addresses.extend(listed.split_whitespace().map(|address| format!("{address}:{port}")));
            addresses.push(format!("{}:{port}", self.gateway_address(container.node, &container.id)));
        }
        addresses
    }

    /// Returns the addresses and ports at which the containers of a deployment are published on a node.
    #[must_use]
    pub fn published_at(&self, node: usize, deployment: &str) -> Vec<String> {
        let format = "{{range .NetworkSettings.Ports}}{{range .}}{{.HostIp}}:{{.HostPort}} {{end}}{{end}}";
        let containers = self.containers_of(node, deployment).into_iter().filter(|one| one.node == node);
        let listed = containers.map(|one| self.docker(node, &["inspect", "--format", format, &one.id]));
        listed.flat_map(|listed| listed.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// Returns what a container gets from an address and port, `host:port`, by HTTP; nothing if there is no answer within
    /// two seconds.
    #[must_use]
    pub fn fetch_from(&self, container: &LocalContainer, target: &str) -> String {
        let line = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {}", target.replace(':', " "));
        let output = self.try_docker(container.node, &["exec", &container.id, "sh", "-c", &line]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Removes the rules of the packet filter by which containers do not reach other nodes.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn flush_rules(&self, node: usize) {
        let mut command = self.command_on(node, Path::new("iptables"));
        assert!(command.args(["--wait", "--flush", "DOCKER-USER"]).status().unwrap().success());
    }

    /// Removes all rules and chains of the packet filter of a node, as a boot does.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn remove_rules(&self, node: usize) {
        for words in [&["--flush"][..], &["--delete-chain"], &["--table", "nat", "--flush"]] {
            let mut command = self.command_on(node, Path::new("iptables"));
            assert!(command.arg("--wait").args(words).status().unwrap().success(), "{words:?}");
        }
    }

    /// Lets this machine reach containers on bridges of a node with addresses in `network`, as a server on that node does.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn route_to_containers(&self, node: usize, network: &str) {
        let mut route = Command::new("ip");
        route.args(["route", "replace", network, "via", &self.address(node)]);
        let mut rule = self.command_on(node, Path::new("iptables"));
        rule.args(["--wait", "--insert", "DOCKER-USER", "--source", super::HOST_ADDRESS, "--jump", "ACCEPT"]);
        for mut command in [route, rule] {
            assert!(command.status().unwrap().success(), "{command:?}");
        }
    }

    /// Returns the address of a container at the bridge by which it reaches the network of its node.
    fn gateway_address(&self, node: usize, container: &str) -> String {
        let process = self.docker(node, &["inspect", "--format", "{{.State.Pid}}", container]);
        let mut command = Command::new("nsenter");
        command.args([
            &format!("--net=/proc/{process}/ns/net"),
            "ip",
            "-4",
            "-o",
            "address",
            "show",
            "dev",
            "eth1",
        ]);
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let address = output.split_whitespace().skip_while(|word| *word != "inet").nth(1);
        address.and_then(|address| address.split('/').next()).expect("it has an address").to_owned()
    }
}
