//! The background tasks of the server: worker, sender, branch poller, reconciler and maintenance.

mod homes;

use std::{error::Error, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use launchway_application::{
    OwnReplica, RuntimeLogs, WakeSignal,
    certificates::{CertificateManager, CertificateManagerPorts, DnsCheck},
    deployments::{HealthTimings, ImageQuota, Pipeline, PipelinePorts, Retirer},
    extensions::{RunPorts, Runs},
    maintenance::{Maintenance, MaintenancePorts, MaintenanceTimings},
    notifications::{Sender, SenderTimings},
    reconciler::{Reconciler, ReconcilerLimits, ReconcilerPorts, ReconcilerTimings, RegistryPorts},
    webhooks::{BranchPoller, BranchPollerPorts, BranchPollerTimings, PathWatcher, PathWatcherPorts},
    worker::{JobHandlers, Worker, WorkerTimings},
};
use launchway_domain::{
    certificates::CertificateIssuer,
    deployments::Composer,
    extensions::{ExtensionRunner, PortPolicy},
    ids::{BootId, InstanceId},
    jobs::{ClaimLimits, WorkerId},
    notifications::SenderId,
    quotas::Resource,
    replicas::ReplicaRegistry as _,
    signals::{Signal, SignalReceiver, Signals as _},
};
use launchway_infrastructure::{
    certificates::{AcmeIssuer, AcmeOptions, SystemResolver},
    data_dir::DataDir,
    database::{Database, DatabaseUrl},
    docker::{Compositions, DockerEngine},
    extensions::{HostOptions, HostRunner},
    git::{GitFetcher, GitLimits, GitOptions},
    health::NetworkProbe,
    nixpacks::Nixpacks,
    outbound::Trust,
    sites::ReleaseFolders,
};
use tokio::{
    sync::watch,
    task::{JoinHandle, spawn},
};

use crate::{assembly::Assembly, config::Config, engine::Engine, installation::hostname};

/// The most concurrent operations on containers: each is short, and mostly waits for the engine.
const OPERATIONS: usize = 8;
/// The time between two questions about leftover control groups, while the engine does not answer.
const LEFTOVERS_PAUSE: Duration = Duration::from_secs(10);
/// The time between two searches for releases that are not archived.
const ARCHIVE_PAUSE: Duration = Duration::from_secs(60);

/// Tasks that run until the server stops.
pub(crate) struct Background {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Background {
    /// Takes over the jobs of an earlier run, and starts the tasks.
    pub(crate) async fn start(
        config: &Config,
        data: &DataDir,
        assembly: &Assembly,
        boot: BootId,
        front: Option<SocketAddr>,
    ) -> Result<Self, Box<dyn Error>> {
        // A job belongs to the server that claimed it, and not to the installation.
        let instance = assembly.server;
        let engine = Engine::new(config, assembly.installation);
        let compositions = compositions(data, assembly, engine.docker()).await?;
        // Before the first route is followed, which may fetch a site.
        assembly.sites.clear_drafts().await?;
        let own_ports = [config.bind.port()].into_iter().chain(front.map(|front| front.port()));
        let ports = PortPolicy {
            range: config.deployments.extension_ports,
            quota: config.quotas.of(Resource::ExtensionPorts),
        };
        let host = HostOptions { ports, ..HostOptions::new(&data.path().join("runs"), own_ports) };
        let host_ports = Arc::new(assembly.database.clone());
        let outside = Outside {
            runtime_logs: runtime_logs(config, assembly, &engine),
            source: Arc::clone(&assembly.fetcher),
            runner: Arc::new(HostRunner::open(Arc::clone(&compositions), host_ports, host)?),
            compositions,
            engine,
        };
        let leftovers = Arc::clone(outside.engine.docker());
        homes::adopt(assembly, &outside.engine).await;
        let reconciler = reconciler(config, assembly, &outside);
        let maintenance = maintenance(assembly, &outside, &reconciler, (instance, boot));
        // Jobs of an earlier run would block the reconciler from their applications.
        maintenance.take_over().await?;
        // After a reboot the address in a record may belong to the container of another application.
        reconciler.begin().await;
        maintenance.begin().await;
        // Before a client pushes again.
        assembly.services.sources.recover().await?;
        let comparison = comparison(config, assembly, &outside.source);
        let sender = sender(config, assembly, SenderId { instance, boot });
        let worker = worker(config, assembly, outside, WorkerId { instance, boot, worker: 1 }).await?;

        spawn(remove_leftover_cgroups(leftovers, oldest_run(assembly, boot).await?));

        let (stop, told) = watch::channel(false);
        let (for_worker, for_sender, for_comparison) = (told.clone(), told.clone(), told.clone());
        let (for_reconciler, for_signals, for_archives) = (told.clone(), told.clone(), told.clone());
        let (for_certificates, for_sources) = (told.clone(), told.clone());
        let (for_statuses, for_search) = (told.clone(), told.clone());
        let sources = Arc::clone(&assembly.services.sources);
        let mut tasks = vec![
            spawn(Arc::new(worker).run(for_worker)),
            spawn(Arc::new(sender).run(for_sender)),
            spawn(async move { comparison.run(for_comparison).await }),
            spawn(reconciler.run(for_reconciler)),
            spawn(async move { maintenance.run(told).await }),
            spawn(async move { sources.run(for_sources).await }),
            spawn(Arc::clone(&assembly.services.previews).report_statuses(for_statuses)),
            spawn(extend_search_index(
                assembly.database.clone(),
                assembly.context.replica.clone(),
                for_search,
            )),
        ];
        if let Some(manager) = certificate_manager(config, assembly) {
            tasks.push(spawn(Arc::new(manager).run(for_certificates)));
        }
        // On SQLite this process alone changes jobs and routes, and wakes its tasks itself.
        if matches!(config.database, DatabaseUrl::Postgres(_)) {
            let wakes = (assembly.context.wake.clone(), assembly.routes.changed());
            tasks.push(spawn(wake_for_signals(assembly.database.subscribe(), wakes, for_signals)));
            tasks.push(spawn(archive_sites(assembly.sites.clone(), for_archives)));
        }
        Ok(Self { stop, tasks })
    }

    /// Stops claiming work, gives running work a grace period, and returns the rest to the queue.
    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "background task panicked");
            }
        }
    }
}

