//! Shared test support: builders, a fixed clock, counting ids, a real PostgreSQL, the Docker engine
//! of this machine, a Docker Swarm, stored compositions, receivers of notifications, repositories, an authenticator, a
//! browser, checks of accessibility, and the running binary.
//!
//! Values are neither random nor shared between tests: the same arrangement yields the same ones.
//! Only `[dev-dependencies]` and the fault campaigns may depend on this crate.
//!
//! **Invariant:** no test is skipped. A property of a database is tested on that database, never on a
//! substitute.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be arranged must stop")]
#![warn(missing_docs)]

pub mod accessibility;
pub mod authenticator;
pub mod browser;
pub mod builders;
pub mod client;
pub mod compositions;
pub mod docker;
pub mod external;
pub mod hostile;
pub mod migrations;
pub mod people;
pub mod ports;
pub mod postgres;
pub mod registry;
pub mod repository;
pub mod secrets;
pub mod server;
mod services;
pub mod swarm;
pub mod wait;

/// The folder of locks that all runs of tests on this machine share, whatever their temporary folder is.
pub(crate) const SHARED: &str = "/tmp";

pub use launchway_domain::fixtures::{CountingEntropy, CountingIds, FixedClock, clock, entropy, ids};
