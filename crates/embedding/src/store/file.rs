//! Records in a file.
//!
//! The file is a journal: one line for each transaction, with the rows that it changed as JSON and a
//! checksum. A transaction costs what it changes. When the journal is several times as long as the records,
//! it is replaced by a new one that has only the records.

mod journal;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use launchway_domain::store::StoreError;

use self::journal::Journal;
use super::{
    Change, Query, Store,
    durable::{Durable, Medium},
};
use crate::records::{Records, Row, UnreadableRow};

/// Stores records in one file, which survives the end of the process and a power failure.
///
/// One process at a time may use the file; a second one is refused.
///
/// ```
/// use launchway_embedding::{FileStore, OpenError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::TempDir::new()?;
/// let path = folder.path().join("records");
/// let store = FileStore::open(&path).await?;
/// assert!(matches!(FileStore::open(&path).await, Err(OpenError::InUse(_))));
/// drop(store);
/// FileStore::open(&path).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FileStore(Durable<Journal>);

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
        let path = absolute(path.as_ref());
        let opened = tokio::task::spawn_blocking(move || Journal::open(&path)).await;
        let (mut journal, rows) =
            opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
        let records = Records::load(rows)
            .map_err(|source| OpenError::Row { path: journal.path().to_owned(), source })?;
        journal.set_base(&records.snapshot());
        Ok(Self(Durable::new(records, journal)))
    }
}

/// Returns the path of the file itself: the current folder may change, and a link would be replaced.
fn absolute(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_no_current_folder| path.to_owned());
    absolute.canonicalize().unwrap_or(absolute)
}

impl Medium for Journal {
    fn append(&mut self, rows: &[Row]) -> Result<bool, StoreError> {
        self.append_line(rows).map_err(unavailable)
    }

    fn replace(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        self.replace_lines(rows).map_err(unavailable)
    }
}

fn unavailable(error: std::io::Error) -> StoreError {
    match error.kind() {
        std::io::ErrorKind::StorageFull => StoreError::StorageFull(error.into()),
        _ => StoreError::Unavailable(error.into()),
    }
}

#[async_trait]
impl Store for FileStore {
    async fn read(&self, query: Query<'_>) -> Result<(), StoreError> {
        self.0.read(query).await;
        Ok(())
    }

    async fn change(&self, change: Change<'_>) -> Result<(), StoreError> {
        self.0.change(change).await
    }
}

#[cfg(test)]
mod tests;
