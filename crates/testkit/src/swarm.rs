//! A Docker Swarm on this machine: several engines, each in a network namespace of its own, and a registry.
//!
//! Needs root, `dockerd`, `docker-registry`, `ip` and `nsenter`. The engine of this machine is never touched. There is one
//! laboratory at a time, because its addresses are fixed.

mod machines;
mod reach;

use std::{
    env, fs,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::Duration,
};

use self::machines::{make_node, make_switch, remove_leftovers};
pub use self::reach::LocalContainer;
use crate::{
    SHARED,
    docker::save_base_image,
    registry::{RegistryOptions, TestRegistry},
    server::binary,
    wait::until,
};

/// The address of this machine.
const HOST_ADDRESS: &str = "10.78.0.1";
/// The network of all machines.
const NETWORK: &str = "10.78.0.0/24";
const REGISTRY_PORT: u16 = 5005;
/// The heartbeat of nodes that `docs/several-machines.md` recommends.
const HEARTBEAT: &str = "4s";

/// A Swarm, whose nodes are numbered from 1. The first ones are managers.
pub struct SwarmLab {
    folder: PathBuf,
    /// The program that prepares nodes.
    program: PathBuf,
    engines: Vec<Child>,
    registry: Option<TestRegistry>,
    /// Released when everything else has ended.
    _lock: File,
}

impl SwarmLab {
    /// Starts `nodes` engines and the registry, and joins them to a Swarm with one manager, whose nodes may run
    /// applications.
    ///
    /// # Panics
    ///
    /// If something is missing on this machine.
    #[must_use]
    pub fn start(nodes: usize) -> Self {
        Self::with_managers(nodes, 1, binary())
    }

