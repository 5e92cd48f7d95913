//! The settings of deployments.

use std::{path::PathBuf, time::Duration};

use ipnet::Ipv4Net;
use launchway_domain::{
    applications::{RegistryPolicy, SourcePolicy},
    deployments::KeptVersions,
    extensions::PortRange,
    logs::LogLimits,
    network::AllowedEndpoint,
};
use launchway_infrastructure::docker::{Builder, swarm::SwarmOptions};

use super::{Engine, paths, reader::Reader, values};

/// The settings of deployments.
#[derive(Debug, Clone)]
pub(crate) struct DeploymentConfig {
    pub(crate) max_builds: usize,
    pub(crate) health_timeout: Duration,
    pub(crate) engine_timeout: Duration,
    pub(crate) orphan_grace: Duration,
    pub(crate) sources: SourcePolicy,
    pub(crate) known_hosts: Option<PathBuf>,
    pub(crate) network_pool: Ipv4Net,
    pub(crate) registries: RegistryPolicy,
    pub(crate) container_memory: u64,
    pub(crate) container_cpus: Option<f64>,
    pub(crate) container_pids: u32,
    pub(crate) builder: Builder,
    pub(crate) build_memory: u64,
    pub(crate) build_cpus: Option<f64>,
    pub(crate) build_pids: u32,
    pub(crate) build_timeout: Duration,
    pub(crate) branch_check: Duration,
    pub(crate) kept_versions: KeptVersions,
    pub(crate) min_free_disk: u64,
    /// The largest push, and the largest uploaded archive.
    pub(crate) max_source_size: u64,
    /// The folder of the repositories that users push to; `None`: in the data directory.
    pub(crate) repositories_dir: Option<PathBuf>,
    pub(crate) extension_ports: PortRange,
    pub(crate) log_limits: LogLimits,
    /// The settings of Docker Swarm; `None` if containers run on this machine.
    pub(crate) swarm: Option<SwarmOptions>,
    /// The log rate of each application in bytes per second; 0 is no limit.
    pub(crate) log_rate: u64,
}

