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
use diesel_migrations::{FileBasedMigrations, MigrationHarness as _};

use crate::{migrations, services::require};

/// The environment variable with the URL of the server.
const VARIABLE: &str = "LAUNCHWAY_TEST_POSTGRES_URL";

/// The beginning of the messages of a server that creates no database.
const REFUSED: &str = "cannot create a database on the server that LAUNCHWAY_TEST_POSTGRES_URL names";

/// Returns the URL of the server, with the database that every server has.
///
/// # Panics
///
/// If no server was started for the tests, or the name of the running test does not contain `postgres`.
#[must_use]
pub fn url() -> String {
    require("postgres");
    env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "{VARIABLE} is not set, and this test needs PostgreSQL: run `cargo xtask test`, which starts \
             one, or set the variable to a server on which you may create databases, \
             for example postgres://postgres@127.0.0.1:5432/postgres"
        )
    })
}

/// A database with a unique name, removed when dropped.
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
        Self::copy_of("template0").unwrap_or_else(|problem| panic!("{REFUSED}: {problem}"))
    }

    /// Creates a database with empty tables, as a copy of one in which all migrations were applied: they take ten times
    /// as long.
    ///
    /// # Panics
    ///
    /// If there is no server, or it refuses, or a migration fails.
    #[must_use]
    pub fn migrated() -> Self {
        let template = template_name();
        Self::copy_of(&template).unwrap_or_else(|_no_template| {
            create_template(&template).unwrap_or_else(|problem| panic!("{REFUSED}: {problem}"));
            Self::copy_of(&template).unwrap_or_else(|problem| panic!("{REFUSED}: {problem}"))
        })
    }

    fn copy_of(template: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let database = Self { server: url(), name: unique_name() };
        // The files are copied, which takes a third of the time that their pages take through the write-ahead log.
        let name = &database.name;
        let create = format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy");
        execute(&database.server, &create)?;
        Ok(database)
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

fn execute(server: &str, statement: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    PgConnection::establish(server)?.batch_execute(statement)?;
    Ok(())
}

/// Returns the name of the database in which these migrations were applied: a server may outlive a change of them.
fn template_name() -> String {
    format!("launchway_template_{:016x}", migrations::fingerprint("postgres"))
}

/// Applies the migrations in a database of this name, unless another process has done so meanwhile.
fn create_template(name: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    const LOCK: i64 = 0x6c61_756e_7465_7374;
    let mut lock = PgConnection::establish(&url())?;
    lock.batch_execute(&format!("SELECT pg_advisory_lock({LOCK})"))?;
    if PgConnection::establish(&with_database(&url(), name)).is_ok() {
        return Ok(());
    }
    let database = FreshDatabase::create();
    let mut connection = PgConnection::establish(&database.url())?;
    connection.run_pending_migrations(FileBasedMigrations::from_path(migrations::folder("postgres"))?)?;
    drop(connection);
    execute(&url(), &format!("ALTER DATABASE {} RENAME TO {name}", database.name))
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
    fn a_migrated_database_has_empty_tables_of_its_own() {
        let [one, other] = [FreshDatabase::migrated(), FreshDatabase::migrated()];
        execute(&one.url(), "DROP TABLE jobs CASCADE").unwrap();
        execute(&other.url(), "SELECT count(*) FROM jobs").unwrap();
        execute(&FreshDatabase::migrated().url(), "SELECT count(*) FROM jobs").unwrap();
    }

    #[test]
    fn two_fresh_databases_are_not_the_same() {
        assert_ne!(FreshDatabase::create().url(), FreshDatabase::create().url());
    }
}
