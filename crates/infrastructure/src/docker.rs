//! The Docker engine, by its command line: images, containers, networks, and what is there.
//!
//! **Invariant:** only `command` makes command lines, one function for each command of docker. A
//! value that came from a user is in a place where docker takes any text, and no value of a
//! container's environment is in a command line at all.
//!
//! **Invariant:** everything that is made carries the labels of `labels`, and nothing without the
//! label of this installation is ever listed, stopped or removed.
//!
//! The client runs without the server's environment, but with what an operator configures it by:
//! `HOME` and `DOCKER_CONFIG` (credentials of registries), `DOCKER_HOST`, `DOCKER_TLS_VERIFY` and
//! `DOCKER_CERT_PATH` (where the engine is). A folder of ours instead would take the operator's
//! `docker login` away.

mod addresses;
mod bases;
mod cgroups;
mod command;
mod complaints;
mod compose;
mod containers;
mod context;
mod environment;
mod events;
mod extensions;
mod groups;
mod images;
mod inventory;
mod labels;
mod lines;
mod neighbours;
mod networks;
mod notice;
mod references;
mod registries;
mod socket;

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
    ids::{ApplicationId, InstanceId, OrganizationId},
};
use tokio::sync::OnceCell;

use self::{
    addresses::AddressBook, cgroups::PidsLimiter, command::Docker, containers::ListMemory, events::News,
    networks::Network,
};
pub use self::{cgroups::MissingLimit, compose::Compositions};
pub(crate) use self::{
    environment::is_obeyed,
    extensions::{ExtensionObjects, check_file, may_be_named},
};
use crate::{
    clock::SystemClock,
    outbound::{Resolver, SystemResolver},
};

const MEBIBYTE: u64 = 1024 * 1024;

/// The variables of the server that the client of docker gets too.
const OF_THE_OPERATOR: [&str; 5] =
    ["DOCKER_CERT_PATH", "DOCKER_CONFIG", "DOCKER_HOST", "DOCKER_TLS_VERIFY", "HOME"];

/// How the engine is used.
#[derive(Debug, Clone)]
pub struct DockerOptions {
    /// The installation that everything is marked with.
    pub instance: InstanceId,
    /// The program, by its name on the `PATH` or by its path.
    pub program: PathBuf,
    /// The program of compose, for a client without the plugin.
    pub compose_program: PathBuf,
    /// The environment of both programs, beside `PATH`.
    pub environment: Vec<(OsString, OsString)>,
    /// Where the networks of organizations are; each takes a `/24` of it.
    pub network_pool: Ipv4Net,
    /// The registries that images may come from.
    pub registries: RegistryPolicy,
    /// Looks up the addresses of registries.
    pub resolver: Arc<dyn Resolver>,
    /// What a container may use.
    pub limits: ContainerLimits,
    /// What builds.
    pub builder: Builder,
    /// What a build may use.
    pub build_limits: BuildLimits,
    /// How long a command in a container of its own may take.
    pub command_time: Duration,
    /// How long everything else may take, except for getting an image.
    pub call_time: Duration,
}

impl DockerOptions {
    /// What fits most machines.
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
    /// Uses the engine that listens on a unix socket, whichever the client would use otherwise. Lists
    /// of containers and events are then asked for at this socket, without the client.
    #[must_use]
    pub fn at_socket(mut self, socket: &Path) -> Self {
        let mut host = OsString::from("unix://");
        host.push(socket);
        self.environment.retain(|(name, _)| name != "DOCKER_HOST");
        self.environment.push(("DOCKER_HOST".into(), host));
        self
    }
}

/// What a container may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContainerLimits {
    /// Memory in bytes; there is no swap beside it.
    pub memory: u64,
    /// Processors, such as 1.5; all of them without.
    pub cpus: Option<f64>,
    /// Processes and threads.
    pub pids: u32,
}

impl Default for ContainerLimits {
    fn default() -> Self {
        Self { memory: 1024 * MEBIBYTE, cpus: None, pids: 512 }
    }
}

/// What a build may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BuildLimits {
    /// Memory in bytes, which only [`Builder::Legacy`] holds.
    pub memory: u64,
    /// Processors, such as 1.5; all of them without. Only [`Builder::Legacy`] holds it.
    pub cpus: Option<f64>,
    /// Processes and threads, where a control group can be made for the build.
    pub pids: u32,
    /// Time.
    pub time: Duration,
    /// The files that are sent to the engine, in bytes.
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

/// What builds images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Builder {
    /// [`Builder::Legacy`] where the client has it, because its limit of memory holds.
    #[default]
    Auto,
    /// The builder that runs each step in a container, and limits its memory.
    Legacy,
    /// BuildKit: faster, and without a limit of memory. A client since version 23 needs buildx.
    BuildKit,
}

/// Makes images, runs containers, and knows which there are.
#[derive(Debug)]
pub struct DockerEngine {
    options: DockerOptions,
    docker: Docker,
    /// The builder that was chosen, once one was.
    builder: OnceCell<Builder>,
    /// The means by which the processes of builds are limited, once they were looked for.
    pids_limiter: OnceCell<PidsLimiter>,
    /// The networks that were there when they were last needed. Held while one is looked for or
    /// made, so that two calls do not make the same one.
    networks: tokio::sync::Mutex<HashMap<OrganizationId, Network>>,
    /// The newest images of the applications that were built, newest first.
    images: Mutex<HashMap<ApplicationId, Vec<ImageName>>>,
    /// The moment, in nanoseconds since 1970, up to which news were told.
    told: Mutex<i64>,
    /// The addresses that containers are about to get.
    addresses: AddressBook,
    /// The part of each container that a list does not have.
    listed: ListMemory,
    /// The news of containers, where the engine is reached by a socket.
    news: News,
}

impl DockerEngine {
    /// The engine by these options. Nothing is asked of it yet.
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
            news: News::default(),
        }
    }
}

fn nanoseconds(moment: Timestamp) -> i64 {
    moment.timestamp_nanos_opt().unwrap_or_default()
}
