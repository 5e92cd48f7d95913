#![doc = include_str!("../README.md")]
//!
//! **Invariant:** only [`Database::read`], [`Database::read_point`] and [`Database::write`] touch a
//! connection, and no caller holds one across an `.await`. [`tables`] opens a connection of its own, for
//! commands that copy everything and exit.
//!
//! **Invariant:** a SQLite file has one writer, and a change is reported as successful only after the
//! transaction that holds it is durable.

mod applications;
mod audit;
mod auth;
mod certificates;
mod columns;
mod compositions;
mod connection;
mod deployments;
mod dialect;
mod error;
mod extensions;
mod file_lock;
mod group_commit;
mod homes;
mod idempotency;
mod identities;
mod image_records;
mod inspection;
mod installation_id;
mod jobs;
mod key_check;
mod logs;
pub mod migrations;
mod notifications;
mod options;
mod organizations;
mod previews;
mod quotas;
mod replicas;
mod schema;
mod search;
mod server_lock;
mod setup_token;
mod shared_read;
mod signals;
mod site_archives;
mod statement;
mod statistics;
mod storage_state;
mod stored_bytes;
pub mod tables;
mod throttle;
mod unit_of_work;
mod users;
mod webhooks;
mod work;
mod writer;

use std::{
    fs::OpenOptions,
    io::ErrorKind,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use diesel::r2d2;
use launchway_domain::{logs::LogLimits, store::StoreError};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task, time,
};

pub use self::{
    connection::AnyConnection,
    error::QueryError,
    file_lock::{FileLock, FileLockError},
    inspection::{ImageInUse, Inspection, InspectionError, images_in_use, inspect, living_replicas},
    migrations::{NewerTables, SchemaStatus},
    options::{DatabaseOptions, DatabaseUrl, InvalidDatabaseUrl, Synchronous},
    server_lock::{LockHolder, LockMode, LockState, ServerLock, ServerLockError},
    statistics::Statistics,
    throttle::DurableThrottle,
};
use self::{
    connection::{Manager, Pool},
    deployments::ReadCache,
    group_commit::GroupCommit,
    identities::IdentityCache,
    logs::Estimates,
    search::counts::CountCache,
    shared_read::SharedRead,
    signals::SignalSource,
    statistics::Counters,
    storage_state::StorageState,
    work::Value,
    writer::Writer,
};

/// The most rows of a page that is read by [`Database::read_point`].
const ROWS_OF_A_POINT_READ: i64 = 100;

/// The timeout of the first connection when a database is opened: a busy machine may need longer than callers wait later.
const FIRST_CONNECTION: Duration = Duration::from_secs(5);

/// The database and every repository in it. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
    log_limits: LogLimits,
}

struct Shared {
    pool: Pool,
    /// One permit per connection, so that callers wait here and not in blocking threads.
    permits: Arc<Semaphore>,
    /// Fewer permits than connections, for writers on PostgreSQL: writers of one organization wait for each
    /// other, and readers must not wait for them.
    write_permits: Arc<Semaphore>,
    max_wait: Duration,
    /// Only on SQLite; on PostgreSQL every connection writes.
    writer: Option<Writer>,
    /// Only used on PostgreSQL.
    group_commit: GroupCommit,
    counters: Arc<Counters>,
    identities: IdentityCache,
    /// Only used on PostgreSQL.
    identity_epoch: Arc<SharedRead<i64>>,
    signals: SignalSource,
    read_cache: ReadCache,
    search_counts: CountCache,
    log_estimates: Arc<Estimates>,
    storage: StorageState,
    lock_state: Option<LockState>,
    /// The last field, because it has to be dropped after the connections.
    _lock: Option<FileLock>,
}

