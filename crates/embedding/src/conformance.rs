//! Tests for a store and a host of one's own. Call them from one test each:
//!
//! ```no_run
//! # use launchway_embedding::{FileStore, ProcessHost, ProcessSpec, conformance};
//! # async fn tests() {
//! let open = || async { FileStore::open("/tmp/records").await.unwrap() };
//! conformance::check_store(open, conformance::Durability::Survives).await.unwrap();
//!
//! let open = || async {
//!     let serve = |_: &_| Ok(ProcessSpec::new("busybox").arguments(["nc", "-lk", "-p", "8080"]));
//!     ProcessHost::builder("/tmp/versions", serve).open().unwrap()
//! };
//! conformance::check_host(open, "web:1".parse().unwrap()).await.unwrap();
//! # }
//! ```

mod fixtures;
mod host;
mod repositories;
mod store;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use launchway_domain::applications::ImageRef;

pub use self::repositories::{Knowing, Ports, check_repositories};
use crate::{
    caught::{caught, message},
    host::Host,
    store::Store,
};

/// The time that one test may take.
const LIMIT: Duration = Duration::from_secs(20);

/// The result of one test: a sentence about what is wrong.
type Outcome = Result<(), String>;

/// A future of a test.
type Test<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// The tests that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures(Vec<(&'static str, String)>);

impl Failures {
    /// Returns the names of the failed tests.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, reason) in &self.0 {
            writeln!(f, "{name}: {reason}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failures {}

/// The promise of a store about the end of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Records survive it: a store that is opened again has them.
    Survives,
    /// Records end with it.
    Volatile,
}

/// Tests a store. `open` returns a store over the same place each time; an earlier one was dropped.
///
/// ```
/// use std::sync::Arc;
/// use launchway_embedding::{MemoryStore, conformance::{Durability, check_store}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let store = Arc::new(MemoryStore::new());
/// check_store(|| async { Arc::clone(&store) }, Durability::Volatile).await.unwrap();
/// # }
/// ```
///
/// # Errors
/// The tests that failed.
pub async fn check_store<S, F>(
    open: impl Fn() -> F + Send + Sync,
    durability: Durability,
) -> Result<(), Failures>
where
    S: Store + 'static,
    F: Future<Output = S> + Send,
{
    let open = || -> store::Opening<'_> {
        let store = open();
        Box::pin(async move { Arc::new(store.await) as Arc<dyn Store> })
    };
    store::check(&open, durability).await
}

/// Tests a host with versions of `image`, which must start and keep running. `open` returns a host over the same
/// place each time; an earlier one was dropped.
///
/// ```
/// # use launchway_embedding::{ProcessHost, conformance::check_host};
/// # async fn test(open: impl Fn() -> ProcessHost + Send + Sync) {
/// check_host(|| async { open() }, "web:1".parse().unwrap()).await.unwrap();
/// # }
/// ```
///
/// # Errors
/// The tests that failed.
pub async fn check_host<H, F>(open: impl Fn() -> F + Send + Sync, image: ImageRef) -> Result<(), Failures>
where
    H: Host + 'static,
    F: Future<Output = H> + Send,
{
    let open = || -> host::Opening<'_> {
        let host = open();
        Box::pin(async move { Arc::new(host.await) as Arc<dyn Host> })
    };
    host::check(&open, &image).await
}

/// Runs tests one after the other.
async fn run(tests: Vec<(&'static str, Test<'_>)>) -> Result<(), Failures> {
    let mut failures = Vec::new();
    for (name, test) in tests {
        let failure = match tokio::time::timeout(LIMIT, caught(test)).await {
            Ok(Ok(Ok(()))) => continue,
            Ok(Ok(Err(reason))) => reason,
            Ok(Err(panic)) => format!("it panicked: {}", message(&*panic)),
            Err(_elapsed) => format!("it took longer than {} s", LIMIT.as_secs()),
        };
        failures.push((name, failure));
    }
    if failures.is_empty() { Ok(()) } else { Err(Failures(failures)) }
}

/// Returns an error unless `holds`.
fn require(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

/// Returns an error unless both are equal.
fn equal<T: PartialEq + fmt::Debug>(found: T, expected: T, what: &str) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("{what}: expected {expected:?}, found {found:?}")) }
}

/// Returns the error as a sentence.
fn said(error: impl fmt::Display) -> String {
    error.to_string()
}