impl DeploymentConfig {
    /// Reads the settings; `None` if one is invalid.
    pub(super) fn read(read: &mut Reader) -> Option<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // On a machine with several CPUs, one container or build cannot take all of them.
        let (half, cores) = ((cores / 2).max(1).to_string(), cores.to_string());
        let engine = read.setting::<Engine>("LAUNCHWAY_ENGINE", "docker", values::engine);
        let registry = read.optional("LAUNCHWAY_REGISTRY", values::push_registry);
        let node_ports = read.setting("LAUNCHWAY_NODE_PORTS", "10000-19999", values::port_range);
        let max_builds = read.setting("LAUNCHWAY_MAX_BUILDS", &cores, values::count);
        let health_timeout = read.setting("LAUNCHWAY_HEALTH_TIMEOUT", "60s", values::duration);
        let engine_timeout = read.setting("LAUNCHWAY_ENGINE_TIMEOUT", "1h", values::duration);
        let orphan_grace = read.setting("LAUNCHWAY_ORPHAN_GRACE", "2m", values::duration);
        let allow = read.setting::<Vec<AllowedEndpoint>>("LAUNCHWAY_GIT_ALLOW", "", values::endpoints);
        let known_hosts = read.optional("LAUNCHWAY_GIT_KNOWN_HOSTS", paths::existing_file);
        let local_root = read.optional("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", paths::existing_folder);
        let network_pool = read.setting("LAUNCHWAY_NETWORK_POOL", "10.192.0.0/12", values::network_pool);
        let registries = read.setting("LAUNCHWAY_IMAGE_REGISTRIES", "public", values::registries);
        let container_memory = read.setting("LAUNCHWAY_CONTAINER_MEMORY", "1g", values::memory);
        let container_cpus = read.setting("LAUNCHWAY_CONTAINER_CPUS", &half, values::cpus);
        let container_pids = read.setting("LAUNCHWAY_CONTAINER_PIDS", "512", values::pids);
        let builder = read.setting("LAUNCHWAY_BUILDER", "auto", values::builder);
        let build_memory = read.setting("LAUNCHWAY_BUILD_MEMORY", "2g", values::memory);
        let build_cpus = read.setting("LAUNCHWAY_BUILD_CPUS", &half, values::cpus);
        let build_pids = read.setting("LAUNCHWAY_BUILD_PIDS", "2048", values::pids);
        let build_timeout = read.setting("LAUNCHWAY_BUILD_TIMEOUT", "20m", values::duration);
        let branch_check = read.setting("LAUNCHWAY_BRANCH_CHECK", "5m", values::duration);
        let kept_versions = read.setting("LAUNCHWAY_KEEP_IMAGES", "10", values::count);
        let min_free_disk = read.setting("LAUNCHWAY_MIN_FREE_DISK", "1g", values::disk_space);
        let max_source_size = read.setting("LAUNCHWAY_MAX_SOURCE_SIZE", "256m", values::source_size);
        let repositories_dir = read.optional("LAUNCHWAY_REPOSITORIES_DIR", paths::absolute_folder);
        let extension_ports = read.setting("LAUNCHWAY_EXTENSION_PORTS", "20000-29999", values::port_range);
        let application_log = read.setting("LAUNCHWAY_APPLICATION_LOG_SIZE", "64m", values::disk_space);
        let organization_log = read.setting("LAUNCHWAY_ORGANIZATION_LOG_SIZE", "1g", values::disk_space);
        let log_rate = read.setting("LAUNCHWAY_APPLICATION_LOG_RATE", "256k", values::disk_space);
        let swarm = match (engine?, registry?) {
            (Engine::Docker, None) => None,
            (Engine::Docker, Some(registry)) => {
                read.refuse(
                    format!("LAUNCHWAY_REGISTRY is `{registry}` and LAUNCHWAY_ENGINE is `docker`"),
                    "only the engine swarm pushes images: set LAUNCHWAY_ENGINE to swarm, or leave LAUNCHWAY_REGISTRY out. \
                     The registries that images may come from are LAUNCHWAY_IMAGE_REGISTRIES",
                );
                return None;
            }
            (Engine::Swarm, None) => {
                read.refuse(
                    "LAUNCHWAY_ENGINE is `swarm` and LAUNCHWAY_REGISTRY is not set".to_owned(),
                    "the nodes of a Swarm pull images from a registry: set LAUNCHWAY_REGISTRY to one that this machine can \
                     push to, such as 10.0.0.5:5000",
                );
                return None;
            }
            (Engine::Swarm, Some(registry)) => Some(SwarmOptions { registry, ports: node_ports? }),
        };
        if let (Some(_), Some(Some(folder))) = (&swarm, &local_root) {
            read.refuse(
                format!(
                    "LAUNCHWAY_ENGINE is `swarm` and LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES is `{}`",
                    folder.display()
                ),
                "local repositories are on one machine, but any of the servers may deploy: serve them by git, or leave \
                 LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES out",
            );
            return None;
        }
        Some(Self {
            max_builds: max_builds?.into(),
            health_timeout: health_timeout?,
            engine_timeout: engine_timeout?,
            orphan_grace: orphan_grace?,
            sources: SourcePolicy {
                allow: allow?,
                local_root: local_root?,
                containers: network_pool.map(Into::into),
            },
            known_hosts: known_hosts?,
            network_pool: network_pool?,
            registries: registries?,
            container_memory: container_memory?,
            container_cpus: container_cpus?,
            container_pids: container_pids?,
            builder: builder?,
            build_memory: build_memory?,
            build_cpus: build_cpus?,
            build_pids: build_pids?,
            build_timeout: build_timeout?,
            branch_check: branch_check?,
            kept_versions: KeptVersions(kept_versions?),
            min_free_disk: min_free_disk?,
            max_source_size: max_source_size?,
            repositories_dir: repositories_dir?,
            extension_ports: extension_ports?,
            log_limits: LogLimits { application: application_log?, organization: organization_log? },
            swarm,
            log_rate: log_rate?,
        })
    }
}
