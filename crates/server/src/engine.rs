//! The container engine: the one of this machine, or a Docker Swarm.

use std::{collections::BTreeSet, env, error::Error, path::PathBuf, sync::Arc};

use launchway_domain::{
    deployments::{Deployer, DeploymentRepository as _, EngineInventory, ImageBuilder},
    homes::HomeRepository as _,
    ids::{ApplicationId, InstanceId},
    metrics::ContainerStatistics,
    nodes::NodeInventory,
    replicas::EngineIdentity,
};
use launchway_infrastructure::{
    database::Database,
    docker::{
        BuildLimits, ContainerLimits, DockerEngine, DockerOptions, NetworkDriver,
        swarm::{SwarmEngine, SwarmRole},
    },
    outbound::Trust,
    registry::HttpRegistry,
};

use crate::config::Config;

/// The engine of an installation.
#[derive(Clone)]
pub(crate) struct Engine {
    /// The engine of this machine.
    docker: Arc<DockerEngine>,
    /// The Swarm that runs the containers of applications, if there is one.
    swarm: Option<Arc<SwarmEngine>>,
    /// The registry of that Swarm.
    registry: Option<Arc<HttpRegistry>>,
}

impl Engine {
    /// Returns the engine of the configuration. Does not connect to it yet.
    pub(crate) fn new(config: &Config, installation: InstanceId) -> Self {
        let docker = Arc::new(DockerEngine::new(docker_options(config, installation)));
        let swarm = config.deployments.swarm.clone();
        let (swarm, registry) = swarm
            .map(|options| {
                let registry = options.registry.clone();
                let swarm = Arc::new(SwarmEngine::new(Arc::clone(&docker), options));
                let (config, trust) = (docker_config(), Trust::of_this_machine());
                let registry = HttpRegistry::new(registry, Arc::clone(&swarm) as _, config, trust);
                (swarm, Arc::new(registry))
            })
            .unzip();
        Self { docker, swarm, registry }
    }

    /// Returns the engine of this machine, which builds images.
    pub(crate) fn docker(&self) -> &Arc<DockerEngine> {
        &self.docker
    }

    pub(crate) fn swarm(&self) -> Option<&Arc<SwarmEngine>> {
        self.swarm.as_ref()
    }

    pub(crate) fn images(&self) -> Arc<dyn ImageBuilder> {
        match &self.swarm {
            Some(swarm) => swarm.clone(),
            None => self.docker.clone(),
        }
    }

    pub(crate) fn deployer(&self) -> Arc<dyn Deployer> {
        match &self.swarm {
            Some(swarm) => swarm.clone(),
            None => self.docker.clone(),
        }
    }

    pub(crate) fn inventory(&self) -> Arc<dyn EngineInventory> {
        match &self.swarm {
            Some(swarm) => swarm.clone(),
            None => self.docker.clone(),
        }
    }

    /// Returns the registry of the Swarm; `None` if there is one machine.
    pub(crate) fn registry(&self) -> Option<Arc<HttpRegistry>> {
        self.registry.clone()
    }

    pub(crate) fn identity(&self) -> Arc<dyn EngineIdentity> {
        match &self.swarm {
            Some(swarm) => swarm.clone(),
            None => self.docker.clone(),
        }
    }

    /// Returns the nodes of the Swarm; `None` if there is one machine.
    pub(crate) fn nodes(&self) -> Option<Arc<dyn NodeInventory>> {
        self.swarm.clone().map(|swarm| -> Arc<dyn NodeInventory> { swarm })
    }

    /// Returns what reads the usage of containers; `None` on a Swarm, whose containers run on other machines too.
    pub(crate) fn statistics(&self) -> Option<Arc<dyn ContainerStatistics>> {
        match &self.swarm {
            Some(_) => None,
            None => Some(self.docker.clone()),
        }
    }

