//! The lifecycle of a proxy: it starts afresh or takes over from a predecessor, serves, and shuts down.

use std::{
    future::Future,
    io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use thiserror::Error;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{interval, sleep, timeout},
};

use crate::{
    Limits, Settings,
    accept::listen,
    close::Phase,
    control::{self, Access, End, Folder, Inheritance, Leaving, Listeners, Successor},
    exchange::Scheme,
    proxy::Proxy,
    workers::Workers,
};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The interval at which idle connections to applications are closed and routes expire.
const SWEEP: Duration = Duration::from_secs(5);

/// The interval at which a proxy checks that its folder still exists.
const LOOK: Duration = Duration::from_secs(1);

/// The time that aborted connections get to end.
const MOMENT: Duration = Duration::from_secs(1);

/// The reason why a proxy does not run.
#[derive(Debug, Error)]
pub enum RunError {
    /// The folder, or a file in it, cannot be used.
    #[error("cannot use `{}`", path.display())]
    Folder {
        /// The path of the folder or file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The proxy cannot listen on the address.
    #[error("cannot listen on `{address}`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The handover from the running proxy failed.
    #[error("cannot take over from the running proxy")]
    TakeOver(#[source] io::Error),
    /// The threads that serve connections cannot be started.
    #[error("cannot start threads")]
    Threads(#[source] io::Error),
}

/// Serves until `stop` resolves, a control request stops the proxy, or another proxy has taken over.
/// Then it answers the requests in flight, within limits.
///
/// # Errors
///
/// Returns why it does not serve at all.
pub async fn run(settings: Settings, stop: impl Future<Output = ()>) -> Result<(), RunError> {
    run_in_boot(settings, Path::new(BOOT_ID), stop).await
}

/// As [`run`], with the path of the file that contains the id of the current boot.
///
/// # Errors
///
/// Returns why it does not serve at all.
#[doc(hidden)]
pub async fn run_in_boot(
    settings: Settings,
    boot_id: &Path,
    stop: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let unusable = |source| RunError::Folder { path: settings.folder.clone(), source };
    let access = if settings.control_user.is_some() { Access::Group } else { Access::Owner };
    let folder = Folder::make(&settings.folder, access).map_err(unusable)?;
    let sockets = Sockets::get(&folder, &settings).await?;
    // Only now: until it hands over, a predecessor may still change the routes.
    let has_predecessor = matches!(sockets.http, Socket::Inherited(_));
    let proxy = Arc::new(Proxy::load(&settings, boot_id, has_predecessor).map_err(unusable)?);
    let prepared = folder.prepare(access).map_err(unusable)?;
    let (listener, tls_listener, mut predecessor) = sockets.own().await?;
    let control_socket = folder.publish(prepared).map_err(unusable)?;
    if let Some(leaving) = &mut predecessor {
        leaving.report_serving().await;
    }

    let _cut = CutAtEnd(Arc::clone(&proxy));
    let listener = Arc::new(listener);
    let tls_listener = tls_listener.map(Arc::new);
    let (ends, mut end) = mpsc::channel(1);
    let server = control::Server {
        proxy: Arc::clone(&proxy),
        listeners: Listeners {
            http: Arc::downgrade(&listener),
            tls: tls_listener.as_ref().map(Arc::downgrade),
        },
        version: settings.version,
        control_user: settings.control_user,
        successor: Successor::new(settings.successor),
        ends,
    };
    let mut tasks = JoinSet::new();
    proxy.predecessor.set(predecessor.is_some());
    tasks.spawn(wait_for(Arc::clone(&proxy), predecessor));
    let mut listeners = vec![(listener, Scheme::Http)];
    if let (Some(listener), Some(tls)) = (tls_listener, &proxy.tls) {
        tls.set_port(listener.local_addr().map_or(0, |address| address.port()));
        listeners.push((listener, Scheme::Https));
    }
    let workers = Workers::start(&proxy, &listeners, settings.threads).map_err(RunError::Threads)?;
    tasks.spawn(hold(Arc::clone(&proxy), listeners));
    tasks.spawn(server.run(control_socket));
    tasks.spawn(sweep(Arc::clone(&proxy)));
    let end = tokio::select! {
        () = stop => End::Stopped,
        Some(end) = end.recv() => end,
        () = abandoned(&settings.folder) => End::Stopped,
    };
    if let End::Stopped = end {
        // Whatever changes from now on is for the next proxy, which finds the routes on disk.
        drop(proxy.routes.freeze().await);
        proxy.is_handed_over.set(true);
    }
    leave(&proxy, end).await;
    proxy.closing.enter(Phase::Cutting);
    // What they have not logged yet would be lost.
    if timeout(MOMENT, workers.ended()).await.is_err() {
        tracing::warn!("connections did not end in time");
    }
    Ok(())
}

/// Holds the listening sockets for a successor as long as the proxy accepts connections.
async fn hold(proxy: Arc<Proxy>, listeners: Vec<(Arc<TcpListener>, Scheme)>) {
    proxy.closing.reached(Phase::Leaving).await;
    drop(listeners);
}

/// The origin of the listening sockets.
struct Sockets {
    http: Socket,
    tls: Option<TcpListener>,
}

enum Socket {
    Bound(TcpListener),
    Inherited(Inheritance),
}

impl Sockets {
    async fn get(folder: &Folder, settings: &Settings) -> Result<Self, RunError> {
        let bind = |address| listen(address).map_err(|source| RunError::Listen { address, source });
        let mut inheritance = control::take_over(folder).await.map_err(RunError::TakeOver)?;
        let inherited = inheritance.as_mut().and_then(|inheritance| inheritance.tls.take());
        let tls = match (settings.tls_bind, inherited) {
            (Some(address), Some(listener)) if is_at(&listener, address) => Some(listener),
            (Some(address), _) => Some(bind(address)?),
            (None, _) => None,
        };
        let http = match inheritance {
            Some(inheritance) => Socket::Inherited(inheritance),
            None => Socket::Bound(bind(settings.bind)?),
        };
        Ok(Self { http, tls })
    }

    async fn own(self) -> Result<(TcpListener, Option<TcpListener>, Option<Leaving>), RunError> {
        match self.http {
            Socket::Bound(listener) => Ok((listener, self.tls, None)),
            Socket::Inherited(inheritance) => {
                let (listener, leaving) = inheritance.ready().await.map_err(RunError::TakeOver)?;
                Ok((listener, self.tls, Some(leaving)))
            }
        }
    }
}

/// Returns whether the socket listens on the address, where port 0 is any.
fn is_at(listener: &TcpListener, address: SocketAddr) -> bool {
    listener
        .local_addr()
        .is_ok_and(|own| own.ip() == address.ip() && (address.port() == 0 || own.port() == address.port()))
}

async fn wait_for(proxy: Arc<Proxy>, predecessor: Option<Leaving>) {
    if let Some(leaving) = predecessor {
        leaving.gone().await;
        proxy.predecessor.set(false);
    }
}

/// Returns when the folder has been removed: the proxy can no longer be controlled, and would block its
/// address for the next one for ever.
async fn abandoned(folder: &Path) {
    let mut was_gone = false;
    loop {
        sleep(LOOK).await;
        let is_gone = matches!(folder.try_exists(), Ok(false));
        if is_gone && was_gone {
            tracing::warn!("proxy folder was removed, shutting down");
            return;
        }
        was_gone = is_gone;
    }
}

async fn sweep(proxy: Arc<Proxy>) {
    let mut ticks = interval(SWEEP);
    loop {
        ticks.tick().await;
        proxy.routes.expire().await;
        for place in proxy.routes.table().places() {
            for upstream in place.balancer.upstreams() {
                upstream.close_idle(proxy.limits.upstream_keep_alive);
            }
        }
    }
}

/// Shuts down. Returns when no connection is left.
async fn leave(proxy: &Proxy, end: End) {
    let Limits { leave, leave_idle, connections, .. } = proxy.limits;
    proxy.closing.enter(Phase::Leaving);
    let mut handed = match end {
        End::HandedOver(handed) => Some(handed),
        End::Stopped => None,
    };
    let has_successor = handed.is_some();
    if let Some(handed) = &mut handed {
        handed.until_served().await;
    }
    let hurry = async {
        // Without a successor there is no point in waiting for another request.
        if has_successor {
            sleep(leave_idle).await;
        }
        proxy.closing.enter(Phase::ClosingIdle);
        sleep(leave.saturating_sub(leave_idle)).await;
        proxy.closing.enter(Phase::Cutting);
        sleep(MOMENT).await;
    };
    let all = u32::try_from(connections).unwrap_or(u32::MAX);
    let gone = async {
        let _all = proxy.connections.acquire_many(all).await;
        // A successor asks whether requests are in flight here, which includes those of our predecessor.
        proxy.predecessor.until(false).await;
    };
    tokio::select! {
        () = gone => {}
        () = hurry => {}
    }
}

/// Closes every connection when dropped, so that nothing outlives the caller of `run`.
struct CutAtEnd(Arc<Proxy>);

impl Drop for CutAtEnd {
    fn drop(&mut self) {
        self.0.closing.enter(Phase::Cutting);
    }
}