/// An error of opening a database.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path of the SQLite file cannot be used.
    #[error("cannot use the database file `{}`", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database cannot be reached.
    #[error("cannot connect to the database")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Database {
    /// Opens a database. A SQLite file is created if it does not exist and may be created; only its owner
    /// may read it.
    ///
    /// Blocks until the connections are established.
    ///
    /// # Errors
    /// [`OpenError`] when the file or the server cannot be used.
    pub fn open(options: DatabaseOptions) -> Result<Self, OpenError> {
        let counters = Arc::new(Counters::default());
        let storage = StorageState::of(&options.url);
        let (manager, writer, identities, signals) = match options.url {
            DatabaseUrl::Postgres(url) => {
                let url = options::with_keepalives(&options::with_connect_timeout(&url));
                let signals = SignalSource::of_server(&url);
                (Manager::Postgres(url), None, IdentityCache::shared_with_replicas(), signals)
            }
            DatabaseUrl::Sqlite(path) => {
                let file = sqlite_file(&path, options.must_exist)
                    .map_err(|source| OpenError::File { path, source })?;
                let counters = Arc::clone(&counters);
                // The writer comes first: it creates the file and sets the mode in which readers do not
                // block on it.
                let writer = Writer::start(file.clone(), options.synchronous, options.max_wait, counters)
                    .map_err(|error| OpenError::Connect(error.into()))?;
                let signals = SignalSource::of_writer(writer.epochs().signals().clone());
                (Manager::SqliteReaders(file), Some(writer), IdentityCache::of_the_only_process(), signals)
            }
        };
        let read_cache = ReadCache::of(match &manager {
            Manager::SqliteReaders(file) => Some(file.clone()),
            Manager::Postgres(_) => None,
        });
        let connections = options.connections.max(1);
        let pool = r2d2::Pool::builder()
            .max_size(connections)
            .connection_timeout(options.max_wait)
            .test_on_check_out(false)
            .build_unchecked(manager);
        // The others are opened meanwhile.
        let first = pool.get_timeout(options.max_wait.max(FIRST_CONNECTION));
        drop(first.map_err(|error| OpenError::Connect(error.into()))?);
        let permits = Arc::new(Semaphore::new(connections as usize));
        let write_permits = Arc::new(Semaphore::new(for_writers(connections) as usize));
        let max_wait = options.max_wait;
        let shared = Shared {
            pool,
            permits,
            write_permits,
            max_wait,
            writer,
            group_commit: GroupCommit::default(),
            identity_epoch: Arc::default(),
            counters,
            identities,
            signals,
            read_cache,
            search_counts: CountCache::new(),
            log_estimates: Arc::default(),
            storage,
            lock_state: options.lock_state,
            _lock: options.lock,
        };
        Ok(Self { shared: Arc::new(shared), log_limits: LogLimits::default() })
    }

    /// Returns the same database with these limits for logs.
    #[must_use]
    pub fn with_log_limits(self, log_limits: LogLimits) -> Self {
        Self { log_limits, ..self }
    }

    /// Applies the pending migrations, and returns their names.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`]; then nothing was changed.
    pub async fn migrate(&self) -> Result<Vec<String>, StoreError> {
        self.write(migrations::run).await
    }

    /// Compares the schema with this binary. Changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn schema_status(&self) -> Result<SchemaStatus, StoreError> {
        self.read(migrations::schema_status).await
    }

    /// Returns the names of the migrations that [`migrate`](Self::migrate) would apply.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn pending_migrations(&self) -> Result<Vec<String>, StoreError> {
        // As a write, because Diesel makes its table of migrations if there is none.
        self.write(migrations::pending).await
    }

    /// Runs a query that reads, on a blocking thread.
    ///
    /// It may run twice: a query that meets a dead connection is run again on a living one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when no connection becomes free in time, and the query's own.
    pub async fn read<T, F>(&self, query: F) -> Result<T, StoreError>
    where
        F: Fn(&mut AnyConnection) -> Result<T, QueryError> + Send + 'static,
        T: Send + 'static,
    {
        self.shared.counters.count_read();
        self.read_uncounted(query).await
    }

    /// Runs a query that reads a few rows by an index.
    ///
    /// On SQLite that takes less time than handing it to another thread, so it runs at once on
    /// this one if a connection is free. On PostgreSQL this is [`read`](Self::read).
    ///
    /// # Errors
    /// As of [`read`](Self::read).
    pub async fn read_point<T, F>(&self, query: F) -> Result<T, StoreError>
    where
        F: Fn(&mut AnyConnection) -> Result<T, QueryError> + Send + 'static,
        T: Send + 'static,
    {
        self.shared.counters.count_read();
        if self.shared.writer.is_some()
            && let Ok(_permit) = self.shared.permits.try_acquire()
            && let Some(outcome) = connection::read_at_once(&self.shared.pool, &query)
        {
            return Ok(outcome?);
        }
        self.read_uncounted(query).await
    }

    /// Runs `work` as one transaction: when this returns `Ok`, its changes are durable; otherwise there are
    /// none.
    ///
    /// On SQLite it shares the one writer, and perhaps its transaction, with all other callers: it must be
    /// short, and neither begin nor end a transaction.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the database is too busy or was lost, and the work's own.
    pub async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&mut AnyConnection) -> Result<T, QueryError> + Send + 'static,
        T: Send + 'static,
    {
        Ok(self.try_write(1, work).await??)
    }

    /// Rejects new calls with [`StoreError::Unavailable`] and finishes the accepted ones.
    pub async fn close(&self) {
        self.shared.permits.close();
        self.shared.signals.close();
        if let Some(writer) = &self.shared.writer {
            writer.close().await;
        }
    }

    /// The time after which a server on the same SQLite file notices the writes of another process. On
    /// PostgreSQL it notices them at once.
    pub const NOTICES_OTHERS_WITHIN: Duration = writer::IDLE_TICK;

    /// Returns the counters of this database since it was opened.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.counters.statistics()
    }

    async fn read_uncounted<T, F>(&self, query: F) -> Result<T, StoreError>
    where
        F: Fn(&mut AnyConnection) -> Result<T, QueryError> + Send + 'static,
        T: Send + 'static,
    {
        let (query, value) = Value::of_read(query);
        self.run_read(query).await?;
        value.take()
    }

    async fn run_read(&self, query: work::Read) -> Result<(), StoreError> {
        let permit = self.permit().await?;
        let pool = self.shared.pool.clone();
        Ok(blocking(permit, move || connection::read(&pool, &query)).await??)
    }

    /// Runs the work of `commits` callers as one transaction. The outer error is final; the inner one is of
    /// PostgreSQL, where it may be transient.
    async fn try_write<T, F>(&self, commits: usize, work: F) -> Result<Result<T, QueryError>, StoreError>
    where
        F: FnOnce(&mut AnyConnection) -> Result<T, QueryError> + Send + 'static,
        T: Send + 'static,
    {
        let (work, value) = Value::of_write(work);
        match self.run_write(commits, work).await? {
            Ok(()) => value.take().map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn run_write(
        &self,
        commits: usize,
        work: work::Write,
    ) -> Result<Result<(), QueryError>, StoreError> {
        self.shared.counters.count_commits(commits);
        if let Some(writer) = &self.shared.writer {
            let outcome = writer.write(work).await.map(Ok);
            return self.shared.storage.observe(outcome);
        }
        if let Some(lock) = &self.shared.lock_state
            && !lock.is_held_within(self.shared.max_wait).await
        {
            return Err(StoreError::Unavailable("the lock on the database was lost".into()));
        }
        let turn = self.permit_of(&self.shared.write_permits).await?;
        let permit = self.permit().await?;
        let pool = self.shared.pool.clone();
        let counters = Arc::clone(&self.shared.counters);
        let outcome = blocking(permit, move || {
            let _turn = turn;
            let outcome = connection::transact(&pool, work);
            if outcome.is_ok() {
                counters.count_transaction();
            }
            outcome
        });
        self.shared.storage.observe(outcome.await)
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        self.permit_of(&self.shared.permits).await
    }

    async fn permit_of(&self, permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, StoreError> {
        time::timeout(self.shared.max_wait, Arc::clone(permits).acquire_owned())
            .await
            .map_err(|elapsed| StoreError::Unavailable(elapsed.into()))?
            .map_err(|closed| StoreError::Unavailable(closed.into()))
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.shared.writer.is_some() { "SQLite" } else { "PostgreSQL" };
        write!(f, "Database({kind})")
    }
}

/// The number of connections that may write at the same time: all but a quarter, and at least one.
fn for_writers(connections: u32) -> u32 {
    (connections - connections.div_ceil(4)).max(1)
}

/// Runs `work` on a blocking thread. The permit moves with it, because the work continues when the caller
/// stops waiting.
async fn blocking(
    permit: OwnedSemaphorePermit,
    work: impl FnOnce() -> Result<(), QueryError> + Send + 'static,
) -> Result<Result<(), QueryError>, StoreError> {
    let outcome = task::spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    outcome.await.map_err(|panicked| StoreError::Internal(panicked.into()))
}

/// Returns the name by which SQLite opens the file, which is created unless it must exist.
fn sqlite_file(path: &Path, must_exist: bool) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    // An absolute path, because SQLite gives a meaning of its own to names such as `file:x`.
    let path = std::path::absolute(path)?;
    match OpenOptions::new().create(!must_exist).append(true).mode(0o600).open(&path) {
        Err(error) if must_exist && error.kind() == ErrorKind::NotFound => {
            return Err("there is no database here".into());
        }
        outcome => drop(outcome?),
    }
    let name = path.into_os_string().into_string();
    name.map_err(|_path| "the path is not UTF-8".into())
}
