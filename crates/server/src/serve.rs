//! Runs the HTTP server, and stops it gracefully.

use std::{
    error::Error,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use actix_web::{App, HttpServer, dev::ServerHandle, middleware::from_fn, web::Data};
use ipnet::IpNet;
use launchway_api::{Api, ApiOptions, Metrics};
use launchway_application::{
    EngineStatus, OwnReplica,
    replicas::{ReplicaEnd, ReplicaMonitor},
};
use launchway_dashboard::{Dashboard, DashboardOptions};
use launchway_domain::ids::{ApplicationId, BootId, Ids as _};
use launchway_infrastructure::{
    clock::{SharedClock, TimeOrderedIds},
    data_dir::DataDir,
    database::{Database, LockHolder, ServerLock},
};
use launchway_proxy::traffic::Snapshot;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use tokio::{
    net::{TcpListener, TcpSocket},
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::JoinHandle,
};

use crate::{
    assembly::{Assembly, Run, Tables, load_catalog},
    background::Background,
    cli,
    config::Config,
    engine::Engine,
    front_proxy::FrontProxy,
    installation::{self, Installation},
    replicas, telemetry,
};

/// The largest body of a request.
const BODY_LIMIT: usize = 1024 * 1024;
/// The number of connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// The time for which a connection without a request stays open, as in the front proxy. Longer than clients and load
/// balancers keep one for their next request: a request on a connection that is just being closed gets no response, and one
/// that changes something is not sent again by them.
const KEEP_ALIVE: Duration = Duration::from_secs(150);
/// The time that running requests get at shutdown.
const GRACE: Duration = Duration::from_secs(30);

/// Serves until the process gets a signal. With `adopt`, a data directory and a database of different
/// installations are joined first.
pub(crate) fn run(config: &Config, adopt: bool) -> Result<(), Box<dyn Error>> {
    telemetry::start(config);
    actix_web::rt::System::new().block_on(serve(config, adopt))
}

async fn serve(config: &Config, adopt: bool) -> Result<(), Box<dyn Error>> {
    let data = DataDir::open(&config.data_dir)?;
    let _lock = data.lock_after_a_kill()?;
    // Before anything else in the data directory, on the engine or in the front proxy is changed.
    let installation = Installation::open(config, &data, Tables::BesideReplicas, adopt).await?;
    Engine::new(config, installation.id).require_swarm(&installation.database, installation.server).await?;
    // An address in use is reported before a front proxy is started, which would keep running.
    let socket = bind(config.bind)?;
    let (boot, clock) = (BootId::from(TimeOrderedIds.next()), SharedClock::default());
    let monitor = replicas::register(config, &installation, boot, &clock).await?;
    let replica = monitor.as_ref().map(ReplicaMonitor::own).unwrap_or_default();
    let heartbeats = Heartbeats::start(monitor);
    let api = reachable_at(socket.local_addr()?);
    let started = start(config, &data, installation, (boot, replica, clock), api).await;
    let (proxy, assembly, background) = match started {
        Ok(started) => started,
        Err(error) => {
            heartbeats.stop().await;
            return Err(error);
        }
    };
    let front = proxy.as_ref().map(FrontProxy::address);
    let Assembly { database, services, setup_token, server_lock, .. } = assembly;
    let metrics = Metrics::default();
    metrics.also_collect(Box::new(DatabaseMetrics(database.clone())));
    metrics.also_collect(Box::new(EngineMetrics(services.engine.clone())));
    if let Some(proxy) = &proxy {
        metrics.also_collect(Box::new(proxy.metrics()));
    }
    let options = ApiOptions {
        trusted_proxies: trusted_proxies(config, api),
        public_origin: config.public_url.as_ref().map(|url| url.origin().to_owned()),
        body_limit: BODY_LIMIT,
        body_timeout: config.body_timeout,
    };
    let services = Arc::new(services);
    let dashboard = Data::new(Dashboard::new(services.clone(), dashboard_options(&options)));
    let api = Data::new(Api::new(services.clone(), options, metrics).with_store(Arc::new(database.clone())));

    let app_data = (api.clone(), dashboard.clone());
    let server = HttpServer::new(move || {
        App::new()
            .app_data(app_data.0.clone())
            .app_data(app_data.1.clone())
            .wrap(from_fn(launchway_api::middleware))
            .configure(launchway_dashboard::configure)
            .configure(launchway_api::configure)
    })
    .disable_signals()
    .keep_alive(KEEP_ALIVE)
    .shutdown_timeout(GRACE.as_secs())
    .listen(
        socket
            .listen(BACKLOG)
            .and_then(TcpListener::into_std)
            .map_err(|error| cannot_listen(config.bind, &error))?,
    )?;

    let addresses = server.addrs();
    let server = server.run();
    let stop =
        tokio::spawn(stop_when_told(server.handle(), (api, dashboard), server_lock, heartbeats.ended())?);
    announce(&addresses, front, setup_token.as_deref())?;
    let watched = proxy.clone().map(|proxy| {
        tokio::spawn(
            async move { proxy.keep(|traffic| services.metrics.record_requests(totals(traffic))).await },
        )
    });
    server.await?;
    let signal = stop.await.ok();
    if let Some(watched) = watched {
        watched.abort();
    }
    if let Some(Signal::DatabaseTaken(holder)) = &signal {
        // The other server has taken over the background work.
        tracing::error!(%holder, "another server uses the database");
        return Err(installation::taken_over(config, holder));
    }
    // First: the others do not wait for the front proxy of a server that ends.
    heartbeats.stop().await;
    background.stop().await;
    if let Some(Signal::ReplicaEnded(end)) = &signal {
        return Err(replicas::in_words(config, end));
    }
    match (proxy, &signal) {
        (Some(proxy), Some(Signal::Interrupt)) => proxy.stop().await,
        (Some(proxy), _) => {
            tracing::info!(address = %proxy.address(), "front proxy keeps serving applications")
        }
        (None, _) => {}
    }
    database.close().await;
    tracing::info!("server stopped");
    Ok(())
}

/// Starts the front proxy and everything that works without a request.
async fn start(
    config: &Config,
    data: &DataDir,
    installation: Installation,
    (boot, replica, clock): (BootId, OwnReplica, SharedClock),
    api: SocketAddr,
) -> Result<(Option<FrontProxy>, Assembly, Background), Box<dyn Error>> {
    let proxy = FrontProxy::ensure(config, data).await?;
    let front = proxy.as_ref().map(FrontProxy::address);
    let assembly =
        Assembly::new(config, data, installation, Run { front, api: Some(api), replica, clock }).await?;
    load_catalog(&assembly.services).await?;
    let background = Background::start(config, data, &assembly, boot, front).await?;
    Ok((proxy, assembly, background))
}

/// Returns the options of the dashboard, which treats requests as the API does.
fn dashboard_options(options: &ApiOptions) -> DashboardOptions {
    DashboardOptions {
        origin: launchway_api::origin,
        is_local: launchway_api::is_local,
        is_from_own_page: launchway_api::is_from_own_page,
        public_origin: options.public_origin.clone(),
        body_timeout: options.body_timeout,
    }
}

/// Returns the requests that each application has had.
fn totals(traffic: &Snapshot) -> impl Iterator<Item = (ApplicationId, u64)> {
    traffic.applications.iter().filter_map(|one| {
        let total = one.requests.iter().sum::<u64>() + one.unanswered;
        Some((one.application.parse().ok()?, total))
    })
}

/// Binds an address; connections are refused until the server listens.
fn bind(address: SocketAddr) -> Result<TcpSocket, String> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let socket = socket.and_then(|socket| {
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(socket)
    });
    socket.map_err(|error| cannot_listen(address, &error))
}

