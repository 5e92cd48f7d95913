#![doc = include_str!("../README.md")]
//!
//! **Invariant:** only `command` builds command lines, one function for each command of docker. A value
//! that came from a user is in a position where docker accepts any text, and no value of a container's
//! environment is in a command line at all.
//!
//! **Invariant:** everything that is created carries the labels of `labels`, and nothing without the label
//! of this installation is ever listed, stopped or removed.
//!
//! The client gets no configuration folder of our own: that would disable the operator's `docker login`.

mod addresses;
mod bases;
mod cgroups;
mod command;
mod compose;
mod containers;
mod context;
mod environment;
mod errors;
mod events;
mod extensions;
mod forwarded_ports;
mod groups;
pub mod health;
mod host_networks;
mod images;
mod inventory;
mod labels;
mod lines;
mod links;
mod networks;
pub mod nixpacks;
mod notice;
mod published;
mod references;
mod registries;
mod socket;
mod statistics;
pub mod swarm;

use std::{
    collections::HashMap,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use ipnet::Ipv4Net;
use launchway_domain::{
    applications::RegistryPolicy,
    clock::{Clock as _, Timestamp},
    deployments::ImageName,
    extensions::PortRange,
    ids::{ApplicationId, InstanceId, OrganizationId},
};
use launchway_system::{
    clock::SystemClock,
    resolver::{Resolver, SystemResolver},
};
use tokio::sync::OnceCell;

use self::{
    addresses::AddressBook, cgroups::PidsLimiter, command::Docker, containers::ListMemory,
    events::EventCounter, networks::Network,
};
pub use self::{
    cgroups::MissingLimit,
    compose::Compositions,
    extensions::{ExtensionObjects, check_file, file_ports, may_be_named},
};

const MEBIBYTE: u64 = 1024 * 1024;

/// The variables of the server that are passed to the docker client.
const OF_THE_OPERATOR: [&str; 5] =
    ["DOCKER_CERT_PATH", "DOCKER_CONFIG", "DOCKER_HOST", "DOCKER_TLS_VERIFY", "HOME"];

/// The options of the engine.
#[derive(Debug, Clone)]
pub struct DockerOptions {
    /// The id of the installation, with which everything is labelled.
    pub instance: InstanceId,
    /// The program, by its name on the `PATH` or by its path.
    pub program: PathBuf,
    /// The program of compose, for a client without the plugin.
    pub compose_program: PathBuf,
    /// The environment of both programs, in addition to `PATH`.
    pub environment: Vec<(OsString, OsString)>,
    /// The address range of the organizations' networks; each takes a `/24` of it.
    pub network_pool: Ipv4Net,
    /// The driver of the organizations' networks.
    pub network_driver: NetworkDriver,
    /// The ports of this machine at which compositions are reached; `None` if they are reached at their own addresses.
    pub published_ports: Option<PortRange>,
    /// The registries that images may come from.
    pub registries: RegistryPolicy,
    /// Resolves the host names of registries.
    pub resolver: Arc<dyn Resolver>,
    /// The resource limits of a container.
    pub limits: ContainerLimits,
    /// The builder of images.
    pub builder: Builder,
    /// The resource limits of a build.
    pub build_limits: BuildLimits,
    /// The timeout of a command that runs in a container of its own.
    pub command_time: Duration,
    /// The timeout of every other call, except for pulling an image.
    pub call_time: Duration,
}

impl DockerOptions {
    /// Returns the options that fit most machines.
    #[must_use]
    pub fn new(instance: InstanceId) -> Self {
        let given = |name: &str| Some((name.into(), env::var_os(name)?));
        Self {
            instance,
            program: "docker".into(),
            compose_program: "docker-compose".into(),
            environment: OF_THE_OPERATOR.into_iter().filter_map(given).collect(),
            // Docker itself takes networks from 172.16.0.0/12 and 192.168.0.0/16.
            network_pool: Ipv4Net::new_assert([10, 192, 0, 0].into(), 12),
            network_driver: NetworkDriver::default(),
            published_ports: None,
            registries: RegistryPolicy::default(),
            resolver: Arc::new(SystemResolver::default()),
            limits: ContainerLimits::default(),
            builder: Builder::default(),
            build_limits: BuildLimits::default(),
            command_time: Duration::from_secs(10 * 60),
            call_time: Duration::from_secs(2 * 60),
        }
    }
}

impl DockerOptions {
    /// Uses the engine that listens on a Unix socket, instead of the client's default. Lists of containers
    /// and events are then requested at this socket, without the client.
    #[must_use]
    pub fn at_socket(mut self, socket: &Path) -> Self {
        let mut host = OsString::from("unix://");
        host.push(socket);
        self.environment.retain(|(name, _)| name != "DOCKER_HOST");
        self.environment.push(("DOCKER_HOST".into(), host));
        self
    }
}

/// The resource limits of a container.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContainerLimits {
    /// Memory in bytes, without additional swap.
    pub memory: u64,
    /// CPUs, such as 1.5; unlimited if `None`.
    pub cpus: Option<f64>,
    /// Processes and threads.
    pub pids: u32,
}

