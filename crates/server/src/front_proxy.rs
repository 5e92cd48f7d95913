//! Controls the front proxy, a separate process that outlives the server.

pub(crate) mod external;
mod metrics;

use std::{
    error::Error,
    fs::File,
    net::{SocketAddr, TcpListener},
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use launchway_infrastructure::data_dir::DataDir;
use launchway_proxy::{
    control::{Client, ControlError, Status},
    traffic::Snapshot,
};
use tokio::time::{Instant, sleep};

use self::metrics::ProxyMetrics;
use crate::{
    config::{Config, ProxyConfig},
    print_line,
};

/// The time that a proxy may take until it responds.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time that a proxy may take to stop.
const GRACE: Duration = Duration::from_secs(40);
/// The size of its log file at which a new one is begun.
const LARGEST_LOG: u64 = 8 * 1024 * 1024;

/// The interval at which the counters of all applications are read, in seconds.
const METRICS_SECONDS: u64 = 5;

/// Returns the directory of the proxy's files.
pub(crate) fn folder(config: &Config, data: &DataDir) -> PathBuf {
    external_folder(config).unwrap_or_else(|| folder_in(data))
}

/// Returns the directory of a proxy that the server does not start itself, if there is one.
pub(crate) fn external_folder(config: &Config) -> Option<PathBuf> {
    config.proxy.as_ref().and_then(|proxy| proxy.folder.clone())
}

/// Returns the directory of a proxy that the server starts.
fn folder_in(data: &DataDir) -> PathBuf {
    data.path().join("proxy")
}

/// Identifies the build and the settings of the proxy: a running one that differs hands over.
pub(crate) fn version(config: &Config, proxy: &ProxyConfig) -> Result<String, std::io::Error> {
    let file = std::fs::metadata("/proc/self/exe")?;
    let (number, changed) = (file.ino(), file.mtime_nsec());
    let trusted: Vec<String> = config.trusted_proxies.iter().map(ToString::to_string).collect();
    let log = if proxy.access_log { "on" } else { "off" };
    let tls = proxy.tls_bind.map_or_else(|| "off".to_owned(), |address| address.to_string());
    let (version, trusted) = (env!("CARGO_PKG_VERSION"), trusted.join(","));
    Ok(format!("{version} {number}.{changed} log={log} tls={tls} trusted={trusted}"))
}

/// A running front proxy.
#[derive(Debug, Clone)]
pub(crate) struct FrontProxy {
    folder: PathBuf,
    bind: SocketAddr,
    address: SocketAddr,
    control: Client,
    metrics: ProxyMetrics,
    /// True if the server neither starts nor stops it.
    is_external: bool,
}

impl FrontProxy {
    /// Connects to the running proxy, or starts one; `None` if it is disabled.
    pub(crate) async fn ensure(config: &Config, data: &DataDir) -> Result<Option<Self>, Box<dyn Error>> {
        let Some(proxy) = &config.proxy else { return Ok(None) };
        if let Some(folder) = &proxy.folder {
            let control = Client::at(folder);
            external::end_previous(&folder_in(data), folder).await;
            let address = external::find(&control, &version(config, proxy)?, proxy.bind).await;
            let (folder, metrics) = (folder.clone(), ProxyMetrics::default());
            return Ok(Some(Self { folder, bind: proxy.bind, address, control, metrics, is_external: true }));
        }
        let folder = folder_in(data);
        std::fs::create_dir_all(&folder)?;
        let control = Client::at(&folder);
        let version = version(config, proxy)?;
        let status = match control.status().await {
            Ok(status) if !listens(&status, proxy.bind) => {
                tracing::info!(from = ?status.addresses, to = %proxy.bind, "front proxy moves to another address");
                end(&control).await?;
                start(&folder, proxy.bind, &control, |_| true).await?
            }
            Ok(status) if status.version == version => {
                tracing::info!(process = status.process, "front proxy is running already");
                status
            }
            Ok(old) => {
                tracing::info!(process = old.process, "front proxy hands over to this version");
                start(&folder, proxy.bind, &control, |status| status.process != old.process).await?
            }
            Err(ControlError::Absent) => {
                check_that_it_can_listen(proxy.bind, "LAUNCHWAY_PROXY_BIND")?;
                if let Some(tls) = proxy.tls_bind {
                    check_that_it_can_listen(tls, "LAUNCHWAY_PROXY_TLS_BIND")?;
                }
                start(&folder, proxy.bind, &control, |_| true).await?
            }
            Err(error) => return Err(format!("cannot query the front proxy: {error}").into()),
        };
        let address = status.addresses.first().copied().unwrap_or(proxy.bind);
        let metrics = ProxyMetrics::default();
        Ok(Some(Self { folder, bind: proxy.bind, address, control, metrics, is_external: false }))
    }

    /// Returns the listen address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the recent metrics of the proxy.
    pub(crate) fn metrics(&self) -> ProxyMetrics {
        self.metrics.clone()
    }

    /// Restarts the proxy whenever it exits, and polls its metrics, which `report` gets. An external proxy is waited for.
    pub(crate) async fn keep(&self, report: impl Fn(&Snapshot)) {
        let mut is_absent = false;
        for second in 0_u64.. {
            sleep(Duration::from_secs(1)).await;
            let was_absent = std::mem::take(&mut is_absent);
            match self.query(second % METRICS_SECONDS == 0).await {
                Ok(traffic) => {
                    if let Some(traffic) = traffic {
                        report(&traffic);
                        self.metrics.renew(traffic);
                    }
                    if was_absent {
                        tracing::info!("front proxy answers");
                    }
                }
                Err(ControlError::Absent) if self.is_external => {
                    is_absent = true;
                    if !was_absent {
                        tracing::warn!(hint = external::START, "front proxy does not answer");
                    }
                }
                Err(ControlError::Absent) => self.start_again().await,
                Err(error) => tracing::warn!(%error, "front proxy could not be queried"),
            }
        }
    }

    /// Checks that the proxy answers; the counters of all applications are read only for its metrics.
    async fn query(&self, with_metrics: bool) -> Result<Option<Snapshot>, ControlError> {
        if with_metrics {
            return self.control.traffic().await.map(Some);
        }
        self.control.status().await?;
        Ok(None)
    }

    async fn start_again(&self) {
        tracing::warn!("front proxy exited; restarting it");
        // On the same address, even if it was chosen freely before.
        let bind = SocketAddr::new(self.bind.ip(), self.address.port());
        if let Err(error) = start(&self.folder, bind, &self.control, |_| true).await {
            tracing::error!(%error, "front proxy could not be started");
        }
    }

    /// Stops the proxy, and reports it. An external proxy goes on.
    pub(crate) async fn stop(&self) {
        if self.is_external {
            return;
        }
        match end(&self.control).await {
            Ok(()) => print_line(
                "The front proxy has stopped too: applications cannot be reached until the next start.",
            ),
            Err(error) => tracing::warn!(%error, "front proxy could not be stopped"),
        }
    }
}

/// Returns whether a proxy listens where it is to.
pub(crate) fn listens(status: &Status, bind: SocketAddr) -> bool {
    let is_it = |address: &SocketAddr| {
        address.ip() == bind.ip() && (bind.port() == 0 || address.port() == bind.port())
    };
    status.addresses.iter().any(is_it)
}

/// Checks the address first: the proxy would report the error in its own log only.
fn check_that_it_can_listen(bind: SocketAddr, setting: &str) -> Result<(), String> {
    match TcpListener::bind(bind) {
        Ok(_free) => Ok(()),
        Err(error) => Err(format!(
            "cannot listen on {bind} ({setting}): {error}; choose another address, or `off` for none. \
             If the front proxy of another data directory uses it, stop that one with `launchway proxy stop` there"
        )),
    }
}

/// Starts a proxy and waits until one responds that `is_new`.
async fn start(
    folder: &Path,
    bind: SocketAddr,
    control: &Client,
    is_new: impl Fn(&Status) -> bool,
) -> Result<Status, Box<dyn Error>> {
    let log = folder.join("proxy.log");
    let mut child = spawn(&log, bind)?;
    let timeout = Instant::now() + TIMEOUT;
    loop {
        match control.status().await {
            Ok(status) if is_new(&status) => {
                // Reaps the child process.
                std::thread::spawn(move || child.wait());
                return Ok(status);
            }
            Ok(_) | Err(ControlError::Absent) if Instant::now() < timeout => {}
            Ok(_) => {
                return Err(format!("the front proxy does not answer; see {}", log.display()).into());
            }
            Err(error) => {
                return Err(format!("the front proxy does not answer: {error}; see {}", log.display()).into());
            }
        }
        if let Some(ended) = child.try_wait()? {
            return Err(format!("the front proxy exited ({ended}); see {}", log.display()).into());
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Spawns the proxy in its own process group, so that neither Ctrl-C nor the end of the server stops it.
fn spawn(log: &Path, bind: SocketAddr) -> Result<Child, std::io::Error> {
    if std::fs::metadata(log).is_ok_and(|log| log.len() > LARGEST_LOG) {
        std::fs::rename(log, log.with_extension("log.old"))?;
    }
    let log = File::options().create(true).append(true).open(log)?;
    let mut arguments = std::env::args_os().skip(1);
    let mut command = Command::new(std::env::current_exe()?);
    // The settings may come from a file on the command line.
    while let Some(argument) = arguments.next() {
        if argument == "--config" {
            command.arg("--config").args(arguments.next());
        } else if argument.to_string_lossy().starts_with("--config=") {
            command.arg(argument);
        }
    }
    command
        .args(["proxy", "run"])
        .env("LAUNCHWAY_PROXY_BIND", bind.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0)
        .spawn()
}

/// Stops the proxy, and returns when it has exited.
async fn end(control: &Client) -> Result<(), Box<dyn Error>> {
    control.stop().await?;
    let timeout = Instant::now() + GRACE;
    while Instant::now() < timeout {
        if let Err(ControlError::Absent) = control.status().await {
            return Ok(());
        }
        sleep(Duration::from_millis(20)).await;
    }
    Err("the front proxy did not stop in time".into())
}
