//! Records in memory whose changes a medium keeps.

use std::sync::{Arc, MutexGuard, PoisonError};

use launchway_domain::store::StoreError;
use tokio::{sync::Mutex, task::JoinHandle};

use super::{Change, Query};
use crate::records::{Records, Row};

/// A place that keeps rows.
pub(super) trait Medium: Send + 'static {
    /// Stores rows. When it returns `Ok`, they survive a power failure; otherwise, nothing was stored. Returns
    /// true if [`replace`](Medium::replace) would save space.
    fn append(&mut self, rows: &[Row]) -> Result<bool, StoreError>;

    /// Replaces everything by these rows, at once.
    fn replace(&mut self, _rows: &[Row]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Records with the medium that keeps them.
#[derive(Debug)]
pub(super) struct Durable<M>(Mutex<State<M>>);

#[derive(Debug)]
struct State<M> {
    records: Records,
    medium: Arc<std::sync::Mutex<M>>,
    /// A write whose caller may have gone away before its end.
    pending: Option<JoinHandle<Result<bool, StoreError>>>,
    /// A compaction. Nothing is appended before it has ended.
    compaction: Option<JoinHandle<Result<(), StoreError>>>,
}

impl<M: Medium> Durable<M> {
    pub(super) fn new(records: Records, medium: M) -> Self {
        let medium = Arc::new(std::sync::Mutex::new(medium));
        Self(Mutex::new(State { records, medium, pending: None, compaction: None }))
    }

    pub(super) async fn read(&self, query: Query<'_>) {
        let mut state = self.0.lock().await;
        state.settle_abandoned().await;
        query(&state.records);
    }

    pub(super) async fn change(&self, change: Change<'_>) -> Result<(), StoreError> {
        let mut state = self.0.lock().await;
        state.settle_abandoned().await;
        let ((), rows) = state.records.begin(change)?;
        if rows.is_empty() {
            state.records.keep();
            return Ok(());
        }
        let medium = Arc::clone(&state.medium);
        state.pending = Some(tokio::task::spawn_blocking(move || locked(&medium).append(&rows)));
        state.settle().await
    }

    /// Runs `change` on the medium.
    #[cfg(test)]
    pub(super) async fn with_medium<T>(&self, change: impl FnOnce(&mut M) -> T) -> T {
        change(&mut locked(&self.0.lock().await.medium))
    }
}

impl<M: Medium> State<M> {
    /// Waits for the write of the last transaction, and keeps or undoes it.
    async fn settle(&mut self) -> Result<(), StoreError> {
        self.finish_compaction().await;
        let Some(pending) = &mut self.pending else { return Ok(()) };
        let written = pending.await;
        self.pending = None;
        let written = written.unwrap_or_else(|panic| Err(StoreError::Internal(panic.into())));
        match written {
            Ok(should_compact) => {
                self.records.keep();
                if should_compact {
                    let (medium, rows) = (Arc::clone(&self.medium), self.records.snapshot());
                    let compact = move || locked(&medium).replace(&rows);
                    self.compaction = Some(tokio::task::spawn_blocking(compact));
                }
                Ok(())
            }
            Err(error) => {
                self.records.undo();
                Err(error)
            }
        }
    }

    /// Settles a transaction whose caller is gone, so that nobody is there to get its error.
    async fn settle_abandoned(&mut self) {
        if let Err(error) = self.settle().await {
            tracing::warn!(%error, "abandoned transaction could not be stored");
        }
    }

    /// Waits for a compaction. If it failed, the medium goes on with what it has.
    async fn finish_compaction(&mut self) {
        let Some(compaction) = &mut self.compaction else { return };
        let replaced = compaction.await;
        self.compaction = None;
        match replaced {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "records could not be compacted"),
            Err(error) => tracing::error!(%error, "compaction of records panicked"),
        }
    }
}

fn locked<M>(medium: &std::sync::Mutex<M>) -> MutexGuard<'_, M> {
    medium.lock().unwrap_or_else(PoisonError::into_inner)
}