impl Default for ContainerLimits {
    fn default() -> Self {
        Self { memory: 1024 * MEBIBYTE, cpus: None, pids: 512 }
    }
}

/// The resource limits of a build.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BuildLimits {
    /// Memory in bytes. Only enforced by [`Builder::Legacy`].
    pub memory: u64,
    /// CPUs, such as 1.5; unlimited if `None`. Only enforced by [`Builder::Legacy`].
    pub cpus: Option<f64>,
    /// Processes and threads, where a control group can be created for the build.
    pub pids: u32,
    /// The timeout.
    pub time: Duration,
    /// The size of the build context in bytes.
    pub context: u64,
}

impl Default for BuildLimits {
    fn default() -> Self {
        Self {
            memory: 2048 * MEBIBYTE,
            cpus: None,
            pids: 2048,
            time: Duration::from_secs(20 * 60),
            context: 500 * MEBIBYTE,
        }
    }
}

/// The driver of networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NetworkDriver {
    /// A bridge of one machine. Each container has a static address, at which it is reached.
    #[default]
    Bridge,
    /// An overlay of all machines of a Swarm, with addresses of the engine's choice.
    Overlay,
}

/// The builder of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Builder {
    /// [`Builder::Legacy`] if the client has it, because it enforces the memory limit.
    #[default]
    Auto,
    /// The builder that runs each step in a container, and limits its memory.
    Legacy,
    /// BuildKit: faster, and without a memory limit. A client since version 23 needs buildx.
    BuildKit,
}

/// Builds images, and runs and lists containers.
#[derive(Debug)]
pub struct DockerEngine {
    options: DockerOptions,
    docker: Docker,
    /// The builder, once it is chosen.
    builder: OnceCell<Builder>,
    /// The way in which the processes of builds are limited, once it is determined.
    pids_limiter: OnceCell<PidsLimiter>,
    /// The known networks. Locked while one is looked up or created, so that two calls do not create the
    /// same one.
    networks: tokio::sync::Mutex<HashMap<OrganizationId, Network>>,
    /// The newest images of each application that was built, newest first.
    images: Mutex<HashMap<ApplicationId, Vec<ImageName>>>,
    /// The time, in nanoseconds since 1970, up to which events were delivered.
    told: Mutex<i64>,
    /// The addresses that are assigned to new containers.
    addresses: AddressBook,
    /// The data of each container that a list does not include.
    listed: ListMemory,
    /// The container events, where the engine is reached by a socket.
    news: EventCounter,
}

impl DockerEngine {
    /// Returns an engine with these options. Does not connect to it yet.
    #[must_use]
    pub fn new(options: DockerOptions) -> Self {
        let docker = Docker::new(&options.program, &options.environment, options.call_time);
        let told = Mutex::new(nanoseconds(SystemClock.now()));
        Self {
            options,
            docker,
            builder: OnceCell::new(),
            pids_limiter: OnceCell::new(),
            networks: tokio::sync::Mutex::default(),
            images: Mutex::default(),
            told,
            addresses: AddressBook::default(),
            listed: ListMemory::default(),
            news: EventCounter::default(),
        }
    }
}

fn nanoseconds(moment: Timestamp) -> i64 {
    moment.timestamp_nanos_opt().unwrap_or_default()
}
