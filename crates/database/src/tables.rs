//! A whole database as tables and lines, in a format that both databases share.
//!
//! A row is one line: a JSON array of its columns, sorted by name. Numbers are integers, and so are
//! timestamps (microseconds since 1970) and booleans (0 and 1); ids and bytes are hexadecimal digits.
//! Within a table lines are in the order of the primary key. So the same rows are the same bytes, whichever
//! database they are in, and lines from one can be loaded into the other.
//!
//! **Invariant:** the tables and columns are read from the database's own catalogue, so that additions of a
//! migration are never left out. A column of an unknown type is an error. Only derived tables are left out: the
//! archives of sites and the index of texts.
//!
//! This is for commands that do one thing and exit. Each opens a connection of its own, not through
//! [`Database`](super::Database), and keeps one transaction open on it.

mod catalogue;
mod copy;
mod sealed;
mod statements;

use std::{fs::OpenOptions, os::unix::fs::OpenOptionsExt as _};

use diesel::{
    QueryableByName,
    connection::{
        AnsiTransactionManager, DefaultLoadingMode, SimpleConnection as _, TransactionManager as _,
    },
    pg::{PgConnection, PgRowByRowLoadingMode},
    prelude::*,
    sql_query,
    sql_types::Text,
};
use launchway_domain::ids::{ApplicationId, InstanceId};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub use self::{
    catalogue::Table,
    copy::copy,
    sealed::{SEALED, SealedColumn},
};
use super::{
    DatabaseUrl,
    columns::DbId,
    connection::{AnyConnection, begin, sqlite_reader, sqlite_writer},
    error::QueryError,
    installation_id, migrations,
    options::{self, Synchronous},
    schema::{applications, deployments, key_check},
};

/// The approximate size in bytes of the lines that one statement inserts.
const BATCH_BYTES: usize = 1024 * 1024;

/// An error of reading or writing tables.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    /// The operation was rejected. The message is meant for the user.
    #[error("{0}")]
    Refused(String),
    /// The database cannot be reached.
    #[error("cannot open the database")]
    Open(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database rejected a statement about a table.
    #[error("cannot copy the table `{table}`")]
    Table {
        /// The name of the table.
        table: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another query failed.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The consumer of the lines failed.
    #[error(transparent)]
    Taker(Box<dyn std::error::Error + Send + Sync>),
}

impl From<diesel::result::Error> for TablesError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Query(error.into())
    }
}

/// The number and the hash of a table's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDigest {
    /// The number of rows.
    pub rows: u64,
    /// The SHA-256 of all lines, each with its terminator, in hexadecimal digits.
    pub sha256: String,
}

/// Computes a [`TableDigest`] from lines.
#[derive(Debug, Default)]
pub struct Digester {
    rows: u64,
    hash: Sha256,
}

impl Digester {
    /// Adds a line, without its terminator.
    pub fn add(&mut self, line: &str) {
        self.rows += 1;
        self.hash.update(line.as_bytes());
        self.hash.update(b"\n");
    }

    /// Returns the digest.
    #[must_use]
    pub fn finish(self) -> TableDigest {
        TableDigest { rows: self.rows, sha256: data_encoding::HEXLOWER.encode(&self.hash.finalize()) }
    }
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// One connection to one database, and a transaction on it.
pub struct Tables {
    connection: AnyConnection,
}

impl Tables {
    /// Opens an existing database in a snapshot of its current state, whatever others write meanwhile.
    ///
    /// # Errors
    /// [`TablesError::Refused`] when there is none, [`TablesError::Open`] when it cannot be reached.
    pub fn snapshot(url: &DatabaseUrl) -> Result<Self, TablesError> {
        let mut connection = match url {
            DatabaseUrl::Sqlite(path) => {
                if !path.exists() {
                    let path = path.display();
                    return Err(TablesError::Refused(format!("there is no database at `{path}`")));
                }
                let file = super::sqlite_file(path, true).map_err(TablesError::Open)?;
                AnyConnection::Sqlite(sqlite_reader(&file).map_err(opening)?)
            }
            DatabaseUrl::Postgres(url) => AnyConnection::Postgres(connect(url)?),
        };
        match &mut connection {
            AnyConnection::Sqlite(sqlite) => AnsiTransactionManager::begin_transaction_sql(sqlite, "BEGIN")?,
            AnyConnection::Postgres(postgres) => AnsiTransactionManager::begin_transaction_sql(
                postgres,
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            )?,
        }
        if !catalogue::has_tables(&mut connection)? {
            return Err(TablesError::Refused(
                "the database has no tables: nothing ever ran on it".to_owned(),
            ));
        }
        Ok(Self { connection })
    }

