//! A proxy's life: it begins in another's place or in an empty one, serves, and leaves.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use thiserror::Error;
use tokio::{
    net::TcpListener,
    sync::mpsc,
    task::JoinSet,
    time::{interval, sleep},
};

use crate::{
    Limits, Settings,
    accept::{accept, listen},
    closing::Phase,
    control::{self, End, Folder, Inheritance, Leaving},
    proxy::Proxy,
};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// How often connections to applications are looked at that nobody uses.
const SWEEP: Duration = Duration::from_secs(5);

/// How often a proxy looks whether its folder is still there.
const LOOK: Duration = Duration::from_secs(1);

/// For connections that were cut to be gone.
const MOMENT: Duration = Duration::from_secs(1);

/// Why a proxy does not run.
#[derive(Debug, Error)]
pub enum RunError {
    /// Its folder, or something in it.
    #[error("cannot use `{}`", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The address where it is to listen.
    #[error("cannot listen on `{address}`")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The proxy that runs already.
    #[error("cannot take over from the proxy that runs")]
    TakeOver(#[source] io::Error),
}

/// Serves until `stop` resolves, somebody asks for the end by the control socket, or another proxy has
/// taken over. What is under way then is answered first, within limits.
///
/// # Errors
///
/// Says why it does not serve at all.
pub async fn run(settings: Settings, stop: impl Future<Output = ()>) -> Result<(), RunError> {
    run_in_boot(settings, Path::new(BOOT_ID), stop).await
}

/// As [`run`], on a machine that tells by this file which boot this is.
///
/// # Errors
///
/// Says why it does not serve at all.
#[doc(hidden)]
pub async fn run_in_boot(
    settings: Settings,
    boot_id: &Path,
    stop: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let unusable = |source| RunError::Folder { path: settings.folder.clone(), source };
    let folder = Folder::make(&settings.folder).map_err(unusable)?;
    let socket = Socket::get(&folder, settings.bind).await?;
    // Only now: until it hands over, a predecessor may still change the routes.
    let proxy = Arc::new(Proxy::load(&settings, boot_id).map_err(unusable)?);
    let prepared = folder.prepare().map_err(unusable)?;
    let (listener, mut predecessor) = socket.own().await?;
    let control_socket = folder.publish(prepared).map_err(unusable)?;
    if let Some(leaving) = &mut predecessor {
        leaving.say_that_we_serve().await;
    }

    let _cut = CutAtEnd(Arc::clone(&proxy));
    let listener = Arc::new(listener);
    let (ends, mut end) = mpsc::channel(1);
    let server = control::Server {
        proxy: Arc::clone(&proxy),
        listener: Arc::downgrade(&listener),
        version: settings.version,
        ends,
    };
    let mut tasks = JoinSet::new();
    proxy.predecessor.set(predecessor.is_some());
    tasks.spawn(wait_for(Arc::clone(&proxy), predecessor));
    tasks.spawn(accept(Arc::clone(&proxy), listener));
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
    Ok(())
}

/// Where the listening socket comes from.
enum Socket {
    Bound(TcpListener),
    Inherited(Inheritance),
}

impl Socket {
    async fn get(folder: &Folder, address: SocketAddr) -> Result<Self, RunError> {
        match control::take_over(folder).await.map_err(RunError::TakeOver)? {
            Some(inheritance) => Ok(Self::Inherited(inheritance)),
            None => listen(address).map(Self::Bound).map_err(|source| RunError::Listen { address, source }),
        }
    }

    async fn own(self) -> Result<(TcpListener, Option<Leaving>), RunError> {
        match self {
            Self::Bound(listener) => Ok((listener, None)),
            Self::Inherited(inheritance) => {
                let (listener, leaving) = inheritance.ready().await.map_err(RunError::TakeOver)?;
                Ok((listener, Some(leaving)))
            }
        }
    }
}

async fn wait_for(proxy: Arc<Proxy>, predecessor: Option<Leaving>) {
    if let Some(leaving) = predecessor {
        leaving.gone().await;
        proxy.predecessor.set(false);
    }
}

/// Returns when somebody has removed the folder: nobody can tell this proxy anything any more, and it
/// would keep its address from the next one for ever.
async fn abandoned(folder: &Path) {
    let mut was_gone = false;
    loop {
        sleep(LOOK).await;
        let is_gone = matches!(folder.try_exists(), Ok(false));
        if is_gone && was_gone {
            tracing::warn!("the folder of this proxy is gone, and so it ends");
            return;
        }
        was_gone = is_gone;
    }
}

async fn sweep(proxy: Arc<Proxy>) {
    let mut ticks = interval(SWEEP);
    loop {
        ticks.tick().await;
        for place in proxy.routes.table().places() {
            place.upstream.close_idle(proxy.limits.upstream_keep_alive);
        }
    }
}

/// Returns when no connection is left.
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
        // Without a successor nobody is served by waiting for another request.
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
        // A successor asks whether anything is under way here, and means those before, too.
        proxy.predecessor.until(false).await;
    };
    tokio::select! {
        () = gone => {}
        () = hurry => {}
    }
}

/// Nothing goes on behind the back of whoever ran the proxy.
struct CutAtEnd(Arc<Proxy>);

impl Drop for CutAtEnd {
    fn drop(&mut self) {
        self.0.closing.enter(Phase::Cutting);
    }
}
