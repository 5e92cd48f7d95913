//! The state of a full disk.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::store::{StoreError, StoreHealth};
use launchway_system::files;

use super::{
    Database, DatabaseUrl, error::QueryError, schema::installation_identity, statement::StatementCache as _,
};

/// A disk with less free space than this is full.
pub(super) const FULL_BELOW: u64 = 256 * 1024;

/// Records that a write failed because the disk was full.
#[derive(Debug)]
pub(super) struct StorageState {
    is_full: AtomicBool,
    /// The SQLite file. The disk of PostgreSQL is not visible from here.
    file: Option<PathBuf>,
}

impl StorageState {
    pub(super) fn of(url: &DatabaseUrl) -> Self {
        let file = match url {
            DatabaseUrl::Sqlite(path) => Some(path.clone()),
            DatabaseUrl::Postgres(_) => None,
        };
        Self { is_full: AtomicBool::new(false), file }
    }

    /// Fails if the disk of the SQLite file is full. A small change might still succeed in space that a
    /// larger, failed one has allocated.
    fn check_free_space(&self) -> Result<(), StoreError> {
        match self.file.as_deref().map(files::free_bytes) {
            Some(Ok(free)) if free < FULL_BELOW => {
                Err(StoreError::StorageFull(format!("only {free} bytes are free").into()))
            }
            _ => Ok(()),
        }
    }

    /// Records a write that failed on a full disk. A write that succeeds changes nothing here: it may have
    /// had nothing to write.
    pub(super) fn observe(
        &self,
        outcome: Result<Result<(), QueryError>, StoreError>,
    ) -> Result<Result<(), QueryError>, StoreError> {
        let is_full = match &outcome {
            Err(error) => matches!(error, StoreError::StorageFull(_)),
            Ok(Err(error)) => error.is_storage_full(),
            Ok(Ok(())) => false,
        };
        if is_full && !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::error!("database disk is full");
        }
        outcome
    }
}

#[async_trait]
impl StoreHealth for Database {
    async fn check_writes(&self) -> Result<(), StoreError> {
        if !self.shared.storage.is_full.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.shared.storage.check_free_space()?;
        // A change that has to be written, though it changes no value.
        self.write(|connection| {
            let same = installation_identity::created_at.eq(installation_identity::created_at);
            diesel::update(installation_identity::table).set(same).cached().execute(connection)?;
            Ok(())
        })
        .await?;
        if self.shared.storage.is_full.swap(false, Ordering::Relaxed) {
            tracing::info!("database disk has space again");
        }
        Ok(())
    }
}
