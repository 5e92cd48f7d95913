//! Separate databases on the PostgreSQL server that `cargo xtask test` starts.

use std::{
    env,
    error::Error,
    process,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use diesel::{Connection, PgConnection, connection::SimpleConnection};

/// The environment variable with the URL of the server.
const VARIABLE: &str = "LAUNCHWAY_TEST_POSTGRES_URL";

/// Returns the URL of the server, with the database that every server has.
///
/// # Panics
///
/// If no server was started for the tests.
#[must_use]
pub fn url() -> String {
    env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "{VARIABLE} is not set, and this test needs PostgreSQL: run `cargo xtask test`, which starts \
             one, or set the variable to a server on which you may create databases, \
             for example postgres://postgres@127.0.0.1:5432/postgres"
        )
    })
}

/// An empty database with a unique name, removed when dropped.
#[derive(Debug)]
pub struct FreshDatabase {
    server: String,
    name: String,
}

impl FreshDatabase {
    /// Creates an empty database.
    ///
    /// # Panics
    ///
    /// If there is no server, or it refuses.
    #[must_use]
    pub fn create() -> Self {
        let database = Self { server: url(), name: unique_name() };
        let statement = format!("CREATE DATABASE {} TEMPLATE template0", database.name);
        if let Err(problem) = execute(&database.server, &statement) {
            panic!("cannot create a database on the server that {VARIABLE} names: {problem}");
        }
        database
    }

    /// Returns the URL of the database.
    #[must_use]
    pub fn url(&self) -> String {
        with_database(&self.server, &self.name)
    }
}

impl Drop for FreshDatabase {
    fn drop(&mut self) {
        // Pools of the code under test may still hold connections.
        let dropped = execute(&self.server, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        if let Err(problem) = dropped
            && !thread::panicking()
        {
            panic!("cannot drop the test's database {}: {problem}", self.name);
        }
    }
}

fn execute(server: &str, statement: &str) -> Result<(), Box<dyn Error>> {
    PgConnection::establish(server)?.batch_execute(statement)?;
    Ok(())
}

/// Returns a unique name: tests run in many processes at once, and in several threads of each.
fn unique_name() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("launchway_{}_{count}_{}", process::id(), now.as_micros())
}

/// Returns the same server and options with another database.
fn with_database(url: &str, name: &str) -> String {
    let (address, options) = url.split_once('?').map_or((url, None), |(address, rest)| (address, Some(rest)));
    let (scheme, rest) = address.split_once("://").unwrap_or(("postgres", address));
    let host = rest.split('/').next().unwrap_or_default();
    let options = options.map(|options| format!("?{options}")).unwrap_or_default();
    format!("{scheme}://{host}/{name}{options}")
}

#[cfg(test)]
mod tests {
    use diesel::{QueryableByName, RunQueryDsl, sql_query, sql_types::Text};

    use super::*;

    #[derive(QueryableByName)]
    struct Current {
        #[diesel(sql_type = Text)]
        name: String,
    }

    #[test]
    fn only_the_database_of_an_address_changes() {
        let url = "postgres://me@127.0.0.1:5432/postgres?sslmode=disable";
        assert_eq!(with_database(url, "mine"), "postgres://me@127.0.0.1:5432/mine?sslmode=disable");
        assert_eq!(with_database("postgres://127.0.0.1", "mine"), "postgres://127.0.0.1/mine");
    }

    #[test]
    fn a_fresh_database_lives_as_long_as_its_value() {
        let database = FreshDatabase::create();
        let url = database.url();
        let mut connection = PgConnection::establish(&url).unwrap();
        let current: Current =
            sql_query("SELECT current_database()::text AS name").get_result(&mut connection).unwrap();
        assert_eq!(current.name, database.name);

        drop(database);
        assert!(PgConnection::establish(&url).is_err());
    }

    #[test]
    fn two_fresh_databases_are_not_the_same() {
        assert_ne!(FreshDatabase::create().url(), FreshDatabase::create().url());
    }
}
