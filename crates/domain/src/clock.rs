//! Time as a port, so that tests can control it.

use chrono::{DateTime, Utc};

/// A timestamp in UTC, in whole microseconds.
pub type Timestamp = DateTime<Utc>;

/// A source of the current time.
///
/// Promises: the result has no part finer than a microsecond, because PostgreSQL keeps none.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// A function that returns the time is a clock, if it keeps the promises of one.
impl<F: Fn() -> Timestamp + Send + Sync> Clock for F {
    fn now(&self) -> Timestamp {
        self()
    }
}