    /// Fails if the containers of this installation cannot run on the Swarm. An engine that does not answer is no reason:
    /// deployments wait for it.
    pub(crate) async fn require_swarm(
        &self,
        database: &Database,
        server: InstanceId,
    ) -> Result<(), Box<dyn Error>> {
        let Some(swarm) = &self.swarm else { return warn_of_other_homes(database, server).await };
        if let Some(reason) = swarm.role().await.and_then(refusal) {
            return Err(format!("LAUNCHWAY_ENGINE is `swarm`, but {reason}").into());
        }
        let (live, homes) = (database.live().await?, database.homes().await?);
        let has_home = |id: ApplicationId| homes.iter().any(|home| home.subject == id.into());
        let compositions: Vec<String> = live
            .iter()
            .filter(|version| version.deployment.is_composition() && !version.application.is_stopped)
            .filter(|version| !has_home(version.application.id))
            .map(|version| format!("`{}`", version.application.blueprint.name))
            .collect();
        if compositions.is_empty() {
            return Ok(());
        }
        Err(format!(
            "LAUNCHWAY_ENGINE is `swarm`, but these applications with a compose file run without it: {}. Start the server with \
             LAUNCHWAY_ENGINE=docker, run `launchway stop` for each, and start the server again; then `launchway restart` \
             starts them on the Swarm, with their volumes",
            compositions.join(", ")
        )
        .into())
    }
}

/// Logs the machines whose servers alone run what has its volumes there.
async fn warn_of_other_homes(database: &Database, server: InstanceId) -> Result<(), Box<dyn Error>> {
    let homes = database.homes().await?;
    let others = homes.into_iter().filter(|home| home.server != server).map(|home| home.machine.hostname);
    let machines: BTreeSet<String> = others.collect();
    if !machines.is_empty() {
        let machines = machines.into_iter().collect::<Vec<_>>().join(", ");
        tracing::warn!(
            machines,
            hint = "`launchway node forget` gives the volumes of a machine up",
            "applications or extensions wait for the machines with their volumes"
        );
    }
    Ok(())
}

/// Returns the folder of docker's configuration, as docker's command line does.
fn docker_config() -> Option<PathBuf> {
    let folder = env::var_os("DOCKER_CONFIG").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    folder.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".docker")))
}

/// Returns the reason why a machine cannot start containers on a Swarm.
pub(crate) fn refusal(role: SwarmRole) -> Option<&'static str> {
    match role {
        SwarmRole::Manager => None,
        SwarmRole::Worker => Some(
            "this machine is a worker of its Swarm, and only managers can start containers: run `docker node promote` for it \
             on a manager, or run Launchway on a manager",
        ),
        SwarmRole::None => Some(
            "the Docker engine of this machine is in no Swarm: run `docker swarm init --advertise-addr` with its private \
             address, or join one as a manager",
        ),
        SwarmRole::NoSocket => Some(
            "the Docker engine is not reached by a Unix socket: leave DOCKER_HOST out, or set it to one such as \
             unix:///var/run/docker.sock",
        ),
    }
}

fn docker_options(config: &Config, instance: InstanceId) -> DockerOptions {
    let settings = &config.deployments;
    let options = DockerOptions::new(instance);
    DockerOptions {
        network_pool: settings.network_pool,
        network_driver: match settings.swarm {
            Some(_) => NetworkDriver::Overlay,
            None => NetworkDriver::Bridge,
        },
        published_ports: settings.swarm.as_ref().map(|swarm| swarm.ports.divided().1),
        registries: settings.registries.clone(),
        limits: ContainerLimits {
            memory: settings.container_memory,
            cpus: settings.container_cpus,
            pids: settings.container_pids,
        },
        builder: settings.builder,
        build_limits: BuildLimits {
            memory: settings.build_memory,
            cpus: settings.build_cpus,
            pids: settings.build_pids,
            time: settings.build_timeout,
            ..options.build_limits
        },
        ..options
    }
}
