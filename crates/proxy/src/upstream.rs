//! A target of requests, and the connections to it.
//!
//! A connection to an application has no task of its own: the task that waits for a response drives
//! it. A request then needs no context switch between tasks, which would be most of the proxy's cost.

mod answer;
mod link;
mod request;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

pub(crate) use self::{
    answer::Answer,
    link::{Link, SendError},
    request::{Outgoing, Slot},
};
use crate::routes::Target;

/// The largest number of idle connections.
const MOST_IDLE: usize = 256;

/// The time for which an idle connection counts as fresh. An application may close an idle connection while
/// a request is on its way, and not every request can be retried.
const FRESH: Duration = Duration::from_secs(1);

/// One target of one application. A request holds it until its last byte, so it is dropped with the last
/// request after the table was changed to another target.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) target: Target,
    /// It was set since the machine booted: otherwise its address may belong to another container.
    pub(crate) is_trusted: bool,
    idle: Mutex<VecDeque<Box<Link>>>,
    gone: Arc<Notify>,
}

impl Upstream {
    /// Creates an upstream that notifies `gone` when it is no longer in use.
    pub(crate) fn new(target: Target, is_trusted: bool, gone: &Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { target, is_trusted, idle: Mutex::default(), gone: Arc::clone(gone) })
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
        let mut idle = self.idle();
        while idle.front().is_some_and(|link| link.idle_since.elapsed() > longer_than) {
            idle.pop_front();
        }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Box<Link>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.gone.notify_waiters();
    }
}
