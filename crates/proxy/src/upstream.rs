//! A target of requests, and the connections to it.
//!
//! A connection to an application has no task of its own: the task that waits for a response drives
//! it. A request then needs no context switch between tasks, which would be most of the proxy's cost.

mod answer;
mod balancer;
mod link;
mod request;

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;

pub(crate) use self::{
    answer::Answer,
    balancer::Balancer,
    link::{Link, SendError},
    request::{Outgoing, Slot},
};
use crate::{
    routes::{Endpoint, Target},
    workers,
};

/// The largest number of idle connections of each thread: as many as requests to one application by default, so that none
/// is closed only to be opened again.
const MOST_IDLE: usize = 1_024;

/// The time for which an idle connection counts as fresh. An application may close an idle connection while
/// a request is on its way, and not every request can be retried.
const FRESH: Duration = Duration::from_secs(1);

/// The time for which an endpoint is avoided after a connection to it failed.
const AVOIDED: Duration = Duration::from_secs(5);

/// The destination of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    Container(Endpoint),
    Site { folder: PathBuf },
    Stopped,
    Absent,
}

impl Destination {
    /// Returns every destination of a target: the endpoints of an application, or the only one.
    pub(crate) fn all(target: &Target) -> Vec<Self> {
        match target {
            Target::Endpoints(endpoints) if endpoints.is_empty() => vec![Self::Absent],
            Target::Endpoints(endpoints) => endpoints.iter().cloned().map(Self::Container).collect(),
            Target::Site { folder } => vec![Self::Site { folder: folder.clone() }],
            Target::Stopped => vec![Self::Stopped],
            Target::Absent => vec![Self::Absent],
        }
    }
}

/// One destination of one application. A request holds it until its last byte, so it is dropped with the last
/// request after the table was changed to another target.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) destination: Destination,
    /// It was set since the machine booted: otherwise its address may belong to another container.
    pub(crate) is_trusted: bool,
    /// The idle connections of each thread: a connection belongs to the runtime in which it was opened.
    idle: Box<[Mutex<VecDeque<Box<Link>>>]>,
    /// The time until which it is avoided, in milliseconds of [`now`]; 0 if no connection to it has failed
    /// since the last success.
    avoided_until: AtomicU64,
    gone: Arc<Notify>,
}

impl Upstream {
    /// Creates an upstream that notifies `gone` when it is no longer in use.
    pub(crate) fn new(destination: Destination, is_trusted: bool, gone: &Arc<Notify>) -> Arc<Self> {
        let idle = (0..workers::MOST).map(|_| Mutex::default()).collect();
        let avoided_until = AtomicU64::new(0);
        Arc::new(Self { destination, is_trusted, idle, avoided_until, gone: Arc::clone(gone) })
    }

    /// Avoids it for a while: a connection to it failed.
    pub(crate) fn avoid(&self) {
        let until = now() + u64::try_from(AVOIDED.as_millis()).unwrap_or(u64::MAX / 2);
        self.avoided_until.store(until, Ordering::Relaxed);
    }

    /// Ends the avoidance: a connection to it succeeded.
    pub(crate) fn welcome(&self) {
        if self.avoided_until.load(Ordering::Relaxed) != 0 {
            self.avoided_until.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_avoided(&self) -> bool {
        match self.avoided_until.load(Ordering::Relaxed) {
            0 => false,
            until => now() < until,
        }
    }

    /// Takes an idle connection, if there is one.
    pub(crate) fn take_idle(&self, must_be_fresh: bool) -> Option<Box<Link>> {
        let mut idle = self.idle();
        match idle.back() {
            Some(last) if must_be_fresh && last.idle_since.elapsed() > FRESH => None,
            _ => idle.pop_back(),
        }
    }

    /// Keeps a connection for the next request.
    pub(crate) fn put_idle(&self, mut link: Box<Link>) {
        link.idle_since = Instant::now();
        let mut idle = self.idle();
        if idle.len() < MOST_IDLE {
            idle.push_back(link);
        }
    }

    /// Closes connections that have been idle for longer.
    pub(crate) fn close_idle(&self, longer_than: Duration) {
        for idle in &self.idle {
            let mut idle = lock(idle);
            while idle.front().is_some_and(|link| link.idle_since.elapsed() > longer_than) {
                idle.pop_front();
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Box<Link>>> {
        lock(&self.idle[workers::current()])
    }
}

fn lock<T>(idle: &Mutex<T>) -> MutexGuard<'_, T> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the time since the first call, in milliseconds and never 0.
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX / 2) + 1
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.gone.notify_waiters();
    }
}
