//! The port to the place where records are durable.

mod durable;
mod file;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::sync::Arc;

use async_trait::async_trait;
use launchway_domain::store::StoreError;

#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteStore;
pub use self::{
    file::{FileStore, OpenError},
    memory::MemoryStore,
};
use crate::records::Records;

/// A query of the records.
pub type Query<'a> = Box<dyn FnOnce(&Records) + Send + 'a>;

/// A transaction on the records.
pub type Change<'a> = Box<dyn FnOnce(&mut Records) -> Result<(), StoreError> + Send + 'a>;

/// Stores records.
///
/// Implementations guarantee that transactions are serial, and that queries and transactions see the changes
/// of every earlier transaction. When [`change`](Store::change) returns `Ok`, the changed rows survive what the service has to
/// survive; when it returns an error, nothing was changed. [`Records::transaction`] does the part in memory.
///
/// The feature `conformance` has tests of these guarantees.
///
/// ```
/// use async_trait::async_trait;
/// use launchway_embedding::{Change, Query, Records, Row, Store, StoreError};
/// use tokio::sync::Mutex;
///
/// /// Appends every changed row to a list.
/// #[derive(Default)]
/// struct Journal(Mutex<(Records, Vec<Row>)>);
///
/// #[async_trait]
/// impl Store for Journal {
///     async fn read(&self, query: Query<'_>) -> Result<(), StoreError> {
///         query(&self.0.lock().await.0);
///         Ok(())
///     }
///
///     async fn change(&self, change: Change<'_>) -> Result<(), StoreError> {
///         let (records, rows) = &mut *self.0.lock().await;
///         let store = |changed: &[Row]| Ok(rows.extend_from_slice(changed));
///         records.transaction(change, store)
///     }
/// }
/// ```
#[doc(alias = "RecordKeeper")]
#[async_trait]
pub trait Store: Send + Sync {
    /// Runs a query.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`] when the records cannot be read.
    async fn read(&self, query: Query<'_>) -> Result<(), StoreError>;

    /// Runs a transaction, and stores the rows that it changed. One that changed none need not be stored:
    /// the worker looks for work every second.
    ///
    /// # Errors
    /// The error of the transaction; [`StoreError::Unavailable`] or [`StoreError::Internal`] when it cannot
    /// run, or its rows cannot be stored.
    async fn change(&self, change: Change<'_>) -> Result<(), StoreError>;
}

macro_rules! forward {
    ($($pointer:ty),+) => {
        $(#[async_trait]
        impl<S: Store + ?Sized> Store for $pointer {
            async fn read(&self, query: Query<'_>) -> Result<(), StoreError> {
                (**self).read(query).await
            }

            async fn change(&self, change: Change<'_>) -> Result<(), StoreError> {
                (**self).change(change).await
            }
        })+
    };
}
forward!(Arc<S>, Box<S>);
