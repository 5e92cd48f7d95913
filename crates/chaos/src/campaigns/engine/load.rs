//! Constant, bounded load on every application through the front proxy.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, sleep, spawn},
    time::{Duration, Instant},
};

use crate::{
    tenants::Tenants,
    visitor::{self, Response},
};

/// The time after which a request counts as unanswered: a paused container accepts and is silent.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The number of threads for each application: one that waits must not end the load.
const THREADS: usize = 3;
/// The number of wrong answers that are kept as examples, and of failures that are printed.
const EXAMPLES: usize = 5;
/// The number of failures whose times are kept.
const FAILURES: usize = 10_000;
/// The statuses that an application under a fault may show: not found while it is deleted, the others
/// while its container or the engine is away.
const EXPECTED: [u16; 5] = [200, 404, 502, 503, 504];

/// Counts of responses.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseCounts {
    /// Responses of the application that was asked for.
    pub(crate) right: usize,
    /// Responses of another application.
    pub(crate) foreign: usize,
    /// Responses of no application, by status.
    pub(crate) statuses: BTreeMap<u16, usize>,
    /// Connections that failed, were closed early or timed out.
    pub(crate) unanswered: usize,
    /// The time of the slowest response of the right application.
    pub(crate) slowest: Duration,
    /// The first wrong answers.
    pub(crate) examples: Vec<String>,
    /// The first requests that failed.
    pub(crate) failures: Vec<Failure>,
}

/// A request that failed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) application: String,
    pub(crate) sent: Instant,
    pub(crate) took: Duration,
    pub(crate) outcome: String,
}

/// Several threads for each application.
pub(crate) struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    front: SocketAddr,
    path: String,
    is_over: AtomicBool,
    responses: Mutex<ResponseCounts>,
}

impl ResponseCounts {
    /// Adds the counts of other clients.
    pub(crate) fn add(&mut self, other: Self) {
        self.right += other.right;
        self.foreign += other.foreign;
        self.unanswered += other.unanswered;
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.slowest = self.slowest.max(other.slowest);
        self.examples.extend(other.examples);
        self.failures.extend(other.failures);
    }

    /// The number of requests.
    pub(crate) fn requests(&self) -> usize {
        self.right + self.foreign + self.unanswered + self.statuses.values().sum::<usize>()
    }

    /// The number of requests that got something else than a response of their application.
    pub(crate) fn failed(&self) -> usize {
        self.requests() - self.right
    }

    /// The number of responses with a status that no fault explains.
    pub(crate) fn unexpected(&self) -> usize {
        self.statuses.iter().filter(|(status, _)| !EXPECTED.contains(status)).map(|(_, count)| count).sum()
    }

    /// The responses of no application, as text.
    pub(crate) fn unserved(&self) -> String {
        let statuses = self.statuses.iter().map(|(status, count)| format!("{status}: {count}"));
        statuses.chain([format!("none: {}", self.unanswered)]).collect::<Vec<_>>().join(", ")
    }

    /// Prints the first requests that failed.
    pub(crate) fn print_failures(&self) {
        for Failure { application, sent, took, outcome } in self.failures.iter().take(EXAMPLES) {
            let ago = sent.elapsed();
            eprintln!("  {ago:.1?} ago a request to {application} failed after {took:.2?}: {outcome}");
        }
    }

    /// Counts the outcome of a request, and notes it if it is not a page of the application.
    fn note(&mut self, application: &str, outcome: &io::Result<Response>, sent: Instant) {
        let (right, took) = (self.right, sent.elapsed());
        self.count(application, outcome, took);
        if self.right == right && self.failures.len() < FAILURES {
            let outcome = match outcome {
                Ok(response) => format!("status {}, {:?}", response.status, response.body),
                Err(error) => error.to_string(),
            };
            self.failures.push(Failure { application: application.to_owned(), sent, took, outcome });
        }
    }

