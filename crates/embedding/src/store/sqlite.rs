//! Records in a SQLite file.

use std::path::Path;

use async_trait::async_trait;
use diesel::{
    Connection as _, QueryableByName, RunQueryDsl as _, SqliteConnection,
    connection::SimpleConnection as _,
    result::{DatabaseErrorKind, Error as DieselError},
    sql_query,
    sql_types::Text,
};
use launchway_domain::store::StoreError;

use super::{
    Change, OpenError, Query, Store,
    durable::{Durable, Medium},
};
use crate::records::{Records, Row};

/// Stores records in a SQLite file, as one table of keys and values. Other tables of the file are not touched.
///
/// One process at a time may use the file; a second one is refused.
///
/// ```
/// use launchway_embedding::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::TempDir::new()?;
/// let store = SqliteStore::open(folder.path().join("service.db")).await?;
/// # Ok(())
/// # }
/// ```
pub struct SqliteStore(Durable<Table>);

/// The table of records.
struct Table(SqliteConnection);

#[derive(QueryableByName)]
struct StoredRow {
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = Text)]
    value: String,
}

const PREPARE: &str = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS launchway_records (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
COMMIT;";

impl SqliteStore {
    /// Opens the file, and creates it and its table if they do not exist.
    ///
    /// # Errors
    /// [`OpenError`]; then no record was changed.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        let opened = tokio::task::spawn_blocking(move || open(&path)).await;
        let (table, records) =
            opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
        Ok(Self(Durable::new(records, table)))
    }
}

fn open(path: &Path) -> Result<(Table, Records), OpenError> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| OpenError::File {
        path: path.to_owned(),
        source: std::io::Error::other(error),
    };
    let connection = SqliteConnection::establish(&path.display().to_string());
    let mut connection = connection.map_err(|error| failed(error.into()))?;
    connection.batch_execute(PREPARE).map_err(|error| match error {
        DieselError::DatabaseError(DatabaseErrorKind::Unknown, ref about)
            if about.message().contains("locked") =>
        {
            OpenError::InUse(path.to_owned())
        }
        error => failed(error.into()),
    })?;
    let rows = sql_query("SELECT key, value FROM launchway_records").load::<StoredRow>(&mut connection);
    let rows = rows.map_err(|error| failed(error.into()))?.into_iter();
    let records = Records::load(rows.map(|row| Row { key: row.key, value: Some(row.value) }));
    let records = records.map_err(|source| OpenError::Row { path: path.to_owned(), source })?;
    Ok((Table(connection), records))
}

impl Medium for Table {
    fn append(&mut self, rows: &[Row]) -> Result<bool, StoreError> {
        let stored = self.0.immediate_transaction(|connection| {
            for Row { key, value } in rows {
                let statement = match value {
                    Some(_) => {
                        "INSERT INTO launchway_records (key, value) VALUES (?, ?) \
                                ON CONFLICT (key) DO UPDATE SET value = excluded.value"
                    }
                    None => "DELETE FROM launchway_records WHERE key = ?",
                };
                let statement = sql_query(statement).bind::<Text, _>(key);
                match value {
                    Some(value) => statement.bind::<Text, _>(value).execute(connection)?,
                    None => statement.execute(connection)?,
                };
            }
            Ok::<_, DieselError>(false)
        });
        stored.map_err(|error| match &error {
            DieselError::DatabaseError(_, about) if about.message().contains("full") => {
                StoreError::StorageFull(error.into())
            }
            _ => StoreError::Unavailable(error.into()),
        })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn read(&self, query: Query<'_>) -> Result<(), StoreError> {
        self.0.read(query).await;
        Ok(())
    }

    async fn change(&self, change: Change<'_>) -> Result<(), StoreError> {
        self.0.change(change).await
    }
}