/// Returns the oldest run of a server that may have builds on the engine.
async fn oldest_run(assembly: &Assembly, own: BootId) -> Result<BootId, Box<dyn Error>> {
    let replicas = assembly.database.replicas().await?;
    let living = replicas.into_iter().filter(|one| one.is_alive).map(|one| one.replica.boot);
    Ok(living.chain([own]).min().unwrap_or(own))
}

/// Wakes those who wait for jobs and for routes when any replica has changed some.
async fn wake_for_signals(
    mut signals: Box<dyn SignalReceiver>,
    (jobs, routes): (WakeSignal, WakeSignal),
    mut told: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                Some(Signal::Jobs) => jobs.notify(),
                Some(Signal::Routes) => routes.notify(),
                None => return,
            },
            _ = told.changed() => return,
        }
    }
}

/// Returns the compositions, and moves those of an earlier version from the data directory to the database.
async fn compositions(
    data: &DataDir,
    assembly: &Assembly,
    engine: &Arc<DockerEngine>,
) -> Result<Arc<Compositions>, Box<dyn Error>> {
    let (database, secrets) = (Arc::new(assembly.database.clone()), Arc::clone(&assembly.secrets));
    // Everything in that folder is in a folder of its own, so that there is no `.env`.
    let compositions = Compositions::open(engine.clone(), database, secrets, &data.path().join("work"))?;
    compositions.take_over(&data.path().join("compositions")).await?;
    Ok(Arc::new(compositions))
}