/// Returns the address at which this machine reaches a server that listens on `address`.
fn reachable_at(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Returns the proxies whose `X-Forwarded-For` is trusted. The own front proxy is one of them if it serves the API; its
/// connections come from the address that it connects to.
fn trusted_proxies(config: &Config, api: SocketAddr) -> Vec<IpNet> {
    let own = config.api_domain().map(|_| IpNet::from(api.ip()));
    config.trusted_proxies.iter().copied().chain(own).collect()
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> String {
    format!("cannot listen on {address} (LAUNCHWAY_BIND): {error}")
}

/// The reason why the server stops.
enum Signal {
    /// SIGINT: stops everything, the front proxy too.
    Interrupt,
    /// SIGTERM: stops the server only; applications keep running.
    Terminate,
    /// Another process holds the lock on the database.
    DatabaseTaken(LockHolder),
    /// This server must not be one of the replicas any more.
    ReplicaEnded(ReplicaEnd),
}

/// The heartbeats of this server as one of the replicas, if there may be others.
struct Heartbeats {
    stop: watch::Sender<bool>,
    ended: watch::Receiver<Option<ReplicaEnd>>,
    task: Option<JoinHandle<()>>,
}

impl Heartbeats {
    fn start(monitor: Option<ReplicaMonitor>) -> Self {
        let (stop, is_stopped) = watch::channel(false);
        let (end, ended) = watch::channel(None);
        let task = monitor.map(|monitor| {
            tokio::spawn(async move {
                end.send_replace(monitor.run(is_stopped).await);
            })
        });
        Self { stop, ended, task }
    }

    /// Returns a future that is ready when this server must not go on.
    fn ended(&self) -> impl Future<Output = ReplicaEnd> + use<> {
        let mut ended = self.ended.clone();
        async move {
            match ended.wait_for(Option::is_some).await.ok().and_then(|end| end.clone()) {
                Some(end) => end,
                None => std::future::pending().await,
            }
        }
    }

    /// Ends the registration of this server.
    async fn stop(self) {
        self.stop.send_replace(true);
        if let Some(task) = self.task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "heartbeats panicked");
        }
    }
}