    /// The same with several managers. Nodes are prepared by `program`, a binary of Launchway.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with_managers(nodes: usize, managers: usize, program: PathBuf) -> Self {
        let mut lab = Self::start_engines(nodes, managers, program);
        for node in 1..=nodes {
            let prepared = lab.prepare(node);
            assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
        }
        lab.docker(
            1,
            &["swarm", "init", "--advertise-addr", &lab.address(1), "--dispatcher-heartbeat", HEARTBEAT],
        );
        let first = format!("{}:2377", lab.address(1));
        for node in 2..=nodes {
            let role = if node <= managers { "manager" } else { "worker" };
            let token = lab.docker(1, &["swarm", "join-token", "--quiet", role]);
            let address = lab.address(node);
            lab.docker(node, &["swarm", "join", "--token", &token, "--advertise-addr", &address, &first]);
        }
        for node in 1..=nodes {
            let name = Self::hostname(node);
            lab.docker(1, &["node", "update", "--label-add", "launchway.apps=true", &name]);
        }
        lab.start_registry();
        lab
    }

    /// Starts `nodes` engines that are in no Swarm, without a registry. The first `builders` get the base image.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[must_use]
    pub fn of_separate_engines(nodes: usize, builders: usize) -> Self {
        Self::start_engines(nodes, builders, binary())
    }

    /// Starts engines. The first `builders` get the base image.
    fn start_engines(nodes: usize, builders: usize, program: PathBuf) -> Self {
        let lock = File::create(Path::new(SHARED).join("launchway-test-swarm.lock")).unwrap();
        lock.lock().unwrap();
        let folder = env::temp_dir().join("launchway-test-swarm");
        remove_leftovers(&folder);
        fs::create_dir_all(&folder).unwrap();
        let mut lab = Self { folder, program, engines: Vec::new(), registry: None, _lock: lock };
        make_switch();
        for node in 1..=nodes {
            make_node(node);
            let engine = lab.start_engine(node);
            lab.engines.push(engine);
        }
        for node in 1..=nodes {
            lab.wait_for_engine(node);
        }
        let image = lab.folder.join("base.tar");
        save_base_image(&image);
        for node in 1..=builders {
            lab.docker(node, &["load", "--quiet", "--input", &image.display().to_string()]);
        }
        lab
    }

    /// Returns the settings of a server that runs on a manager.
    #[must_use]
    pub fn settings(&self, manager: usize) -> Vec<(String, String)> {
        let own = |name: &str, value: String| (name.to_owned(), value);
        vec![
            own("PATH", env::var("PATH").unwrap()),
            own("DOCKER_HOST", self.host(manager)),
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

    /// Returns the address of this machine in the network of the laboratory.
    #[must_use]
    pub fn own_address(&self) -> &'static str {
        HOST_ADDRESS
    }

    /// Returns the network of the laboratory.
    #[must_use]
    pub fn network(&self) -> &'static str {
        NETWORK
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

    /// The same, repeated until it succeeds: a manager refuses commands while there is no leader.
    ///
    /// # Panics
    ///
    /// If it does not succeed within a minute.
    pub fn docker_at_last(&self, node: usize, arguments: &[&str]) -> String {
        let mut refusal = String::new();
        for _ in 0..240 {
            let output = self.try_docker(node, arguments);
            if output.status.success() {
                return String::from_utf8_lossy(&output.stdout).trim().to_owned();
            }
            refusal = String::from_utf8_lossy(&output.stderr).into_owned();
            sleep(Duration::from_millis(250));
        }
        panic!("docker {arguments:?} on node {node}: {refusal}");
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
        machines::disconnect(node);
    }

    /// Plugs the network cable of a node in again.
    pub fn rejoin(&self, node: usize) {
        machines::connect(node);
    }

    /// Starts the registry, or starts it again with what it had.
    ///
    /// # Panics
    ///
    /// If it is not installed.
    pub fn start_registry(&mut self) {
        self.start_registry_with(true);
    }

    /// The same, of a registry that deletes images or does not.
    ///
    /// # Panics
    ///
    /// If it is not installed.
    pub fn start_registry_with(&mut self, deletes: bool) {
        let options = RegistryOptions { deletes, ..RegistryOptions::default() };
        self.registry = Some(TestRegistry::start_at(&self.registry(), &self.folder, &options));
    }

    /// Returns the tags of an application in the registry.
    #[must_use]
    pub fn tags_of(&self, application: &str) -> Vec<String> {
        let registry = self.registry.as_ref();
        registry.map_or_else(Vec::new, |registry| registry.tags(&format!("launchway/{application}")))
    }

    /// Stops the registry.
    pub fn stop_registry(&mut self) {
        drop(self.registry.take());
    }

    /// Stops the engine of a node.
    ///
    /// # Panics
    ///
    /// If there is no `kill`.
    pub fn stop_engine(&mut self, node: usize) {
        let engine = &mut self.engines[node - 1];
        terminate(engine);
        engine.wait().unwrap();
    }

    /// Starts the engine of a node that was stopped.
    ///
    /// # Panics
    ///
    /// If it does not answer.
    pub fn restart_engine(&mut self, node: usize) {
        self.engines[node - 1] = self.start_engine(node);
        self.wait_for_engine(node);
    }

    /// Freezes the engine of a node. Its containers keep running, and the managers count it as ready until it has not been
    /// heard of for several heartbeats.
    ///
    /// # Panics
    ///
    /// If there is no `kill`.
    pub fn freeze_engine(&self, node: usize) {
        signal(&self.engines[node - 1], "STOP");
    }

    fn wait_for_engine(&self, node: usize) {
        until("an engine that answers", || self.try_docker(node, &["info"]).status.success().then_some(()));
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
            .arg(format!("--insecure-registry={NETWORK}"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().expect("this test needs nsenter, of the package util-linux")
    }

    /// Prepares a node, as its operator would.
    ///
    /// # Panics
    ///
    /// If there is no `nsenter`.
    pub fn prepare(&self, node: usize) -> Output {
        self.prepare_with(node, &[])
    }

    /// Adds the rules of the packet filter of a node, as its unit does at boot.
    ///
    /// # Panics
    ///
    /// If there is no `nsenter`.
    pub fn prepare_packet_filter(&self, node: usize) -> Output {
        self.prepare_with(node, &["--packet-filter-only"])
    }

    fn prepare_with(&self, node: usize, options: &[&str]) -> Output {
        let settings = self.home(node).join("daemon.json");
        let mut command = self.command_on(node, &self.program);
        command.args(["node", "prepare", "--address", &self.address(node), "--network", NETWORK]);
        command.arg("--engine-config").arg(settings).args(options).stdin(Stdio::null()).output().unwrap()
    }
}

/// Ends an engine, also one that is frozen.
fn terminate(engine: &Child) {
    signal(engine, "TERM");
    signal(engine, "CONT");
}

fn signal(engine: &Child, name: &str) {
    let _ = Command::new("kill").args(["-s", name, &engine.id().to_string()]).status();
}

impl Drop for SwarmLab {
    fn drop(&mut self) {
        self.stop_registry();
        for engine in &self.engines {
            terminate(engine);
        }
        for engine in &mut self.engines {
            let _ = engine.wait();
        }
        remove_leftovers(&self.folder);
    }
}
