//! Records in a file.
//!
//! The file is a journal: one line for each transaction, with the rows that it changed as JSON and a
//! checksum. A transaction costs what it changes. When the journal is several times as long as the records,
//! it is replaced by a new one that has only the records.

mod journal;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use launchway_domain::store::StoreError;
use tokio::{sync::Mutex, task::JoinHandle};

use self::journal::{Journal, Written};
use super::{Change, Query, Store};
use crate::records::{Records, UnreadableRow};

/// Stores records in one file, which survives the end of the process and a power failure.
///
/// One process at a time may use the file; a second one is refused.
#[derive(Debug)]
pub struct FileStore {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    records: Records,
    journal: Arc<std::sync::Mutex<Journal>>,
    /// A write whose caller may have gone away before its end.
    pending: Option<JoinHandle<std::io::Result<Written>>>,
}

/// The reason why a file of records cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Another process, or another store of this one, uses the file.
    #[error("{0} is used by another process")]
    InUse(PathBuf),
    /// A line in the middle of the file is damaged.
    #[error("{path}, line {line}: it is damaged, so later changes cannot be trusted")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
    /// A record is not valid, or is of a later version.
    #[error("{path}: {source}")]
    Row {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: UnreadableRow,
    },
}

impl FileStore {
    /// Opens the file, and creates it if it does not exist. A last line that was not written to its end is
    /// dropped: its transaction was never confirmed.
    ///
    /// # Errors
    /// [`OpenError`]; then the file was not changed.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        let opened = tokio::task::spawn_blocking(move || Journal::open(&path)).await;
        let (journal, rows) = opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
        let records = Records::load(rows)
            .map_err(|source| OpenError::Row { path: journal.path().to_owned(), source })?;
        let journal = Arc::new(std::sync::Mutex::new(journal));
        Ok(Self { state: Mutex::new(State { records, journal, pending: None }) })
    }
}

impl State {
    /// Waits for the write of the last transaction, and keeps or undoes it.
    async fn settle(&mut self) -> Result<(), StoreError> {
        let Some(pending) = &mut self.pending else { return Ok(()) };
        let written = pending.await;
        self.pending = None;
        match written {
            Ok(Ok(written)) => {
                self.records.keep();
                if written.is_long {
                    self.compact().await;
                }
                Ok(())
            }
            Ok(Err(error)) => {
                self.records.undo();
                Err(match error.kind() {
                    std::io::ErrorKind::StorageFull => StoreError::StorageFull(error.into()),
                    _ => StoreError::Unavailable(error.into()),
                })
            }
            Err(panic) => {
                self.records.undo();
                Err(StoreError::Internal(panic.into()))
            }
        }
    }

    /// Replaces the journal by one that has only the records. If that fails, the longer one stays in use.
    async fn compact(&self) {
        let (journal, rows) = (Arc::clone(&self.journal), self.records.snapshot());
        let replaced = tokio::task::spawn_blocking(move || locked(&journal).replace(&rows)).await;
        match replaced {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "file of records could not be compacted"),
            Err(error) => tracing::error!(%error, "compaction of the file of records panicked"),
        }
    }
}

fn locked(journal: &std::sync::Mutex<Journal>) -> std::sync::MutexGuard<'_, Journal> {
    journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[async_trait]
impl Store for FileStore {
    async fn read(&self, query: Query<'_>) -> Result<(), StoreError> {
        let mut state = self.state.lock().await;
        // Its error belongs to the transaction before, whose caller is gone.
        state.settle().await.ok();
        query(&state.records);
        Ok(())
    }

    async fn change(&self, change: Change<'_>) -> Result<(), StoreError> {
        let mut state = self.state.lock().await;
        state.settle().await.ok();
        let ((), rows) = state.records.begin(change)?;
        if rows.is_empty() {
            state.records.keep();
            return Ok(());
        }
        let journal = Arc::clone(&state.journal);
        state.pending = Some(tokio::task::spawn_blocking(move || locked(&journal).append(&rows)));
        state.settle().await
    }
}

#[cfg(test)]
mod tests;
