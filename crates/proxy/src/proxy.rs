//! What everything in the proxy shares.

use std::{io, path::Path, sync::Arc};

use ipnet::IpNet;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Semaphore;

use crate::{
    Limits, Settings, access_log::AccessLog, closing::Closing, crowd::Crowd, routes::LiveRoutes,
    signal::Signal, store::Store,
};

const ACCESS_LOG: &str = "access.log";

/// File descriptors for everything but connections.
const OTHER_FILES: usize = 64;

/// The proxy itself.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) routes: LiveRoutes,
    pub(crate) limits: Limits,
    pub(crate) trusted: Vec<IpNet>,
    pub(crate) access_log: AccessLog,
    /// Whether the access log is on.
    pub(crate) notes_requests: bool,
    pub(crate) closing: Closing,
    /// Who has how many of them.
    pub(crate) crowd: Arc<Crowd>,
    /// One permit for each connection that there may be.
    pub(crate) connections: Arc<Semaphore>,
    /// Up while the proxy from which this one took over still answers requests.
    pub(crate) predecessor: Signal,
    /// Up when another process has the routes, or will have them.
    pub(crate) is_handed_over: Signal,
}

impl Proxy {
    /// With the routes that are kept now.
    pub(crate) fn load(settings: &Settings, boot_id: &Path) -> io::Result<Self> {
        let access_log = match settings.access_log {
            true => AccessLog::open(&settings.folder.join(ACCESS_LOG))?,
            false => AccessLog::off(),
        };
        let mut limits = settings.limits.clone();
        limits.connections = limits.connections.min(most_connections());
        Ok(Self {
            routes: LiveRoutes::load(Store::in_folder(&settings.folder, boot_id)),
            trusted: settings.trusted.clone(),
            access_log,
            notes_requests: settings.access_log,
            closing: Closing::default(),
            crowd: Arc::default(),
            connections: Arc::new(Semaphore::new(limits.connections)),
            limits,
            predecessor: Signal::default(),
            is_handed_over: Signal::default(),
        })
    }
}

/// As many as there can be files, two for each: the client's and the application's.
fn most_connections() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Shells set the limit low for the sake of old programs, and leave it to others to raise it.
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, "cannot raise the number of open files");
    }
    let files = getrlimit(Resource::Nofile)
        .current
        .map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    (files.saturating_sub(OTHER_FILES) / 2).clamp(1, Semaphore::MAX_PERMITS)
}
