//! The lock by which processes use a PostgreSQL database: servers together, and a command that has to be alone exclusively.
//!
//! It is a session-level advisory lock on a connection of its own, so it ends with that connection: PostgreSQL releases it
//! when the process dies. A server that loses the connection no longer has the lock, and writes nothing until it has taken
//! the lock again. Advisory locks belong to a session: a connection pooler in front of PostgreSQL has to work in session
//! mode.

use std::{
    fmt, process,
    thread::sleep,
    time::{Duration, Instant},
};

use diesel::{
    Connection as _, QueryableByName, RunQueryDsl as _,
    connection::SimpleConnection as _,
    pg::PgConnection,
    sql_query,
    sql_types::{Bool, Integer, Nullable, Text},
};
use tokio::{sync::watch, task, time};

use super::{OpenError, connection::KEEPALIVES, error::QueryError, options};

/// The first half of the lock's key. The second half is that of the schema, because two installations may have a schema
/// each in one database.
const CLASS: i32 = 0x6c61_756e;
/// The pause between two attempts to take the lock.
const RETRY: Duration = Duration::from_millis(200);
/// The pause between two checks that the lock is still held.
const CHECK: Duration = Duration::from_secs(1);
/// The longest name that PostgreSQL keeps of a client, in bytes.
const NAME_LIMIT: usize = 63;

/// No statement of a connection that is kept takes long.
const SHORT_STATEMENTS: &str = "SET statement_timeout = '5s';";

const TRY_LOCK: &str = "SELECT pg_try_advisory_lock($1, hashtext(current_schema())) AS held";
const TRY_LOCK_SHARED: &str = "SELECT pg_try_advisory_lock_shared($1, hashtext(current_schema())) AS held";
const IS_HELD: &str = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
         AND classid::bigint = $1 AND objid::bigint = hashtext(current_schema())::bigint & 4294967295
         AND objsubid = 2 AND pid = pg_backend_pid()) AS held";
const HOLDER: &str = "SELECT activity.application_name AS name, host(activity.client_addr) AS address
     FROM pg_locks JOIN pg_stat_activity activity USING (pid) WHERE locktype = 'advisory' AND granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
         AND classid::bigint = $1 AND objid::bigint = hashtext(current_schema())::bigint & 4294967295
         AND objsubid = 2 LIMIT 1";

#[derive(QueryableByName)]
struct Held {
    #[diesel(sql_type = Bool)]
    held: bool,
}

#[derive(QueryableByName)]
struct HolderRow {
    #[diesel(sql_type = Nullable<Text>)]
    name: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    address: Option<String>,
}

/// The process that holds the lock, as reported by PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockHolder {
    /// The host name and process id that the server gave itself.
    pub name: Option<String>,
    /// The address that it connects from; `None` for a Unix socket.
    pub address: Option<String>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, &self.address) {
            (Some(name), Some(address)) => write!(f, "{name}, connected from {address}"),
            (Some(name), None) => f.write_str(name),
            (None, Some(address)) => write!(f, "connected from {address}"),
            (None, None) => f.write_str("of unknown name"),
        }
    }
}

/// The mode of the lock on a PostgreSQL database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Servers have it at the same time.
    Shared,
    /// Nobody else has it.
    Exclusive,
}

/// The reason why the lock on a PostgreSQL database was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ServerLockError {
    /// Another process holds it.
    #[error("another Launchway process ({0}) uses this database")]
    InUse(LockHolder),
    /// PostgreSQL cannot be reached.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A query failed.
    #[error(transparent)]
    Query(#[from] QueryError),
}

impl From<diesel::result::Error> for ServerLockError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Query(error.into())
    }
}

/// The lock on a PostgreSQL database, held while this value lives.
pub struct ServerLock {
    url: String,
    mode: LockMode,
    connection: PgConnection,
    held: watch::Sender<bool>,
}

/// Reports whether a [`ServerLock`] is currently held. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LockState(watch::Receiver<bool>);

impl LockState {
    /// Waits up to `timeout` until the lock is held, and reports whether it is.
    pub(super) async fn is_held_within(&self, timeout: Duration) -> bool {
        if *self.0.borrow() {
            return true;
        }
        let mut changes = self.0.clone();
        matches!(time::timeout(timeout, changes.wait_for(|held| *held)).await, Ok(Ok(_)))
    }
}

impl ServerLock {
    /// Takes the lock on the database at `url`, and waits up to `timeout` for another process to release
    /// it. `hostname` identifies this process to others while it holds the lock. Blocks the thread.
    ///
    /// # Errors
    /// [`ServerLockError::InUse`] when another process keeps the lock.
    pub fn acquire(
        url: &str,
        mode: LockMode,
        hostname: &str,
        timeout: Duration,
    ) -> Result<Self, ServerLockError> {
        let url = session_url(url, &client_name(hostname, process::id()));
        let started = Instant::now();
        let mut connection = connect(&url)?;
        while !try_lock(&mut connection, mode)? {
            if started.elapsed() >= timeout {
                return Err(ServerLockError::InUse(holder(&mut connection)?));
            }
            sleep(RETRY);
        }
        Ok(Self { url, mode, connection, held: watch::Sender::new(true) })
    }

