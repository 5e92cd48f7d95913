//! The connections to both databases, and their pool.

mod any;

use std::thread;

use diesel::{
    Connection as _,
    connection::{AnsiTransactionManager, SimpleConnection as _, TransactionManager as _},
    pg::PgConnection,
    r2d2::{self, ManageConnection, PooledConnection, R2D2Connection as _},
    sqlite::SqliteConnection,
};

pub use self::any::AnyConnection;
pub(super) use self::any::MultiBackend;
use super::{dialect::remembering_locks, error::QueryError, options::Synchronous, work};

/// PostgreSQL ends the session of a machine that has vanished within about ten seconds, instead of two hours.
pub(super) const KEEPALIVES: &str = "SET tcp_keepalives_idle = 4; SET tcp_keepalives_interval = 2;
     SET tcp_keepalives_count = 3; SET tcp_user_timeout = 10000;";
/// PostgreSQL rolls back the transaction of a process that has stopped in the middle of it. Until then other servers wait
/// for its locks.
const SHORT_TRANSACTIONS: &str = "SET idle_in_transaction_session_timeout = '30s';";

/// The pool of connections to one database.
pub(super) type Pool = r2d2::Pool<Manager>;

/// A connection in the pool.
pub(super) struct Link {
    pub(super) connection: AnyConnection,
    /// True if the other end has closed the connection, which Diesel does not detect outside a transaction.
    lost: bool,
}

impl Link {
    fn run<T>(
        &mut self,
        query: impl FnOnce(&mut AnyConnection) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let outcome = query(&mut self.connection);
        self.lost |= outcome.as_ref().is_err_and(QueryError::is_connection_lost);
        outcome
    }
}

/// Opens the connections of the pool.
#[derive(Debug)]
pub(super) enum Manager {
    /// Readers of a SQLite file.
    SqliteReaders(String),
    /// Connections to a PostgreSQL server.
    Postgres(String),
}

impl ManageConnection for Manager {
    type Connection = Link;
    type Error = r2d2::Error;

    fn connect(&self) -> Result<Link, r2d2::Error> {
        let connection = match self {
            Self::SqliteReaders(path) => AnyConnection::Sqlite(sqlite_reader(path)?),
            Self::Postgres(url) => {
                let mut connection = PgConnection::establish(url)?;
                connection.batch_execute(&format!("{KEEPALIVES} {SHORT_TRANSACTIONS}"))?;
                AnyConnection::Postgres(connection)
            }
        };
        Ok(Link { connection, lost: false })
    }

    fn is_valid(&self, link: &mut Link) -> Result<(), r2d2::Error> {
        Ok(link.connection.ping()?)
    }

    fn has_broken(&self, link: &mut Link) -> bool {
        link.lost || thread::panicking() || link.connection.is_broken()
    }
}

/// Opens the only connection that writes to a SQLite file.
pub(super) fn sqlite_writer(path: &str, synchronous: Synchronous) -> Result<SqliteConnection, r2d2::Error> {
    let mut connection = SqliteConnection::establish(path)?;
    // Changing the journal mode needs a lock, so the busy timeout is set first.
    connection.batch_execute(&format!(
        "PRAGMA busy_timeout = 5000;
         PRAGMA journal_mode = WAL;
         PRAGMA synchronous = {};
         PRAGMA foreign_keys = ON;
         PRAGMA journal_size_limit = 4194304;",
        synchronous.as_sql()
    ))?;
    Ok(connection)
}

pub(super) fn sqlite_reader(path: &str) -> Result<SqliteConnection, r2d2::Error> {
    let mut connection = SqliteConnection::establish(path)?;
    connection.batch_execute(
        "PRAGMA busy_timeout = 1000;
         PRAGMA journal_mode = WAL;
         PRAGMA foreign_keys = ON;
         PRAGMA query_only = ON;",
    )?;
    Ok(connection)
}

/// Runs a query, and once more on a living connection if this one turns out to be dead.
pub(super) fn read(pool: &Pool, query: &work::Read) -> Result<(), QueryError> {
    let outcome = pool.get()?.run(query);
    match outcome {
        Err(error) if error.is_connection_lost() => living(pool)?.run(query),
        outcome => outcome,
    }
}

/// Runs a query at once on this thread; `None` when no connection is free.
pub(super) fn read_at_once<T>(
    pool: &Pool,
    query: impl Fn(&mut AnyConnection) -> Result<T, QueryError>,
) -> Option<Result<T, QueryError>> {
    Some(pool.try_get()?.run(query))
}

/// Runs `work` in a PostgreSQL transaction, which is rolled back when it fails.
pub(super) fn transact(pool: &Pool, work: work::Write) -> Result<(), QueryError> {
    let mut link = pool.get()?;
    match link.run(begin) {
        // Nothing was done yet, so that a dead connection can still be replaced.
        Err(error) if error.is_connection_lost() => {
            drop(link);
            link = living(pool)?;
            link.run(begin)?;
        }
        outcome => outcome?,
    }
    match remembering_locks(|| link.run(work)) {
        Ok(()) => link.run(|connection| Ok(AnyConnection::commit_transaction(connection)?)),
        Err(error) => {
            // A connection that cannot even do this is broken, and leaves the pool.
            drop(AnyConnection::rollback_transaction(&mut link.connection));
            Err(error)
        }
    }
}

/// Begins a transaction that may write.
pub(super) fn begin(connection: &mut AnyConnection) -> Result<(), QueryError> {
    match connection {
        AnyConnection::Sqlite(sqlite) => {
            AnsiTransactionManager::begin_transaction_sql(sqlite, "BEGIN IMMEDIATE")?;
        }
        AnyConnection::Postgres(postgres) => {
            AnsiTransactionManager::begin_transaction_sql(postgres, "BEGIN ISOLATION LEVEL READ COMMITTED")?;
        }
    }
    Ok(())
}

/// Returns a connection that has just answered. After a restart of the server every pooled one is dead, so
/// those are discarded until the pool opens a new one.
fn living(pool: &Pool) -> Result<PooledConnection<Manager>, QueryError> {
    for _ in 0..pool.max_size() {
        let mut link = pool.get()?;
        if link.run(|connection| Ok(connection.ping()?)).is_ok() {
            return Ok(link);
        }
    }
    Ok(pool.get()?)
}

#[cfg(test)]
mod tests {
    use diesel::{QueryableByName, RunQueryDsl as _, sql_query, sql_types::Text};

    use super::*;

    #[derive(QueryableByName)]
    struct CompileOption {
        #[diesel(sql_type = Text)]
        compile_options: String,
    }

    #[test]
    fn sqlite_is_compiled_as_the_configuration_of_cargo_says() {
        let mut connection = SqliteConnection::establish(":memory:").unwrap();
        let told: Vec<CompileOption> = sql_query("PRAGMA compile_options").load(&mut connection).unwrap();
        let told: Vec<_> = told.into_iter().map(|option| option.compile_options).collect();
        for wanted in ["THREADSAFE=2", "DEFAULT_MEMSTATUS=0", "ENABLE_QPSG"] {
            assert!(told.iter().any(|option| option == wanted), "{wanted} is not among {told:?}");
        }
    }
}
