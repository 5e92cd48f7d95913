//! Connects the adapters to the ports.

use std::{error::Error, net::SocketAddr, sync::Arc};

use launchway_application::{
    EngineStatus, Homes, OutboundPorts, OwnReplica, Ports, ServiceContext, Services, Terms, WakeSignal,
    applications::ApplicationPolicy,
    certificates::CertificatePublisher,
    extensions::CatalogFile,
    homes::HomePorts,
    installation::InstallationPorts,
    routes::{RoutePorts, Routes},
};
use launchway_domain::{
    auth::{ThrottleLimits, Token, TokenHash, TokenKind},
    extensions::PortPolicy,
    ids::InstanceId,
    metrics::ContainerStatistics,
    nodes::NodeInventory,
    quotas::Resource,
    routes::TrafficRouter,
    secret::{Entropy as _, SecretBox},
};
use launchway_infrastructure::{
    catalog,
    certificates::PemParser,
    clock::{SharedClock, SystemEntropy, TimeOrderedIds},
    data_dir::{DataDir, DataDirError},
    database::{Database, DatabaseOptions, DatabaseUrl, DurableThrottle, ServerLock},
    extensions::PortAvailability,
    git::{GitFetcher, HostedRepositories},
    outbound::{Outbound, OutboundOptions},
    passwords::Argon2Hasher,
    routes::{FrontProxy, NoProxy},
    sites::{Readers, ReleaseFolders, SITES},
    ssh_keys::Ed25519Keys,
};

use crate::{
    background::git_options,
    cli,
    config::Config,
    doctor::server::RunningServer,
    engine::Engine,
    front_proxy,
    installation::{self, Checked, Installation},
    setup_token,
};

/// A migrated database, and every use case over it.
pub(crate) struct Assembly {
    /// The id of the installation.
    pub(crate) installation: InstanceId,
    /// The id of this server, which owns its jobs.
    pub(crate) server: InstanceId,
    pub(crate) database: Database,
    pub(crate) services: Services,
    pub(crate) context: ServiceContext,
    pub(crate) secrets: Arc<dyn SecretBox>,
    pub(crate) sites: Arc<ReleaseFolders>,
    /// Fetches repositories. There is one, because it locks their caches.
    pub(crate) fetcher: Arc<GitFetcher>,
    pub(crate) routes: Arc<Routes>,
    /// The token for a remote registration of the first administrator; `None` once there is one.
    pub(crate) setup_token: Option<String>,
    /// The lock on the PostgreSQL database, which is released with this value.
    pub(crate) server_lock: Option<ServerLock>,
}

/// The port of HTTPS, at which a front proxy with settings of its own serves TLS.
const HTTPS_PORT: u16 = 443;

/// The properties of one run of the server.
#[derive(Clone, Default)]
pub(crate) struct Run {
    /// The address of the front proxy, if there is one.
    pub(crate) front: Option<SocketAddr>,
    /// The address at which the front proxy reaches the API; `None` if nothing listens.
    pub(crate) api: Option<SocketAddr>,
    /// This server as one of the replicas.
    pub(crate) replica: OwnReplica,
    /// The clock that the replicas share.
    pub(crate) clock: SharedClock,
}

impl Assembly {
    /// Assembles the services over the database of an installation.
    pub(crate) async fn new(
        config: &Config,
        data: &DataDir,
        installation: Installation,
        run: Run,
    ) -> Result<Self, Box<dyn Error>> {
        let Installation { id, server, database, secrets, server_lock } = installation;
        let setup_token = setup_token::claim(&database, data, &secrets).await?;
        let recognised = match &setup_token {
            Some(token) => TokenHash::of(token),
            // There is no token any more; this random one is unknown to everyone.
            None => Token::new(TokenKind::Setup, SystemEntropy.bits_256()).hash(),
        };
        let secrets: Arc<dyn SecretBox> = Arc::new(secrets);
        let sites = Arc::new(release_folders(config, data, &database)?);
        let routes = routes(config, data, (&database, &secrets), &sites, &run);
        let repositories = Arc::new(HostedRepositories::open(&git_options(config, data))?);
        let fetcher = Arc::new(GitFetcher::open(git_options(config, data))?);
        let engine = Engine::new(config, id);
        let adapters = Adapters {
            routes: Arc::clone(&routes),
            secrets: Arc::clone(&secrets),
            repositories,
            fetcher: Arc::clone(&fetcher),
            nodes: engine.nodes(),
            homes: homes(server, &database, engine.nodes()),
            statistics: engine.statistics(),
            installation: installation_ports(config, data, (&database, id)),
        };
        let ports = ports(config, &database, adapters, recognised, run)?;
        let context = ports.context.clone();
        let services = Services::new(ports);
        Ok(Self {
            installation: id,
            server,
            database,
            services,
            context,
            secrets,
            sites,
            fetcher,
            routes,
            setup_token,
            server_lock,
        })
    }
}

