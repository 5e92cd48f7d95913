//! The threads that serve connections.
//!
//! Each has a runtime of its own, which a connection never leaves, and neither do the connections to applications that
//! serve it: no request wakes another thread.

use std::{
    cell::Cell,
    io,
    net::{TcpListener, TcpStream},
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use tokio::{
    runtime,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
};

use crate::{
    accept::{accept, greet},
    close::Phase,
    exchange::{Peer, Scheme},
    proxy::Proxy,
};

/// The largest number of threads. Each of them is woken when a connection arrives, and so many are enough for some hundred
/// thousand requests per second.
pub(crate) const MOST: usize = 8;

/// The number of connections that a thread may have more than another one.
const SLACK: usize = 1;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// Returns the number of this thread, from 0; that of a thread which serves no connections is 0.
pub(crate) fn current() -> usize {
    CURRENT.get()
}

/// The threads, while they serve.
#[derive(Debug)]
pub(crate) struct Workers {
    /// Closed when all threads have ended.
    ended: UnboundedReceiver<()>,
}

/// The load of each thread.
#[derive(Debug)]
pub(crate) struct Loads(Box<[Load]>);

#[derive(Debug)]
struct Load {
    connections: AtomicUsize,
    /// Accepts connections on behalf of the others.
    handed: UnboundedSender<Accepted>,
}

/// A connection that counts as one of its thread.
#[derive(Debug)]
pub(crate) struct ThreadPermit {
    loads: Arc<Loads>,
    worker: usize,
}

#[derive(Debug)]
struct Accepted {
    stream: TcpStream,
    peer: Arc<Peer>,
    seat: ThreadPermit,
}

impl Workers {
    /// Accepts and serves connections until the proxy closes all of them.
    pub(crate) fn start(
        proxy: &Arc<Proxy>,
        listeners: &[(Arc<TcpListener>, Scheme)],
        threads: Option<NonZero<usize>>,
    ) -> io::Result<Self> {
        let threads = threads.map_or_else(thread::available_parallelism, Ok).map_or(1, usize::from).min(MOST);
        let (sender, ended) = unbounded_channel();
        let (loads, handed): (Vec<_>, Vec<_>) = (0..threads)
            .map(|_| {
                let (sender, receiver) = unbounded_channel();
                (Load { connections: AtomicUsize::new(0), handed: sender }, receiver)
            })
            .unzip();
        let loads = Arc::new(Loads(loads.into()));
        for (index, handed) in handed.into_iter().enumerate() {
            let worker =
                Worker { proxy: Arc::clone(proxy), loads: Arc::clone(&loads), listeners: listeners.to_vec() };
            let ended = sender.clone();
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
                CURRENT.set(index);
                runtime.block_on(worker.run(handed));
                // Ends the connections that are left.
                drop(runtime);
                drop(ended);
            })?;
        }
        Ok(Self { ended })
    }

    /// Resolves when all threads have ended.
    pub(crate) async fn ended(mut self) {
        let _none = self.ended.recv().await;
    }
}

struct Worker {
    proxy: Arc<Proxy>,
    loads: Arc<Loads>,
    listeners: Vec<(Arc<TcpListener>, Scheme)>,
}

impl Worker {
    async fn run(self, mut handed: UnboundedReceiver<Accepted>) {
        let Self { proxy, loads, listeners } = self;
        let mut tasks = JoinSet::new();
        for (listener, scheme) in listeners {
            match listener.try_clone().and_then(tokio::net::TcpListener::from_std) {
                Ok(listener) => {
                    tasks.spawn(accept(Arc::clone(&proxy), Arc::clone(&loads), listener, scheme));
                }
                Err(error) => tracing::error!(%error, "thread cannot accept connections"),
            }
        }
        let closed = Arc::clone(&proxy);
        tasks.spawn(async move {
            while let Some(Accepted { stream, peer, seat }) = handed.recv().await {
                match tokio::net::TcpStream::from_std(stream) {
                    Ok(stream) => serve(&proxy, stream, peer, seat),
                    Err(error) => tracing::warn!(%error, "client connection setup failed"),
                }
            }
        });
        closed.closing.reached(Phase::Cutting).await;
    }
}

/// Serves a connection on this thread, or on another one that has fewer.
pub(crate) fn place(proxy: &Arc<Proxy>, loads: &Arc<Loads>, stream: tokio::net::TcpStream, peer: Arc<Peer>) {
    let worker = loads.lightest(current());
    loads.0[worker].connections.fetch_add(1, Ordering::Relaxed);
    let seat = ThreadPermit { loads: Arc::clone(loads), worker };
    if worker == current() {
        return serve(proxy, stream, peer, seat);
    }
    match stream.into_std() {
        // A thread that has ended closes the connection, as this one is about to.
        Ok(stream) => drop(loads.0[worker].handed.send(Accepted { stream, peer, seat })),
        Err(error) => tracing::warn!(%error, "client connection setup failed"),
    }
}

fn serve(proxy: &Arc<Proxy>, stream: tokio::net::TcpStream, peer: Arc<Peer>, seat: ThreadPermit) {
    let proxy = Arc::clone(proxy);
    tokio::spawn(async move {
        greet(&proxy, stream, peer).await;
        drop(seat);
    });
}

impl Loads {
    /// Returns the thread for a connection: `own`, unless another one has clearly fewer.
    fn lightest(&self, own: usize) -> usize {
        let load = |worker: &usize| self.0[*worker].connections.load(Ordering::Relaxed);
        let least = (0..self.0.len()).min_by_key(load).unwrap_or(own);
        let few = load(&least);
        if load(&own) <= few + few / 8 + SLACK { own } else { least }
    }
}

impl Drop for ThreadPermit {
    fn drop(&mut self) {
        self.loads.0[self.worker].connections.fetch_sub(1, Ordering::Relaxed);
    }
}
