//! Where requests go: a target, and the connections to it.
//!
//! A connection to an application has no task of its own: whoever waits for an answer moves it. A
//! request then costs no switch between tasks, which is most of what a proxy does otherwise.

mod answer;
mod link;
mod outgoing;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

pub(crate) use self::{
    answer::Answer,
    link::{Link, SendError},
    outgoing::{Outgoing, Slot},
};
use crate::routes::Target;

/// Connections that wait for the next request, at most.
const MOST_IDLE: usize = 256;

/// For how long a connection is as good as new. An application may close one that it has not used
/// for a moment while a request is on its way, and not every request can be sent again.
const FRESH: Duration = Duration::from_secs(1);

/// One target of one application. A request holds it until its last byte, so it is gone when the last
/// request is done after the table has led elsewhere.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) target: Target,
    /// Whether it was set since the machine started: else its address may be another's.
    pub(crate) is_trusted: bool,
    idle: Mutex<VecDeque<Box<Link>>>,
    gone: Arc<Notify>,
}

impl Upstream {
    /// `gone` hears when nobody uses it any more.
    pub(crate) fn new(target: Target, is_trusted: bool, gone: &Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { target, is_trusted, idle: Mutex::default(), gone: Arc::clone(gone) })
    }

    /// A connection that waits for a request, if there is one.
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

    /// Closes connections that have waited for longer.
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
