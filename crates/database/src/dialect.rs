//! The differences between the two databases that a shared query cannot express.
//!
//! **Invariant:** every query is written once. Where the databases need different statements,
//! `each_backend!` or a function of this module contains both. Only PostgreSQL takes row locks, by a
//! `match` on the connection: SQLite has one writer.

use diesel::prelude::*;

use super::{columns::DbId, connection::AnyConnection, error::QueryError, statement::StatementCache as _};

/// Runs the same expression on either database's own connection.
///
/// For what Diesel cannot express for both at once: `ON CONFLICT` and inserting several rows.
macro_rules! each_backend {
    ($connection:expr, $backend:ident => $query:expr) => {
        match $connection {
            $crate::AnyConnection::Sqlite($backend) => $query,
            $crate::AnyConnection::Postgres($backend) => $query,
        }
    };
}
pub(super) use each_backend;

/// Inserts rows in statements of few sizes, so that each is prepared once.
macro_rules! insert_in_chunks {
    ($connection:expr, $table:expr, $rows:expr) => {{
        let (large, rest) = $rows.as_chunks::<64>();
        $crate::dialect::insert_each!($connection, $table, large);
        let (small, rest) = rest.as_chunks::<8>();
        $crate::dialect::insert_each!($connection, $table, small);
        $crate::dialect::insert_each!($connection, $table, rest.as_chunks::<1>().0);
    }};
}
pub(super) use insert_in_chunks;

/// Inserts each of `chunks` by a statement of its own.
macro_rules! insert_each {
    ($connection:expr, $table:expr, $chunks:expr) => {
        for chunk in $chunks {
            let rows = diesel::insert_into($table).values(chunk);
            match $connection {
                $crate::AnyConnection::Sqlite(sqlite) => rows.execute(sqlite)?,
                $crate::AnyConnection::Postgres(postgres) => {
                    $crate::statement::StatementCache::cached(rows).execute(postgres)?
                }
            };
        }
    };
}
pub(super) use insert_each;

/// The operations that PostgreSQL transactions must not do concurrently.
#[derive(Debug, Clone, Copy)]
#[repr(i64)]
pub(super) enum Lock {
    /// Applying migrations.
    Migrations = 0x6c61_756e_0001,
    /// Counting login attempts.
    LoginAttempts = 0x6c61_756e_0002,
    /// Claiming jobs.
    JobClaims = 0x6c61_756e_0003,
    /// Changing the extension catalog.
    Catalog = 0x6c61_756e_0004,
    /// Claiming and deleting deliveries.
    Deliveries = 0x6c61_756e_0005,
    /// Allocating host ports.
    HostPorts = 0x6c61_756e_0006,
    /// Registering replicas and choosing the leader.
    Replicas = 0x6c61_756e_0007,
}

/// Waits until no other transaction holds `lock`, and holds it until this one ends.
///
/// On SQLite there is one writer, so nothing has to wait.
pub(super) fn hold(connection: &mut AnyConnection, lock: Lock) -> Result<(), QueryError> {
    hold_number(connection, lock as i64)
}

/// Locks a single id, which need not be stored anywhere.
///
/// Two ids may share a lock by chance; then one waits for the other unnecessarily.
pub(super) fn hold_one(connection: &mut AnyConnection, id: DbId) -> Result<(), QueryError> {
    let (high, low) = id.0.as_u64_pair();
    hold_number(connection, (high ^ low).cast_signed())
}

/// Locks the quotas of an organization, which is not the lock of the organization itself.
pub(super) fn hold_quotas(connection: &mut AnyConnection, organization: DbId) -> Result<(), QueryError> {
    const QUOTAS: u64 = 0x7175_6f74_6173_0000;
    let (high, low) = organization.0.as_u64_pair();
    hold_number(connection, (high ^ low ^ QUOTAS).cast_signed())
}

fn hold_number(connection: &mut AnyConnection, number: i64) -> Result<(), QueryError> {
    if let AnyConnection::Postgres(postgres) = connection {
        diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
            .bind::<diesel::sql_types::BigInt, _>(number)
            .cached()
            .execute(postgres)?;
    }
    Ok(())
}