/// The folders of published sites, for the group of the server too if a front proxy with another user serves them. On
/// PostgreSQL, which several servers may use, they are archived in the database too.
pub(crate) fn release_folders(
    config: &Config,
    data: &DataDir,
    database: &Database,
) -> Result<ReleaseFolders, Box<dyn Error>> {
    let folders = ReleaseFolders::open(&data.path().join(SITES))?;
    let folders = match config.database {
        DatabaseUrl::Postgres(_) => folders.shared_by(Arc::new(database.clone())),
        DatabaseUrl::Sqlite(_) => folders,
    };
    if front_proxy::external_folder(config).is_none() {
        return Ok(folders.readable_by(Readers::Owner)?);
    }
    let folders = folders.readable_by(Readers::Group)?;
    data.allow_group_traversal(&[SITES])?;
    Ok(folders)
}

/// Loads the definitions of this binary into the catalog.
pub(crate) async fn load_catalog(services: &Services) -> Result<(), Box<dyn Error>> {
    let files: Vec<CatalogFile<'_>> = catalog::FILES
        .iter()
        .map(|(file, yaml)| CatalogFile { name: file.trim_end_matches(".yaml"), yaml })
        .collect();
    let version = env!("CARGO_PKG_VERSION").parse()?;
    let changed = services.catalog.load(&files, version).await?;
    if changed > 0 {
        tracing::info!(changed, "extension catalog updated");
    }
    Ok(())
}

/// The handling of the schema.
pub(crate) enum Tables {
    /// Migrate it to this version. Other servers may use it at the same time.
    BesideReplicas,
    /// Migrate it to this version, alone.
    BringUpToDate,
    /// Migrate it, but fail without a database: a new empty one would be a mistake.
    MustBeThere,
    /// Leave it unchanged: a server runs on it, and may not know a newer one.
    LeaveAsTheyAre,
}

impl Tables {
    /// Returns whether the database has to exist already.
    pub(crate) fn must_exist(&self) -> bool {
        matches!(self, Self::LeaveAsTheyAre | Self::MustBeThere)
    }
}

/// Runs `work` with the files of the server, whether a server runs on them or not.
pub(crate) fn offline<T>(
    config: &Config,
    when_alone: Tables,
    work: impl AsyncFnOnce(&Services) -> Result<T, launchway_application::Error>,
) -> Result<T, Box<dyn Error>> {
    if let Tables::MustBeThere = when_alone {
        installation::refuse_missing(config)?;
    }
    let data = DataDir::open(&config.data_dir)?;
    let lock = match data.lock() {
        Err(DataDirError::InUse(_)) => None,
        lock => Some(lock?),
    };
    let is_alone = lock.is_some() && !installation::is_database_in_use(config)?;
    let tables = if is_alone { when_alone } else { Tables::LeaveAsTheyAre };
    runtime()?.block_on(async {
        let installation = Installation::open(config, &data, tables, false).await?;
        let assembly = Assembly::new(config, &data, installation, Run::default()).await?;
        let outcome = work(&assembly.services).await;
        assembly.database.close().await;
        if !is_alone {
            // Waits until the running server has noticed the change, so that it is in effect.
            tokio::time::sleep(2 * Database::NOTICES_OTHERS_WITHIN).await;
        }
        Ok(outcome?)
    })
}

