//! What the server does besides answering: it carries out deployments and looks after them.

use std::{error::Error, path::PathBuf, sync::Arc};

use launchway_application::{
    RuntimeLogs,
    deployments::{HealthTimings, Pipeline, PipelinePorts},
    upkeep::{StabilityLimits, Upkeep, UpkeepPorts, UpkeepTimings},
    webhooks::{Comparison, ComparisonPorts, ComparisonTimings},
    worker::{Worker, WorkerTimings},
};
use launchway_domain::{
    ids::{BootId, Ids as _, InstanceId},
    jobs::{ClaimLimits, WorkerId},
};
use launchway_infrastructure::{
    clock::TimeOrderedIds,
    data_dir::DataDir,
    docker::{BuildLimits, Compositions, ContainerLimits, DockerEngine, DockerOptions},
    git::{GitFetcher, GitLimits, GitOptions},
    health::NetworkProbe,
    nixpacks::Nixpacks,
};
use tokio::{
    sync::watch,
    task::{JoinHandle, spawn},
};

use crate::{config::Config, wiring::Wiring};

/// Tasks that run until the server stops.
pub(crate) struct Background {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Background {
    /// Takes over what an earlier run left, and begins to work.
    pub(crate) async fn start(
        config: &Config,
        data: &DataDir,
        wiring: &Wiring,
    ) -> Result<Self, Box<dyn Error>> {
        let instance: InstanceId =
            data.private_file("instance-id", || format!("{}\n", TimeOrderedIds.next()))?.trim().parse()?;
        let boot: BootId = TimeOrderedIds.next().into();
        let engine = Arc::new(DockerEngine::new(docker_options(config, instance)));
        let runtime_logs = runtime_logs(wiring, &engine);
        let upkeep = upkeep(wiring, &engine, &runtime_logs, (instance, boot));
        upkeep.begin().await?;
        let source = Arc::new(GitFetcher::open(git_options(config, data))?);
        source.clear_work().await?;
        let comparison = comparison(config, wiring, &source);
        let identity = WorkerId { instance, boot, worker: 1 };
        let worker = worker(config, data, wiring, (engine, runtime_logs, source), identity).await?;

        let (stop, told) = watch::channel(false);
        let (for_worker, for_comparison) = (told.clone(), told.clone());
        let tasks = vec![
            spawn(Arc::new(worker).run(for_worker)),
            spawn(async move { comparison.run(for_comparison).await }),
            spawn(async move { upkeep.run(told).await }),
        ];
        Ok(Self { stop, tasks })
    }

    /// Takes nothing new, gives what is under way a moment, and gives back the rest.
    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "a task in the background broke");
            }
        }
    }
}

async fn worker(
    config: &Config,
    data: &DataDir,
    wiring: &Wiring,
    (engine, runtime_logs, source): (Arc<DockerEngine>, Arc<RuntimeLogs>, Arc<GitFetcher>),
    identity: WorkerId,
) -> Result<Worker, Box<dyn Error>> {
    let database = Arc::new(wiring.database.clone());
    wiring.sites.clear_drafts().await?;
    let compositions = Compositions::open(engine.clone(), &data.path().join("compositions"))?;
    let ports = PipelinePorts {
        applications: database.clone(),
        deployments: database.clone(),
        logs: database.clone(),
        runtime_logs,
        deploy_keys: database.clone(),
        secrets: Arc::clone(&wiring.secrets),
        source,
        planner: Arc::new(Nixpacks::default()),
        images: engine.clone(),
        composer: Arc::new(compositions),
        deployer: engine.clone(),
        inventory: engine,
        probe: Arc::new(NetworkProbe::default()),
        sites: wiring.sites.clone(),
        routes: Arc::clone(&wiring.routes),
    };
    let timings = HealthTimings::within(config.deployments.health_timeout);
    let pipeline = Pipeline::new(ports, timings, wiring.tools.clone());
    let most = config.deployments.max_builds;
    let limits = ClaimLimits { global: most, per_organization: most };
    let timings = WorkerTimings::default();
    Ok(Worker::new(database, Arc::new(pipeline), identity, limits, timings, wiring.tools.clone()))
}

fn upkeep(
    wiring: &Wiring,
    engine: &Arc<DockerEngine>,
    runtime_logs: &Arc<RuntimeLogs>,
    identity: (InstanceId, BootId),
) -> Upkeep {
    let database = Arc::new(wiring.database.clone());
    let ports = UpkeepPorts {
        queue: database.clone(),
        deployments: database.clone(),
        inventory: engine.clone(),
        routes: Arc::clone(&wiring.routes),
        logs: database.clone(),
        runtime_logs: Arc::clone(runtime_logs),
        idempotency: database.clone(),
        deliveries: database,
    };
    Upkeep::new(ports, identity, UpkeepTimings::default(), StabilityLimits::default(), wiring.tools.clone())
}

fn comparison(config: &Config, wiring: &Wiring, source: &Arc<GitFetcher>) -> Comparison {
    let database = Arc::new(wiring.database.clone());
    let ports = ComparisonPorts {
        branches: database.clone(),
        deploy_keys: database,
        secrets: Arc::clone(&wiring.secrets),
        source: source.clone(),
    };
    let timings = ComparisonTimings::each(config.deployments.branch_check);
    Comparison::new(ports, timings, wiring.tools.clone())
}

fn runtime_logs(wiring: &Wiring, engine: &Arc<DockerEngine>) -> Arc<RuntimeLogs> {
    let database = Arc::new(wiring.database.clone());
    let secrets = Arc::clone(&wiring.secrets);
    Arc::new(RuntimeLogs::new(engine.clone(), database.clone(), database, secrets))
}

fn docker_options(config: &Config, instance: InstanceId) -> DockerOptions {
    let settings = &config.deployments;
    let options = DockerOptions::new(instance);
    DockerOptions {
        network_pool: settings.network_pool,
        limits: ContainerLimits { memory: settings.container_memory, ..options.limits },
        builder: settings.builder,
        build_limits: BuildLimits {
            memory: settings.build_memory,
            time: settings.build_timeout,
            ..options.build_limits
        },
        ..options
    }
}

fn git_options(config: &Config, data: &DataDir) -> GitOptions {
    let folder = |name: &str| -> PathBuf { data.path().join(name) };
    GitOptions {
        cache: folder("repositories"),
        work: folder("work"),
        policy: config.deployments.sources.clone(),
        known_hosts: config.deployments.known_hosts.clone(),
        limits: GitLimits::default(),
    }
}
