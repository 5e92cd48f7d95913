//! Records in memory.

use async_trait::async_trait;
use launchway_domain::store::StoreError;
use tokio::sync::RwLock;

use super::{Change, Query, Store};
use crate::records::Records;

/// Stores records in memory: they are lost when the process ends.
///
/// ```
/// use launchway_embedding::{MemoryStore, Records, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), launchway_embedding::StoreError> {
/// let store = MemoryStore::new();
/// let query = |records: &Records| assert_eq!(records.applications().count(), 0);
/// store.read(Box::new(query)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct MemoryStore(RwLock<Records>);

impl MemoryStore {
    /// Returns a store without records.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn read(&self, query: Query<'_>) -> Result<(), StoreError> {
        query(&*self.0.read().await);
        Ok(())
    }

    async fn change(&self, change: Change<'_>) -> Result<(), StoreError> {
        self.0.write().await.transaction(change, |_rows| Ok(()))
    }
}