/// Indexes what searches read, on the leader of the replicas.
async fn extend_search_index(database: Database, replica: OwnReplica, mut stop: watch::Receiver<bool>) {
    tokio::select! {
        () = database.run_search_index(|| replica.is_leader()) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

/// Archives the releases that only this server has, at start and once a minute.
async fn archive_sites(sites: Arc<ReleaseFolders>, mut stop: watch::Receiver<bool>) {
    let work = async {
        loop {
            if let Err(error) = sites.archive_missing().await {
                tracing::warn!(%error, "releases of sites cannot be archived");
            }
            tokio::time::sleep(ARCHIVE_PAUSE).await;
        }
    };
    tokio::select! {
        () = work => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

/// Removes the control groups that builds of an earlier run left behind, as soon as the engine answers.
async fn remove_leftover_cgroups(engine: Arc<DockerEngine>, boot: BootId) {
    while let Err(error) = engine.remove_leftover_cgroups(boot.into()).await {
        tracing::debug!(%error, "leftover control groups could not be listed");
        tokio::time::sleep(LEFTOVERS_PAUSE).await;
    }
}

/// Adapters of external systems: repositories, the engine, and the host.
struct Outside {
    engine: Engine,
    source: Arc<GitFetcher>,
    compositions: Arc<dyn Composer>,
    runner: Arc<dyn ExtensionRunner>,
    runtime_logs: Arc<RuntimeLogs>,
}

async fn worker(
    config: &Config,
    assembly: &Assembly,
    outside: Outside,
    identity: WorkerId,
) -> Result<Worker, Box<dyn Error>> {
    let database = Arc::new(assembly.database.clone());
    let runs = Runs::new(run_ports(assembly, &outside), assembly.context.clone());
    let Outside { engine, source, compositions, runtime_logs, .. } = outside;
    source.remove_work_folders().await?;
    let ports = PipelinePorts {
        applications: database.clone(),
        deployments: database.clone(),
        logs: database.clone(),
        runtime_logs: Some(runtime_logs),
        deploy_keys: database.clone(),
        secrets: Arc::clone(&assembly.secrets),
        source,
        planner: Arc::new(Nixpacks::default()),
        images: engine.images(),
        // A server of a Swarm knows only the images that it built itself.
        image_quota: match engine.swarm() {
            Some(_) => None,
            None => {
                Some(ImageQuota { records: database.clone(), quota: config.quotas.of(Resource::ImageBytes) })
            }
        },
        composer: compositions,
        deployer: engine.deployer(),
        inventory: engine.inventory(),
        probe: Arc::new(NetworkProbe::default()),
        sites: assembly.sites.clone(),
        routes: Arc::clone(&assembly.routes),
    };
    let timings = HealthTimings::within(config.deployments.health_timeout);
    let pipeline = Pipeline::new(ports, timings, assembly.context.clone());
    let most = config.deployments.max_builds;
    let per_organization = match config.quotas.builds {
        0 => usize::MAX,
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let limits = ClaimLimits { builds: most, operations: OPERATIONS, per_organization };
    let timings = WorkerTimings { engine: config.deployments.engine_timeout, ..WorkerTimings::default() };
    let handlers = JobHandlers::new(Arc::new(pipeline)).with_runs(Arc::new(runs));
    Ok(Worker::new(database, handlers, identity, limits, timings, assembly.context.clone()))
}

fn run_ports(assembly: &Assembly, outside: &Outside) -> RunPorts {
    let database = Arc::new(assembly.database.clone());
    RunPorts {
        executions: database.clone(),
        runner: outside.runner.clone(),
        log: database,
        secrets: Arc::clone(&assembly.secrets),
        routes: Arc::clone(&assembly.routes),
        hostname: hostname(),
    }
}

fn reconciler(config: &Config, assembly: &Assembly, outside: &Outside) -> Arc<Reconciler> {
    let database = Arc::new(assembly.database.clone());
    let retirer = Retirer {
        applications: database.clone(),
        deployments: database.clone(),
        deployer: outside.engine.deployer(),
        inventory: outside.engine.inventory(),
        runtime_logs: Some(Arc::clone(&outside.runtime_logs)),
        routes: Arc::clone(&assembly.routes),
        context: assembly.context.clone(),
    };
    let ports = ReconcilerPorts {
        queue: database.clone(),
        applications: database.clone(),
        deployments: database.clone(),
        image_records: match outside.engine.swarm() {
            Some(_) => None,
            None => Some(database.clone()),
        },
        deployer: outside.engine.deployer(),
        inventory: outside.engine.inventory(),
        registry: outside
            .engine
            .registry()
            .map(|registry| RegistryPorts { images: registry, changes: database.clone() }),
        probe: Arc::new(NetworkProbe::default()),
        sites: assembly.sites.clone(),
        routes: Arc::clone(&assembly.routes),
        logs: database,
        retirer: Arc::new(retirer),
    };
    let limits = ReconcilerLimits {
        start_period: config.deployments.health_timeout,
        kept_versions: config.deployments.kept_versions,
        ..ReconcilerLimits::default()
    };
    let timings = ReconcilerTimings::with_grace(config.deployments.orphan_grace);
    let reconciler = Reconciler::new(ports, timings, limits, assembly.context.clone());
    Arc::new(reconciler.with_announcements().with_execution_log(Arc::new(assembly.database.clone())))
}

fn maintenance(
    assembly: &Assembly,
    outside: &Outside,
    reconciler: &Reconciler,
    identity: (InstanceId, BootId),
) -> Maintenance {
    let database = Arc::new(assembly.database.clone());
    let ports = MaintenancePorts {
        queue: database.clone(),
        routes: Arc::clone(&assembly.routes),
        logs: database.clone(),
        runtime_logs: Arc::clone(&outside.runtime_logs),
        log_freshness: assembly.services.log_freshness.clone(),
        idempotency: Some(database.clone()),
    };
    let timings = MaintenanceTimings::default();
    Maintenance::new(ports, identity, timings, reconciler.snapshot(), assembly.context.clone())
        .with_extensions(outside.runner.clone())
        .with_webhooks(database)
        .with_previews(Arc::clone(&assembly.services.previews))
}

/// Returns the manager of certificates, if the front proxy serves TLS.
fn certificate_manager(config: &Config, assembly: &Assembly) -> Option<CertificateManager> {
    config.proxy.as_ref()?.tls_bind?;
    let database = Arc::new(assembly.database.clone());
    let issuer = config.acme.as_ref().map(|acme| -> Arc<dyn CertificateIssuer> {
        Arc::new(AcmeIssuer::new(AcmeOptions {
            directory: acme.directory.clone(),
            email: acme.email.clone(),
            terms: acme.terms.clone(),
            trust: acme.trust.clone().unwrap_or_else(Trust::of_this_machine),
        }))
    });
    let addresses = config.acme.as_ref().and_then(|acme| acme.addresses.clone());
    let ports = CertificateManagerPorts {
        certificates: database.clone(),
        issuer,
        dns: addresses.map(|addresses| DnsCheck { resolver: Arc::new(SystemResolver), addresses }),
        secrets: Arc::clone(&assembly.secrets),
        logs: database,
        routes: Arc::clone(&assembly.routes),
    };
    Some(CertificateManager::new(ports, config.api_domain(), assembly.context.clone()))
}

fn sender(config: &Config, assembly: &Assembly, identity: SenderId) -> Sender {
    let settings = &config.notifications;
    let timings = SenderTimings::of(settings.retries.clone(), settings.timeout);
    let queue = Arc::new(assembly.database.clone());
    Sender::new(queue, Arc::clone(&assembly.services.notifier), identity, timings, assembly.context.clone())
}

fn comparison(config: &Config, assembly: &Assembly, source: &Arc<GitFetcher>) -> BranchPoller {
    let database = Arc::new(assembly.database.clone());
    let ports = BranchPollerPorts {
        branches: database.clone(),
        deploy_keys: database.clone(),
        secrets: Arc::clone(&assembly.secrets),
        source: source.clone(),
        watcher: PathWatcher::new(PathWatcherPorts {
            deployments: database.clone(),
            deploy_keys: database.clone(),
            secrets: Arc::clone(&assembly.secrets),
            changes: source.clone(),
        }),
    };
    let timings = BranchPollerTimings::each(config.deployments.branch_check);
    BranchPoller::new(ports, timings, assembly.context.clone())
}

fn runtime_logs(config: &Config, assembly: &Assembly, engine: &Engine) -> Arc<RuntimeLogs> {
    let database = Arc::new(assembly.database.clone());
    let secrets = Arc::clone(&assembly.secrets);
    let logs = RuntimeLogs::new(engine.inventory(), database.clone(), database, secrets);
    Arc::new(logs.with_rate(config.deployments.log_rate))
}

/// Returns the options of git: where it works, and what it may do.
pub(crate) fn git_options(config: &Config, data: &DataDir) -> GitOptions {
    let folder = |name: &str| -> PathBuf { data.path().join(name) };
    GitOptions {
        cache: folder("repositories"),
        work: folder("work"),
        policy: config.deployments.sources.clone(),
        known_hosts: config.deployments.known_hosts.clone(),
        hosted: config.deployments.repositories_dir.clone().unwrap_or_else(|| folder("git")),
        limits: GitLimits {
            free_bytes: config.deployments.min_free_disk,
            source_bytes: config.deployments.max_source_size,
            ..GitLimits::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use launchway_application::WakeListener;
    use tokio::{sync::mpsc, time::Instant};

    use super::*;

    /// A subscription that ends when its sender is dropped.
    struct Receiver(mpsc::UnboundedReceiver<Signal>);

    #[async_trait::async_trait]
    impl SignalReceiver for Receiver {
        async fn next(&mut self) -> Option<Signal> {
            self.0.recv().await
        }
    }

    async fn is_woken(listener: &mut WakeListener) -> bool {
        let start = Instant::now();
        listener.wait_timeout(Duration::from_secs(60)).await;
        start.elapsed() < Duration::from_secs(60)
    }

    #[tokio::test(start_paused = true)]
    async fn a_signal_wakes_only_those_who_wait_for_it() {
        let (jobs, routes) = (WakeSignal::default(), WakeSignal::default());
        let (mut for_jobs, mut for_routes) = (jobs.listen(), routes.listen());
        let (sender, receiver) = mpsc::unbounded_channel();
        let (_stop, told) = watch::channel(false);
        let task = spawn(wake_for_signals(Box::new(Receiver(receiver)), (jobs, routes), told));
        sender.send(Signal::Jobs).unwrap();
        assert!(is_woken(&mut for_jobs).await);
        assert!(!is_woken(&mut for_routes).await);
        sender.send(Signal::Routes).unwrap();
        assert!(is_woken(&mut for_routes).await);
        assert!(!is_woken(&mut for_jobs).await);
        drop(sender);
        task.await.unwrap();
    }

    #[tokio::test]
    async fn a_stop_ends_the_subscription() {
        let (_sender, receiver) = mpsc::unbounded_channel();
        let (stop, told) = watch::channel(false);
        let wakes = (WakeSignal::default(), WakeSignal::default());
        let task = spawn(wake_for_signals(Box::new(Receiver(receiver)), wakes, told));
        stop.send_replace(true);
        task.await.unwrap();
    }
}