/// Migrates the database and prints the migrations.
pub(crate) fn migrate(config: &Config) -> Result<(), Box<dyn Error>> {
    let data = DataDir::open(&config.data_dir)?;
    // Not under a running server, which may not know the new schema.
    let _lock = data.lock()?;
    let checked = Checked::alone(config, &data, false)?;
    checked.check_key(config)?;
    let migrations = runtime()?.block_on(async {
        let _server_lock = checked.server_lock;
        let options = DatabaseOptions { lock: checked.lock, ..DatabaseOptions::new(config.database.clone()) };
        let database = Database::open(options)?;
        let migrations = database.migrate().await?;
        database.close().await;
        Ok::<_, Box<dyn Error>>(migrations)
    })?;
    for migration in &migrations {
        cli::print(&format!("{migration}\n"))?;
    }
    crate::print_line(&format!("{} migrations were needed; the database is up to date", migrations.len()));
    Ok(())
}

/// Runs the migrations that `tables` allows, or fails if there are some that it does not allow.
pub(crate) async fn bring_up_to_date(database: &Database, tables: &Tables) -> Result<(), Box<dyn Error>> {
    match tables {
        Tables::BesideReplicas | Tables::BringUpToDate | Tables::MustBeThere => {
            for migration in database.migrate().await? {
                tracing::info!(migration, "database migrated");
            }
        }
        Tables::LeaveAsTheyAre => {
            if !database.pending_migrations().await?.is_empty() {
                return Err(
                    "the server that runs here is of an older version: use its own binary, or stop it first"
                        .into(),
                );
            }
        }
    }
    Ok(())
}

/// Returns the error for migrations of the database that this binary does not know.
pub(crate) fn newer(unknown: &[String]) -> Box<dyn Error> {
    format!(
        "the database is of a newer version of Launchway: this one does not know its migrations {}; use that version, or restore a backup from before the upgrade",
        unknown.join(", ")
    )
    .into()
}

/// Returns a runtime for commands that run once.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, std::io::Error> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn routes(
    config: &Config,
    data: &DataDir,
    (database, secrets): (&Database, &Arc<dyn SecretBox>),
    sites: &Arc<ReleaseFolders>,
    run: &Run,
) -> Arc<Routes> {
    let front = run.front;
    let proxy = match (front, &config.proxy) {
        (Some(_), Some(proxy)) => {
            let proxy = FrontProxy::at(&front_proxy::folder(config, data), proxy.drain);
            Some(Arc::new(match (config.api_domain(), run.api) {
                (Some(domain), Some(api)) => proxy.with_api(&domain, api),
                _ => proxy,
            }))
        }
        _ => None,
    };
    let router: Arc<dyn TrafficRouter> = match &proxy {
        Some(proxy) => proxy.clone(),
        None => Arc::new(NoProxy),
    };
    let ports = RoutePorts {
        applications: Arc::new(database.clone()),
        deployments: Arc::new(database.clone()),
        sites: sites.clone(),
        router,
    };
    let routes = Routes::new(ports, front).with_extensions(Arc::new(database.clone()));
    let routes = match proxy {
        Some(proxy) => {
            let tls = config.proxy.as_ref().and_then(|proxy| proxy.tls_bind);
            routes.with_certificates(CertificatePublisher::new(
                Arc::new(database.clone()),
                Arc::clone(secrets),
                proxy,
                Arc::new(run.clock.clone()),
                tls.map_or(HTTPS_PORT, |address| address.port()),
            ))
        }
        None => routes,
    };
    Arc::new(routes.beside(run.replica.clone()))
}

/// The adapters beside the database.
struct Adapters {
    routes: Arc<Routes>,
    secrets: Arc<dyn SecretBox>,
    repositories: Arc<HostedRepositories>,
    fetcher: Arc<GitFetcher>,
    nodes: Option<Arc<dyn NodeInventory>>,
    homes: Homes,
    statistics: Option<Arc<dyn ContainerStatistics>>,
    installation: InstallationPorts,
}