    /// Opens a database for writing. Nothing is committed without [`keep`](Self::keep).
    ///
    /// # Errors
    /// As of [`snapshot`](Self::snapshot).
    pub fn to_change(url: &DatabaseUrl) -> Result<Self, TablesError> {
        let mut connection = match url {
            DatabaseUrl::Sqlite(path) => {
                let file = super::sqlite_file(path, true).map_err(TablesError::Open)?;
                AnyConnection::Sqlite(sqlite_writer(&file, Synchronous::Full).map_err(opening)?)
            }
            DatabaseUrl::Postgres(url) => AnyConnection::Postgres(connect(url)?),
        };
        begin(&mut connection)?;
        Ok(Self { connection })
    }

    /// Creates the tables of the version `schema` in an empty database, to fill them. Nothing is committed
    /// without [`keep`](Self::keep), but a SQLite file is created.
    ///
    /// # Errors
    /// [`TablesError::Refused`] when the database is not empty, or when this binary does not know the
    /// version; [`TablesError::Open`] when the database cannot be reached.
    pub fn fresh(url: &DatabaseUrl, schema: &str) -> Result<Self, TablesError> {
        if !migrations::known().iter().any(|version| version == schema) {
            return Err(TablesError::Refused(format!(
                "the tables are of version {schema}, which this version of Launchway does not know: use a newer one"
            )));
        }
        let mut connection = match url {
            DatabaseUrl::Sqlite(path) => {
                let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
                if let Err(error) = made {
                    return Err(TablesError::Refused(format!(
                        "cannot make the database `{}`: {error}",
                        path.display()
                    )));
                }
                let file = super::sqlite_file(path, true).map_err(TablesError::Open)?;
                AnyConnection::Sqlite(sqlite_writer(&file, Synchronous::Full).map_err(opening)?)
            }
            DatabaseUrl::Postgres(url) => AnyConnection::Postgres(connect(url)?),
        };
        begin(&mut connection)?;
        if catalogue::has_tables(&mut connection)? {
            return Err(TablesError::Refused(
                "the database is not empty: make a new one, and name that".to_owned(),
            ));
        }
        migrations::run_until(&mut connection, schema)?;
        let mut tables = Self { connection };
        tables.prepare_to_fill()?;
        Ok(tables)
    }

    /// Returns the version of the schema: that of the newest migration.
    ///
    /// # Errors
    /// [`TablesError::Query`] when the database fails.
    pub fn schema(&mut self) -> Result<String, TablesError> {
        let newest = migrations::applied(&mut self.connection)?.pop();
        newest.ok_or_else(|| TablesError::Refused("the database has no tables of Launchway".to_owned()))
    }

    /// Returns every table but derived ones, referenced ones first.
    ///
    /// # Errors
    /// [`TablesError::Refused`] when a table cannot be copied.
    pub fn list(&mut self) -> Result<Vec<Table>, TablesError> {
        catalogue::read(&mut self.connection)
    }

    /// Calls `take` with each line of a table, and returns their digest.
    ///
    /// # Errors
    /// [`TablesError::Table`] when the database fails, and the errors of `take`.
    pub fn read(
        &mut self,
        table: &Table,
        mut take: impl FnMut(&str) -> Result<(), TablesError>,
    ) -> Result<TableDigest, TablesError> {
        let mut digester = Digester::default();
        let mut handle = |row: Result<Line, diesel::result::Error>| {
            let line = canonical(&row.map_err(about(table))?.line).map_err(about(table))?;
            digester.add(&line);
            take(&line)
        };
        match &mut self.connection {
            AnyConnection::Sqlite(sqlite) => sql_query(statements::select_from_sqlite(table))
                .load_iter::<Line, DefaultLoadingMode>(sqlite)
                .map_err(about(table))?
                .try_for_each(&mut handle)?,
            AnyConnection::Postgres(postgres) => sql_query(statements::select_from_postgres(table))
                .load_iter::<Line, PgRowByRowLoadingMode>(postgres)
                .map_err(about(table))?
                .try_for_each(&mut handle)?,
        }
        Ok(digester.finish())
    }

    /// Commits the transaction, and closes the connection.
    ///
    /// # Errors
    /// [`TablesError::Query`] when the database fails; then nothing is committed.
    pub fn keep(mut self) -> Result<(), TablesError> {
        AnyConnection::commit_transaction(&mut self.connection)?;
        Ok(())
    }

    /// Returns the sealed text for checking the secret key; `None` when there is none yet.
    ///
    /// # Errors
    /// [`TablesError::Query`] when the database fails.
    pub fn key_check(&mut self) -> Result<Option<String>, TablesError> {
        Ok(key_check::table.select(key_check::sealed).first(&mut self.connection).optional()?)
    }

