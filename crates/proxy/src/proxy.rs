//! The shared state of the proxy.

use std::{io, path::Path, sync::Arc};

use ipnet::IpNet;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Semaphore;

use crate::{
    Limits, Settings, access_log::AccessLog, close::Closing, connection_limiter::ConnectionLimiter,
    routes::LiveRoutes, signal::Signal, store::Store, tls::Tls,
};

const ACCESS_LOG: &str = "access.log";

/// File descriptors for everything but connections.
const OTHER_FILES: usize = 64;

/// The shared state of the proxy.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) routes: LiveRoutes,
    /// Certificates and challenges; `None` if the proxy does not serve TLS.
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: Limits,
    pub(crate) trusted: Vec<IpNet>,
    pub(crate) access_log: AccessLog,
    /// The access log is on.
    pub(crate) notes_requests: bool,
    pub(crate) closing: Closing,
    /// The number of connections of each client.
    pub(crate) connection_limiter: Arc<ConnectionLimiter>,
    /// One permit for each connection that is allowed.
    pub(crate) connections: Arc<Semaphore>,
    /// One permit for each stream of HTTP/2 that is allowed.
    pub(crate) streams: Arc<Semaphore>,
    /// Set while the predecessor still answers requests.
    pub(crate) predecessor: Signal,
    /// Set once another process owns the routes, or is about to.
    pub(crate) is_handed_over: Signal,
}

impl Proxy {
    /// Creates the proxy with the routes on disk, which may be those of a predecessor that still runs.
    pub(crate) fn load(settings: &Settings, boot_id: &Path, has_predecessor: bool) -> io::Result<Self> {
        let access_log = match settings.access_log {
            true => AccessLog::open(&settings.folder.join(ACCESS_LOG))?,
            false => AccessLog::off(),
        };
        let mut limits = settings.limits.clone();
        limits.connections = limits.connections.min(most_connections());
        let tls = settings.tls_bind.map(|_| Tls::load(&settings.folder)).transpose()?;
        Ok(Self {
            tls,
            routes: LiveRoutes::load(Store::in_folder(&settings.folder, boot_id), has_predecessor),
            trusted: settings.trusted.clone(),
            access_log,
            notes_requests: settings.access_log,
            closing: Closing::default(),
            connection_limiter: Arc::default(),
            connections: Arc::new(Semaphore::new(limits.connections)),
            streams: Arc::new(Semaphore::new(limits.connections)),
            limits,
            predecessor: Signal::default(),
            is_handed_over: Signal::default(),
        })
    }
}

/// Returns the largest number of connections, and of streams. A connection needs two file descriptors, one for the client
/// and one for the application, and a stream one.
fn most_connections() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // The soft limit is low for the sake of old programs; others are expected to raise it.
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, "open file limit raise failed");
    }
    let files = getrlimit(Resource::Nofile)
        .current
        .map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    (files.saturating_sub(OTHER_FILES) / 3).clamp(1, Semaphore::MAX_PERMITS)
}
