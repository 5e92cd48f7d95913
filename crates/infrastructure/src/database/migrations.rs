//! The steps from one version's tables to the next one's.

use diesel::{backend::Backend, migration};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use super::{
    connection::AnyConnection,
    dialect::{Lock, hold},
    error::QueryError,
};

/// The steps for SQLite.
pub const SQLITE: EmbeddedMigrations = embed_migrations!("../../migrations/sqlite");
/// The same steps for PostgreSQL.
pub const POSTGRES: EmbeddedMigrations = embed_migrations!("../../migrations/postgres");

/// Takes the steps that were not taken yet, and names them.
pub(super) fn run(connection: &mut AnyConnection) -> Result<Vec<String>, QueryError> {
    // Replicas start together; the later ones wait and then find nothing to do.
    hold(connection, Lock::Migrations)?;
    let applied = match connection {
        AnyConnection::Sqlite(sqlite) => run_pending(sqlite, SQLITE),
        AnyConnection::Postgres(postgres) => run_pending(postgres, POSTGRES),
    };
    applied.map_err(QueryError::Migration)
}

/// Names the steps that were not taken yet.
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
) -> migration::Result<Vec<String>> {
    let mut names = Vec::new();
    for step in connection.pending_migrations(source)? {
        connection.run_migration(&step)?;
        names.push(step.name().to_string());
    }
    Ok(names)
}