/// Waits for SIGTERM or SIGINT; then makes `/ready` fail, finishes running requests, and accepts no new
/// ones. When another process has the lock on the database, or this server must not go on, it stops at once.
fn stop_when_told(
    server: ServerHandle,
    (api, dashboard): (Data<Api>, Data<Dashboard>),
    lock: Option<ServerLock>,
    replica_ended: impl Future<Output = ReplicaEnd> + 'static,
) -> Result<impl Future<Output = Signal>, std::io::Error> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // A separate task, so that the lock is held until the process exits.
    let lock = lock.map(|lock| tokio::spawn(lock.keep()));
    let lost = async move {
        match lock {
            Some(lock) => lock.await.unwrap_or_default(),
            None => std::future::pending().await,
        }
    };
    let begin_stopping = move || {
        api.begin_stopping();
        dashboard.begin_stopping();
    };
    Ok(async move {
        let signal = tokio::select! {
            _ = terminate.recv() => Signal::Terminate,
            _ = interrupt.recv() => Signal::Interrupt,
            holder = lost => {
                begin_stopping();
                server.stop(false).await;
                return Signal::DatabaseTaken(holder);
            }
            end = replica_ended => {
                begin_stopping();
                server.stop(false).await;
                return Signal::ReplicaEnded(end);
            }
        };
        tracing::info!("server is stopping; running requests finish first");
        begin_stopping();
        server.stop(true).await;
        signal
    })
}

/// Prints the address of the server and the next steps.
fn announce(
    addresses: &[SocketAddr],
    front: Option<SocketAddr>,
    setup_token: Option<&str>,
) -> Result<(), Box<dyn Error>> {
    let Some(address) = addresses.first() else { return Ok(()) };
    let url = format!("http://{address}");
    let mut text = format!(
        "Launchway is listening on {url}\nDashboard: {url}/dashboard\nAPI documentation: {url}/docs\n"
    );
    if let Some(front) = front {
        text.push_str(&format!("Applications are served at http://{front} by host name\n"));
    }
    if let Some(token) = setup_token {
        text.push_str(&format!(
            "\nNext, register the first administrator. On this machine, run:\n\n  \
             launchway register {url}\n\n\
             On another machine, you also need the setup token: {token}\n"
        ));
    }
    cli::print(&text)
}

/// The availability of the engine as a metric.
#[derive(Debug)]
struct EngineMetrics(EngineStatus);

impl Collector for EngineMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let gauge = ConstGauge::new(i64::from(self.0.outage().is_none()));
        let help = "Whether the container engine answers";
        gauge.encode(encoder.encode_descriptor("engine_up", help, None, gauge.metric_type())?)
    }
}

/// The metrics of the database.
#[derive(Debug)]
struct DatabaseMetrics(Database);

impl Collector for DatabaseMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let statistics = self.0.statistics();
        for (name, help, value) in [
            ("database_reads", "Read queries", statistics.reads),
            ("database_commits", "Requested commits", statistics.commits),
            ("database_transactions", "Committed transactions", statistics.transactions),
        ] {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }
}
