//! Work on a connection, without the type of its result.
//!
//! What passes work on to another thread is compiled once, instead of once for each query.

use std::sync::{Arc, Mutex, PoisonError};

use launchway_domain::store::StoreError;

use super::{connection::AnyConnection, error::QueryError};

/// Reads from a connection, perhaps twice.
pub(super) type Read = Box<dyn Fn(&mut AnyConnection) -> Result<(), QueryError> + Send>;
/// Writes to a connection.
pub(super) type Write = Box<dyn FnOnce(&mut AnyConnection) -> Result<(), QueryError> + Send>;

/// The result of work, once it is done.
pub(super) struct Value<T>(Arc<Mutex<Option<T>>>);

impl<T: Send + 'static> Value<T> {
    /// Returns the same reads, and their future result.
    pub(super) fn of_read<F>(query: F) -> (Read, Self)
    where
        F: Fn(&mut AnyConnection) -> Result<T, QueryError> + Send + 'static,
    {
        let slot = Arc::new(Mutex::new(None));
        let value = Self(Arc::clone(&slot));
        (Box::new(move |connection| query(connection).map(|result| fill(&slot, result))), value)
    }

    /// Returns the same writes, and their future result.
    pub(super) fn of_write<F>(work: F) -> (Write, Self)
    where
        F: FnOnce(&mut AnyConnection) -> Result<T, QueryError> + Send + 'static,
    {
        let slot = Arc::new(Mutex::new(None));
        let value = Self(Arc::clone(&slot));
        (Box::new(move |connection| work(connection).map(|result| fill(&slot, result))), value)
    }

    /// Returns the result of work that has succeeded.
    pub(super) fn take(self) -> Result<T, StoreError> {
        let result = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.ok_or_else(|| StoreError::Internal("work on the database has no result".into()))
    }
}

fn fill<T>(slot: &Mutex<Option<T>>, result: T) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
}
