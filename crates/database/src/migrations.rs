//! The migrations of the schema.

use diesel::{
    QueryableByName, RunQueryDsl as _,
    backend::Backend,
    migration::{self, MigrationSource},
    sql_query,
    sql_types::Text,
    sqlite::Sqlite,
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use super::{
    connection::AnyConnection,
    dialect::{Lock, each_backend, hold},
    error::QueryError,
};

/// The migrations for SQLite.
pub const SQLITE: EmbeddedMigrations = embed_migrations!("../../migrations/sqlite");
/// The same migrations for PostgreSQL.
pub const POSTGRES: EmbeddedMigrations = embed_migrations!("../../migrations/postgres");

/// The schema has migrations that this version does not know.
#[derive(Debug, thiserror::Error)]
#[error(
    "the database is of a newer version of Launchway: it has {} that this one does not know; use that version, or restore a backup from before",
    .0.join(", ")
)]
pub struct NewerTables(Vec<String>);

/// The relation of a schema to this binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaStatus {
    /// All migrations are applied.
    UpToDate,
    /// These migrations are pending.
    Behind(Vec<String>),
    /// The database has migrations that this binary does not know, by their versions.
    Ahead(Vec<String>),
}

/// Returns the versions of the migrations that this binary knows, in order.
#[must_use]
pub fn known() -> Vec<String> {
    // Both databases have the same, which a test checks. An embedded list can always be read.
    let steps = MigrationSource::<Sqlite>::migrations(&SQLITE).unwrap_or_default();
    let mut versions: Vec<String> = steps.iter().map(|step| step.name().version().to_string()).collect();
    versions.sort();
    versions
}

/// Returns the versions of the applied migrations, in order. Changes nothing.
pub(super) fn applied(connection: &mut AnyConnection) -> Result<Vec<String>, QueryError> {
    #[derive(QueryableByName)]
    struct Applied {
        #[diesel(sql_type = Text)]
        version: String,
    }
    let is_there = match connection {
        AnyConnection::Sqlite(sqlite) => sql_query(
            "SELECT name AS version FROM sqlite_schema WHERE type = 'table' AND name = '__diesel_schema_migrations'",
        )
        .load::<Applied>(sqlite)?,
        AnyConnection::Postgres(postgres) => sql_query(
            "SELECT relname::text AS version FROM pg_class
             WHERE relnamespace = current_schema()::regnamespace AND relname = '__diesel_schema_migrations'",
        )
        .load::<Applied>(postgres)?,
    };
    if is_there.is_empty() {
        return Ok(Vec::new());
    }
    let taken = sql_query("SELECT version FROM __diesel_schema_migrations ORDER BY version");
    let taken: Vec<Applied> = each_backend!(connection, backend => taken.load(backend))?;
    Ok(taken.into_iter().map(|row| row.version).collect())
}

/// Compares the applied migrations with the known ones. Changes nothing.
pub(super) fn schema_status(connection: &mut AnyConnection) -> Result<SchemaStatus, QueryError> {
    let (known, applied) = (known(), applied(connection)?);
    let unknown: Vec<String> = applied.iter().filter(|version| !known.contains(version)).cloned().collect();
    let missing: Vec<String> = known.into_iter().filter(|version| !applied.contains(version)).collect();
    Ok(match (unknown.is_empty(), missing.is_empty()) {
        (false, _) => SchemaStatus::Ahead(unknown),
        (true, false) => SchemaStatus::Behind(missing),
        (true, true) => SchemaStatus::UpToDate,
    })
}

/// Applies the pending migrations, and returns their names.
pub(super) fn run(connection: &mut AnyConnection) -> Result<Vec<String>, QueryError> {
    run_those(connection, |_| true)
}

/// Applies the pending migrations up to the version `newest`.
pub(super) fn run_until(connection: &mut AnyConnection, newest: &str) -> Result<Vec<String>, QueryError> {
    run_those(connection, |version| version <= newest)
}

fn run_those(
    connection: &mut AnyConnection,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<String>, QueryError> {
    // Replicas start together; the later ones wait and then find nothing to do.
    hold(connection, Lock::Migrations)?;
    if let SchemaStatus::Ahead(unknown) = schema_status(connection)? {
        return Err(QueryError::Newer(NewerTables(unknown)));
    }
    let applied = match connection {
        AnyConnection::Sqlite(sqlite) => run_pending(sqlite, SQLITE, is_wanted),
        AnyConnection::Postgres(postgres) => run_pending(postgres, POSTGRES, is_wanted),
    };
    applied.map_err(QueryError::Migration)
}

/// Returns the names of the pending migrations.
pub(super) fn pending(connection: &mut AnyConnection) -> Result<Vec<String>, QueryError> {
    let pending = match connection {
        AnyConnection::Sqlite(sqlite) => names_of_pending(sqlite, SQLITE),
        AnyConnection::Postgres(postgres) => names_of_pending(postgres, POSTGRES),
    };
    pending.map_err(QueryError::Migration)
}

fn names_of_pending<DB: Backend>(
    connection: &mut impl MigrationHarness<DB>,
    source: EmbeddedMigrations,
) -> migration::Result<Vec<String>> {
    Ok(connection.pending_migrations(source)?.iter().map(|step| step.name().to_string()).collect())
}

fn run_pending<DB: Backend>(
    connection: &mut impl MigrationHarness<DB>,
    source: EmbeddedMigrations,
    is_wanted: impl Fn(&str) -> bool,
) -> migration::Result<Vec<String>> {
    let mut names = Vec::new();
    for step in connection.pending_migrations(source)? {
        if !is_wanted(&step.name().version().to_string()) {
            continue;
        }
        connection.run_migration(&step)?;
        names.push(step.name().to_string());
    }
    Ok(names)
}