    /// Returns the id of the installation that the database belongs to. `None` if it has none, or if its
    /// version does not store one.
    ///
    /// # Errors
    /// [`TablesError::Query`] when the database fails.
    pub fn installation_id(&mut self) -> Result<Option<InstanceId>, TablesError> {
        if !self.list()?.iter().any(|table| table.name == "installation_identity") {
            return Ok(None);
        }
        Ok(installation_id::stored(&mut self.connection)?)
    }

    /// Returns the ids and names of applications whose live version is a container that should run.
    ///
    /// # Errors
    /// [`TablesError::Query`] when the database fails.
    pub fn live_in_containers(&mut self) -> Result<Vec<(ApplicationId, String)>, TablesError> {
        let live = deployments::id.nullable().eq(applications::live_deployment_id);
        let found: Vec<(DbId, String)> = applications::table
            .inner_join(deployments::table.on(live))
            .filter(applications::deleted_at.is_null())
            .filter(applications::is_stopped.eq(false))
            .filter(deployments::container_id.is_not_null())
            .select((applications::id, applications::name))
            .order(applications::name)
            .load(&mut self.connection)?;
        Ok(found.into_iter().map(|(id, name)| (id.into(), name)).collect())
    }

    /// Deletes the rows that migrations inserted, and sets when constraints and triggers are checked.
    fn prepare_to_fill(&mut self) -> Result<(), TablesError> {
        match &mut self.connection {
            AnyConnection::Sqlite(sqlite) => sqlite.batch_execute("PRAGMA defer_foreign_keys = ON")?,
            // Otherwise the identity epoch would move once more when everything is kept.
            AnyConnection::Postgres(postgres) => postgres.batch_execute("SET CONSTRAINTS ALL IMMEDIATE")?,
        }
        // Referencing tables first. Empty tables are skipped: the audit log rejects even an empty `DELETE`.
        for table in self.list()?.iter().rev() {
            if self.read(table, |_| Ok(()))?.rows > 0 {
                let statement = format!("DELETE FROM {}", statements::quoted(&table.name));
                self.connection.batch_execute(&statement).map_err(about(table))?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, table: &Table, lines: &str) -> Result<(), TablesError> {
        let inserted = match &mut self.connection {
            AnyConnection::Sqlite(sqlite) => {
                sql_query(statements::insert_into_sqlite(table)).bind::<Text, _>(lines).execute(sqlite)
            }
            AnyConnection::Postgres(postgres) => {
                sql_query(statements::insert_into_postgres(table)).bind::<Text, _>(lines).execute(postgres)
            }
        };
        inserted.map(drop).map_err(about(table))
    }
}

/// Collects lines of a table, and inserts them in batches.
#[derive(Debug)]
pub struct Filler {
    table: Table,
    most: usize,
    /// A JSON array that is not closed yet.
    lines: String,
}

impl Filler {
    /// Returns a filler of `table`.
    #[must_use]
    pub fn of(table: Table) -> Self {
        // Of rows that refer to others of their table, either may come first.
        let most = if table.refers_to_itself { usize::MAX } else { BATCH_BYTES };
        Self { table, most, lines: String::new() }
    }

    /// Returns the table that it fills.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Adds a line.
    ///
    /// # Errors
    /// [`TablesError::Table`] when the database fails.
    pub fn add(&mut self, tables: &mut Tables, line: &str) -> Result<(), TablesError> {
        self.lines.push(if self.lines.is_empty() { '[' } else { ',' });
        self.lines.push_str(line);
        if self.lines.len() >= self.most { self.flush(tables) } else { Ok(()) }
    }

    /// Inserts the remaining lines.
    ///
    /// # Errors
    /// [`TablesError::Table`] when the database fails.
    pub fn finish(mut self, tables: &mut Tables) -> Result<(), TablesError> {
        self.flush(tables)
    }

    fn flush(&mut self, tables: &mut Tables) -> Result<(), TablesError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        self.lines.push(']');
        let lines = std::mem::take(&mut self.lines);
        tables.insert(&self.table, &lines)
    }
}

/// Returns a line in the format of both databases: each writes JSON in its own way.
///
/// # Errors
/// [`serde_json::Error`] for anything but an array.
fn canonical(line: &str) -> Result<String, serde_json::Error> {
    let values: Vec<Value> = serde_json::from_str(line)?;
    serde_json::to_string(&values)
}

fn connect(url: &str) -> Result<PgConnection, TablesError> {
    let url = options::with_connect_timeout(url);
    PgConnection::establish(&url).map_err(|error| TablesError::Open(error.into()))
}

fn opening(error: diesel::r2d2::Error) -> TablesError {
    TablesError::Open(error.into())
}

fn about<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    table: &Table,
) -> impl Fn(E) -> TablesError + use<E> {
    let name = table.name.clone();
    move |error| TablesError::Table { table: name.clone(), source: error.into() }
}
