//! Time as a port, so that tests can set it.

use chrono::{DateTime, Utc};

/// A moment in UTC, in whole microseconds.
pub type Timestamp = DateTime<Utc>;

/// Tells the time.
///
/// Promises: the answer has no part finer than a microsecond, because PostgreSQL keeps none.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// A function that tells the time is a clock, if it keeps the promises of one.
impl<F: Fn() -> Timestamp + Send + Sync> Clock for F {
    fn now(&self) -> Timestamp {
        self()
    }
}