/// Returns the machines of stateful applications, if there are several machines.
fn homes(server: InstanceId, database: &Database, nodes: Option<Arc<dyn NodeInventory>>) -> Homes {
    let Some(nodes) = nodes else { return Homes::default() };
    let (repository, registry) = (Arc::new(database.clone()), Arc::new(database.clone()));
    Homes::new(server, HomePorts { repository, registry, nodes })
}

fn ports(
    config: &Config,
    database: &Database,
    adapters: Adapters,
    setup_token: TokenHash,
    run: Run,
) -> Result<Ports, Box<dyn Error>> {
    let entropy = Arc::new(SystemEntropy);
    let store = Arc::new(database.clone());
    Ok(Ports {
        context: ServiceContext {
            store: store.clone(),
            clock: Arc::new(run.clock),
            ids: Arc::new(TimeOrderedIds),
            wake: WakeSignal::default(),
            engine: EngineStatus::default(),
            replica: run.replica,
            homes: adapters.homes,
            terms: Terms::default(),
            entropy: entropy.clone(),
        },
        identities: store.clone(),
        credentials: store.clone(),
        users: store.clone(),
        organizations: store.clone(),
        usage: store.clone(),
        port_check: Arc::new(port_availability(config, store.clone())),
        audit: store.clone(),
        applications: store.clone(),
        changes: adapters.fetcher,
        repositories: adapters.repositories,
        has_shared_repositories: config.deployments.repositories_dir.is_some(),
        certificates: store.clone(),
        certificate_parser: Arc::new(PemParser),
        deployments: store.clone(),
        extensions: store.clone(),
        executions: store.clone(),
        logs: store.clone(),
        idempotency: store.clone(),
        deploy_keys: store.clone(),
        webhooks: store.clone(),
        previews: store.clone(),
        nodes: adapters.nodes,
        statistics: adapters.statistics,
        installation: adapters.installation,
        notifications: store,
        outbound: outbound(config),
        key_maker: Arc::new(Ed25519Keys::new(entropy.clone())),
        policy: ApplicationPolicy {
            sources: config.deployments.sources.clone(),
            public_host: config.public_url.as_ref().map(|url| url.host().to_owned()),
            kept_versions: config.deployments.kept_versions,
            quotas: config.quotas,
            images_only: false,
        },
        routes: adapters.routes,
        throttle: Arc::new(DurableThrottle::new(database.clone(), ThrottleLimits::CONTRACT)),
        hasher: Arc::new(Argon2Hasher::new(entropy)),
        secrets: adapters.secrets,
        setup_token,
    })
}

/// Returns the ports of the state of the installation.
fn installation_ports(
    config: &Config,
    data: &DataDir,
    (database, installation): (&Database, InstanceId),
) -> InstallationPorts {
    let store = Arc::new(database.clone());
    let (config, data, database) = (config.clone(), data.clone(), database.clone());
    let diagnostics = Arc::new(RunningServer { config, data, database, installation });
    InstallationPorts { queue: store.clone(), storage: store, diagnostics }
}

/// Decides about host ports of extensions by the settings.
fn port_availability(config: &Config, host_ports: Arc<Database>) -> PortAvailability {
    let policy = PortPolicy {
        range: config.deployments.extension_ports,
        quota: config.quotas.of(Resource::ExtensionPorts),
    };
    let front = config.proxy.as_ref().map(|proxy| proxy.bind.port());
    PortAvailability::new(host_ports, policy, [config.bind.port()].into_iter().chain(front))
}

/// Returns the ports for egress, to the addresses that the operator allows.
fn outbound(config: &Config) -> OutboundPorts {
    let settings = &config.notifications;
    let options = OutboundOptions::new(settings.policy.clone());
    let outbound = Arc::new(Outbound::new(OutboundOptions { timeout: settings.timeout, ..options }));
    OutboundPorts {
        guard: outbound.clone(),
        webhooks: outbound.clone(),
        mailer: outbound,
        public_url: config.public_url.as_ref().map(|url| url.origin().to_owned()),
    }
}