    fn count(&mut self, application: &str, outcome: &io::Result<Response>, time: Duration) {
        let Ok(response) = outcome else {
            self.unanswered += 1;
            return;
        };
        match response.application() {
            Some(name) if name == application && !response.is_complete() => self.unanswered += 1,
            Some(name) if name == application && response.status == 200 => {
                self.right += 1;
                self.slowest = self.slowest.max(time);
            }
            Some(name) if name != application => {
                self.foreign += 1;
                if self.examples.len() < EXAMPLES {
                    self.examples.push(format!("{name} answered for {application}"));
                }
            }
            _ => *self.statuses.entry(response.status).or_default() += 1,
        }
    }
}

impl Load {
    /// Starts the threads of each application, with `pause` between two requests of a thread.
    pub(crate) fn start(tenants: &Tenants, path: &str, pause: Duration) -> Self {
        let all: Vec<_> = (0..tenants.applications.len()).collect();
        Self::of(tenants, &all, path, pause)
    }

    /// The same, for the applications at these positions.
    pub(crate) fn of(tenants: &Tenants, positions: &[usize], path: &str, pause: Duration) -> Self {
        let hosts = tenants.hosts();
        let chosen: Vec<_> = positions.iter().map(|position| hosts[*position].clone()).collect();
        Self::sent_to(tenants.front, &chosen, path, pause)
    }

    /// The same for all applications, through another front proxy.
    pub(crate) fn at(front: SocketAddr, tenants: &Tenants, path: &str, pause: Duration) -> Self {
        Self::sent_to(front, &tenants.hosts(), path, pause)
    }

    /// The same for applications by their hosts and names.
    pub(crate) fn sent_to(
        front: SocketAddr,
        hosts: &[(String, String)],
        path: &str,
        pause: Duration,
    ) -> Self {
        let path = path.to_owned();
        let shared =
            Arc::new(Shared { front, path, is_over: AtomicBool::default(), responses: Mutex::default() });
        let each = hosts.iter().flat_map(|application| vec![application.clone(); THREADS]);
        let threads = each.map(|(host, name)| {
            let shared = Arc::clone(&shared);
            spawn(move || shared.send_requests(&host, &name, pause))
        });
        Self { threads: threads.collect(), shared }
    }

    pub(crate) fn responses(&self) -> ResponseCounts {
        lock(&self.shared.responses).clone()
    }

    /// Ends the load, and returns everything that was counted.
    pub(crate) fn end(mut self) -> ResponseCounts {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a thread that only counts");
        }
        self.responses()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn send_requests(&self, host: &str, name: &str, pause: Duration) {
        while !self.is_over.load(Ordering::Relaxed) {
            let sent = Instant::now();
            let outcome = visitor::get(self.front, host, &self.path, TIMEOUT);
            lock(&self.responses).note(name, &outcome, sent);
            sleep(pause);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_answer_of_another_application() {
        let mut responses = ResponseCounts::default();
        let page = |name| Ok(Response { status: 200, body: visitor::page(name, 1) });
        responses.count("north-1", &page("north-1"), Duration::ZERO);
        responses.count("north-1", &page("south-1"), Duration::ZERO);
        responses.count("north-1", &Ok(Response { status: 503, body: "away".to_owned() }), Duration::ZERO);
        responses.count("north-1", &Err(io::Error::other("refused")), Duration::ZERO);
        assert_eq!((responses.right, responses.foreign, responses.unanswered), (1, 1, 1));
        assert_eq!((responses.requests(), responses.failed(), responses.unexpected()), (4, 3, 0));
        assert_eq!(responses.unserved(), "503: 1, none: 1");
        responses.count(
            "north-1",
            &Ok(Response { status: 200, body: "application=north-1 ver".to_owned() }),
            Duration::ZERO,
        );
        assert_eq!((responses.right, responses.unanswered), (1, 2), "closed in the middle of a page");
        assert_eq!(responses.examples, ["south-1 answered for north-1"]);
    }

    #[test]
    fn an_internal_error_is_not_expected() {
        let mut responses = ResponseCounts::default();
        responses.count("north-1", &Ok(Response { status: 500, body: String::new() }), Duration::ZERO);
        assert_eq!(responses.unexpected(), 1);
    }
}
