//! A Docker Swarm on this machine: several engines, each in a network namespace of its own, and a registry.
//!
//! Needs root, `dockerd`, `docker-registry`, `ip` and `nsenter`. The engine of this machine is never touched. There is one
//! laboratory at a time, because its addresses are fixed.

use std::{
    env, fs,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use crate::{docker::save_base_image, server::binary, wait::until_within};

/// The namespace of the switch. On the machine's own bridges its packet filter could drop packets.
const SWITCH: &str = "lwt-switch";
/// The interface of this machine that is connected to the switch.
const HOST: &str = "lwt-host";
/// The address of this machine.
const HOST_ADDRESS: &str = "10.78.0.1";
const REGISTRY_PORT: u16 = 5005;
/// The time that an engine may take to start, or to join.
const START_TIME: Duration = Duration::from_secs(60);

/// A Swarm with one manager; its nodes are numbered from 1, and the first one is the manager.
pub struct SwarmLab {
    folder: PathBuf,
    engines: Vec<Child>,
    registry: Option<Child>,
    /// Released when everything else has ended.
    _lock: File,
}

impl SwarmLab {
    /// Starts `nodes` engines and the registry, and joins them to a Swarm whose nodes may run applications.
    ///
    /// # Panics
    ///
    /// If something is missing on this machine.
    #[must_use]
    pub fn start(nodes: usize) -> Self {
        let mut lab = Self::of_separate_engines(nodes);
        for node in 1..=nodes {
            let prepared = lab.prepare(node);
            assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
        }
        lab.docker(
            1,
            &["swarm", "init", "--advertise-addr", &lab.address(1), "--dispatcher-heartbeat", "2s"],
        );
        let token = lab.docker(1, &["swarm", "join-token", "--quiet", "worker"]);
        let manager = format!("{}:2377", lab.address(1));
        for node in 2..=nodes {
            let address = lab.address(node);
            lab.docker(node, &["swarm", "join", "--token", &token, "--advertise-addr", &address, &manager]);
        }
        for node in 1..=nodes {
            let name = Self::hostname(node);
            lab.docker(1, &["node", "update", "--label-add", "launchway.apps=true", &name]);
        }
        lab.start_registry();
        lab
    }

    /// Starts `nodes` engines that are in no Swarm, without a registry.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[must_use]
    pub fn of_separate_engines(nodes: usize) -> Self {
        let lock = File::create(env::temp_dir().join("launchway-test-swarm.lock")).unwrap();
        lock.lock().unwrap();
        let folder = env::temp_dir().join("launchway-test-swarm");
        remove_leftovers(&folder);
        fs::create_dir_all(&folder).unwrap();
        let mut lab = Self { folder, engines: Vec::new(), registry: None, _lock: lock };
        make_switch();
        for node in 1..=nodes {
            make_node(node);
            let engine = lab.start_engine(node);
            lab.engines.push(engine);
        }
        for node in 1..=nodes {
            until_within(START_TIME, "an engine that answers", || {
                lab.try_docker(node, &["info"]).status.success().then_some(())
            });
        }
        let image = lab.folder.join("base.tar");
        save_base_image(&image);
        lab.docker(1, &["load", "--quiet", "--input", &image.display().to_string()]);
        lab
    }

    /// Returns the settings of a server that runs on the manager.
    #[must_use]
    pub fn settings(&self) -> Vec<(String, String)> {
        let own = |name: &str, value: String| (name.to_owned(), value);
        vec![
            own("PATH", env::var("PATH").unwrap()),
            own("DOCKER_HOST", self.host(1)),
            own("LAUNCHWAY_ENGINE", "swarm".to_owned()),
            own("LAUNCHWAY_REGISTRY", self.registry()),
            own("LAUNCHWAY_IMAGE_REGISTRIES", format!("public,{}", self.registry())),
            own("LAUNCHWAY_HEALTH_TIMEOUT", "20s".to_owned()),
        ]
    }

    /// Returns the address of a node in the network of the laboratory.
    #[must_use]
    pub fn address(&self, node: usize) -> String {
        format!("10.78.0.{}", 10 + node)
    }

    /// Returns the name of the machine that a node is.
    #[must_use]
    pub fn hostname(node: usize) -> String {
        format!("lwt-node{node}")
    }

    /// Returns the host and port of the registry.
    #[must_use]
    pub fn registry(&self) -> String {
        format!("{HOST_ADDRESS}:{REGISTRY_PORT}")
    }

    /// Returns the value of `DOCKER_HOST` for a node.
    #[must_use]
    pub fn host(&self, node: usize) -> String {
        format!("unix://{}", self.home(node).join("docker.sock").display())
    }

    /// Runs docker on a node and returns its output.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn docker(&self, node: usize, arguments: &[&str]) -> String {
        let output = self.try_docker(node, arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "docker {arguments:?} on node {node}: {stderr}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Runs docker on a node.
    ///
    /// # Panics
    ///
    /// If there is no docker.
    pub fn try_docker(&self, node: usize, arguments: &[&str]) -> Output {
        let mut command = Command::new("docker");
        command.args(["--host", &self.host(node)]).args(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Returns a command that runs in the network of a node, with its engine.
    #[must_use]
    pub fn command_on(&self, node: usize, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", Self::hostname(node))).arg(program);
        command.env("DOCKER_HOST", self.host(node));
        command
    }

    /// Unplugs the network cable of a node.
    pub fn cut(&self, node: usize) {
        ip(&["-n", SWITCH, "link", "set", &cable(node), "down"]);
    }

    /// Plugs the network cable of a node in again.
    pub fn rejoin(&self, node: usize) {
        ip(&["-n", SWITCH, "link", "set", &cable(node), "up"]);
    }

    /// Returns the services with a label, by the machines of their running containers.
    #[must_use]
    pub fn running_on(&self, deployment: &str) -> Vec<String> {
        let filter = format!("label=launchway.deployment={deployment}");
        let services = self.docker(1, &["service", "ls", "--quiet", "--filter", &filter]);
        let mut machines = Vec::new();
        for service in services.lines() {
            let format = "{{.Node}} {{.CurrentState}}";
            let states = ["service", "ps", "--filter", "desired-state=running", "--format", format, service];
            let listed = self.docker(1, &states);
            let running = listed.lines().filter_map(|line| line.split_once(' '));
            let running = running.filter(|(_, state)| state.starts_with("Running"));
            machines.extend(running.map(|(machine, _)| machine.to_owned()));
        }
        machines.sort();
        machines
    }

    /// Starts the registry, or starts it again with what it had.
    ///
    /// # Panics
    ///
    /// If it is not installed.
    pub fn start_registry(&mut self) {
        let file = self.folder.join("registry.yml");
        let data = self.folder.join("registry");
        let settings = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage:\n  filesystem: {{rootdirectory: {}}}\n  delete: {{enabled: true}}\n\
             http: {{addr: \"{}\"}}\n",
            data.display(),
            self.registry()
        );
        fs::write(&file, settings).unwrap();
        let log = File::create(self.folder.join("registry.log")).unwrap();
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(&file).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.registry = Some(command.spawn().expect("this test needs the package docker-registry"));
        until_within(START_TIME, "a registry that answers", || {
            std::net::TcpStream::connect((HOST_ADDRESS, REGISTRY_PORT)).ok().map(drop)
        });
    }

    /// Stops the registry.
    pub fn stop_registry(&mut self) {
        if let Some(mut registry) = self.registry.take() {
            let _ = registry.kill();
            let _ = registry.wait();
        }
    }

    fn home(&self, node: usize) -> PathBuf {
        self.folder.join(format!("n{node}"))
    }

    fn start_engine(&self, node: usize) -> Child {
        let home = self.home(node);
        for folder in ["data", "exec"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        fs::write(home.join("daemon.json"), "{\"no-new-privileges\": true}").unwrap();
        let log = File::create(home.join("log")).unwrap();
        let option = |name: &str, value: &Path| format!("--{name}={}", value.display());
        // `ip netns exec` would hide the control groups.
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", Self::hostname(node)))
            .args(["unshare", "--uts", "sh", "-c", "hostname \"$1\"; shift; exec \"$@\"", "sh"])
            .args([&Self::hostname(node), "dockerd", "--storage-driver=overlay2"])
            .arg(option("config-file", &home.join("daemon.json")))
            .args([&option("data-root", &home.join("data")), &option("exec-root", &home.join("exec"))])
            .args([&option("pidfile", &home.join("pid")), &format!("--host={}", self.host(node))])
            .arg("--insecure-registry=10.78.0.0/24");
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().expect("this test needs nsenter, of the package util-linux")
    }

    /// Prepares a node, as its operator would.
    ///
    /// # Panics
    ///
    /// If there is no binary.
    pub fn prepare(&self, node: usize) -> Output {
        let settings = self.home(node).join("daemon.json");
        let mut command = self.command_on(node, &binary());
        command.args(["node", "prepare", "--address", &self.address(node), "--network", "10.78.0.0/24"]);
        command.arg("--engine-config").arg(settings).stdin(Stdio::null()).output().unwrap()
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

    /// Returns the address of a container at the bridge by which it reaches the network of its node.
    #[must_use]
    pub fn gateway_address(&self, node: usize, container: &str) -> String {
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

impl Drop for SwarmLab {
    fn drop(&mut self) {
        self.stop_registry();
        for engine in &self.engines {
            let _ = Command::new("kill").args(["-s", "TERM", &engine.id().to_string()]).status();
        }
        for engine in &mut self.engines {
            let _ = engine.wait();
        }
        remove_leftovers(&self.folder);
    }
}

/// Ends the engines of a test that was killed, and removes its namespaces and files.
fn remove_leftovers(folder: &Path) {
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

fn make_switch() {
    ip(&["netns", "add", SWITCH]);
    ip(&["-n", SWITCH, "link", "add", "br0", "type", "bridge"]);
    ip(&["-n", SWITCH, "link", "set", "br0", "up"]);
    ip(&["link", "add", HOST, "type", "veth", "peer", "name", "lwt-h", "netns", SWITCH]);
    ip(&["-n", SWITCH, "link", "set", "lwt-h", "master", "br0", "up"]);
    ip(&["address", "add", &format!("{HOST_ADDRESS}/24"), "dev", HOST]);
    ip(&["link", "set", HOST, "up"]);
}

fn make_node(node: usize) {
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