    /// Returns the state of this lock, which changes when the connection is lost and when the lock is taken again.
    #[must_use]
    pub fn state(&self) -> LockState {
        LockState(self.held.subscribe())
    }

    /// Keeps the lock: checks it every second, and takes it again when its connection was lost. Returns the new holder when
    /// another process has taken it meanwhile, in a mode that excludes this one.
    pub async fn keep(self) -> LockHolder {
        let mut lock = self;
        loop {
            time::sleep(CHECK).await;
            let checked = task::spawn_blocking(move || {
                let outcome = is_held(&mut lock.connection);
                (lock, outcome)
            });
            // A check that panicked has dropped the connection, and with it the lock.
            let Ok((checked, outcome)) = checked.await else { return LockHolder::default() };
            lock = checked;
            let reason = match outcome {
                Ok(true) => continue,
                Ok(false) => "the session no longer has it".to_owned(),
                Err(error) => error.to_string(),
            };
            tracing::error!(reason, "database lock lost");
            lock.held.send_replace(false);
            lock = match lock.take_again().await {
                Ok(lock) => lock,
                Err(holder) => return holder,
            };
            lock.held.send_replace(true);
            tracing::warn!("database lock taken again");
        }
    }

    /// Tries to take the lock until it succeeds or another process has it.
    async fn take_again(self) -> Result<Self, LockHolder> {
        let Self { url, mode, connection, held } = self;
        // Otherwise a session that still lives would be taken for that of another server.
        drop(task::spawn_blocking(move || drop(connection)).await);
        loop {
            let attempt = task::spawn_blocking({
                let url = url.clone();
                move || {
                    let mut connection = connect(&url)?;
                    if try_lock(&mut connection, mode)? {
                        return Ok(connection);
                    }
                    Err(ServerLockError::InUse(holder(&mut connection)?))
                }
            });
            match attempt.await {
                Ok(Ok(connection)) => return Ok(Self { url, mode, connection, held }),
                Ok(Err(ServerLockError::InUse(holder))) => return Err(holder),
                Ok(Err(error)) => tracing::debug!(%error, "database lock not taken yet"),
                Err(error) => tracing::error!(%error, "attempt to take the database lock panicked"),
            }
            time::sleep(RETRY).await;
        }
    }
}

impl fmt::Debug for ServerLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.write_str("ServerLock")
    }
}

/// Returns the same URL for a connection that is kept, with the name of the client.
pub(super) fn session_url(url: &str, name: &str) -> String {
    let url = options::with_keepalives(&options::with_connect_timeout(url));
    options::with_parameters(&url, &[("application_name", name)])
}

/// Opens a connection that is kept; see [`session_url`].
pub(super) fn connect(url: &str) -> Result<PgConnection, ServerLockError> {
    let mut connection = PgConnection::establish(url).map_err(|error| OpenError::Connect(error.into()))?;
    connection.batch_execute(&format!("{KEEPALIVES} {SHORT_STATEMENTS}"))?;
    Ok(connection)
}

fn try_lock(connection: &mut PgConnection, mode: LockMode) -> Result<bool, ServerLockError> {
    let statement = match mode {
        LockMode::Shared => TRY_LOCK_SHARED,
        LockMode::Exclusive => TRY_LOCK,
    };
    let row: Held = sql_query(statement).bind::<Integer, _>(CLASS).get_result(connection)?;
    Ok(row.held)
}

fn is_held(connection: &mut PgConnection) -> Result<bool, QueryError> {
    let row: Held = sql_query(IS_HELD).bind::<Integer, _>(CLASS).get_result(connection)?;
    Ok(row.held)
}

/// Returns the process that holds the lock; an unknown one if it has just released it.
fn holder(connection: &mut PgConnection) -> Result<LockHolder, ServerLockError> {
    let rows: Vec<HolderRow> = sql_query(HOLDER).bind::<Integer, _>(CLASS).load(connection)?;
    let row = rows.into_iter().next();
    Ok(row.map_or_else(LockHolder::default, |row| LockHolder {
        // Roles other than the holder's own see no name.
        name: row.name.filter(|name| !name.is_empty()),
        address: row.address,
    }))
}

/// Returns the name of this process for others. The process id stays when the name of the host is too long.
fn client_name(hostname: &str, pid: u32) -> String {
    let suffix = format!(" pid {pid}");
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let host: String = hostname.chars().filter(is_plain).take(NAME_LIMIT - suffix.len()).collect();
    format!("{host}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_client_keeps_its_process_id() {
        assert_eq!(client_name("db-1.example.com", 42), "db-1.example.com pid 42");
        let long = client_name(&"h".repeat(200), 4_194_304);
        assert_eq!(long.len(), NAME_LIMIT);
        assert!(long.ends_with("h pid 4194304"), "{long}");
    }

    #[test]
    fn a_holder_is_shown_as_far_as_it_is_known() {
        let [name, address] = ["web-1 pid 7", "10.0.0.7"].map(|text| Some(text.to_owned()));
        for (holder, shown) in [
            ((name.clone(), address.clone()), "web-1 pid 7, connected from 10.0.0.7"),
            ((name, None), "web-1 pid 7"),
            ((None, address), "connected from 10.0.0.7"),
            ((None, None), "of unknown name"),
        ] {
            assert_eq!(LockHolder { name: holder.0, address: holder.1 }.to_string(), shown);
        }
    }
}
