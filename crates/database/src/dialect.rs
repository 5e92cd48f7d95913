//! The differences between the two databases that a shared query cannot express.
//!
//! **Invariant:** every query is written once. Where the databases need different statements,
//! `each_backend!` or a function of this module contains both. Only PostgreSQL takes row locks, by a
//! `match` on the connection: SQLite has one writer.

use std::{cell::RefCell, collections::BTreeSet};

use diesel::prelude::*;

use super::{columns::DbId, connection::AnyConnection, error::QueryError, statement::StatementCache as _};

/// Runs the same expression on either database's own connection.
///
/// For what Diesel cannot express for both at once: `ON CONFLICT` and inserting several rows. Also for the most frequent
/// reads: for both at once, Diesel writes the text of a prepared statement at least twice whenever it is run.
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
    ($connection:expr, $table:expr, $rows:expr) => {
        match $connection {
            $crate::AnyConnection::Sqlite(sqlite) => {
                let (large, rest) = $rows.as_chunks::<64>();
                for chunk in large {
                    diesel::insert_into($table).values(chunk).execute(sqlite)?;
                }
                let (small, rest) = rest.as_chunks::<8>();
                for chunk in small {
                    diesel::insert_into($table).values(chunk).execute(sqlite)?;
                }
                for row in rest {
                    diesel::insert_into($table).values(row).execute(sqlite)?;
                }
            }
            $crate::AnyConnection::Postgres(postgres) => {
                for chunk in $crate::dialect::chunks(&$rows) {
                    let insert = diesel::insert_into($table).values(chunk);
                    $crate::statement::StatementCache::cached(insert).execute(postgres)?;
                }
            }
        }
    };
}
pub(super) use insert_in_chunks;

/// Runs an upsert for each of `rows`, in statements of few sizes on PostgreSQL. SQLite, which Diesel lets upsert only
/// single rows, has no round trips to save.
macro_rules! upsert_in_chunks {
    ($connection:expr, $rows:expr, ($backend:ident, $chunk:ident) => $upsert:expr) => {
        match $connection {
            $crate::AnyConnection::Sqlite($backend) => {
                for $chunk in $rows {
                    $upsert;
                }
            }
            $crate::AnyConnection::Postgres($backend) => {
                for $chunk in $crate::dialect::chunks($rows) {
                    $upsert;
                }
            }
        }
    };
}
pub(super) use upsert_in_chunks;

/// The most rows of one statement.
const CHUNK: usize = 64;

/// Divides rows into chunks whose sizes are powers of two, the largest first.
pub(super) fn chunks<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = 1 << rows.len().checked_ilog2()?;
        let (chunk, rest) = rows.split_at(CHUNK.min(size));
        rows = rest;
        Some(chunk)
    })
}

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
    hold_number(connection, number_of(id))
}

/// Locks several ids at once, in a fixed order, to avoid deadlocks.
pub(super) fn hold_each(
    connection: &mut AnyConnection,
    ids: impl IntoIterator<Item = DbId>,
) -> Result<(), QueryError> {
    let numbers: BTreeSet<i64> = ids.into_iter().map(number_of).filter(|number| !is_held(*number)).collect();
    let numbers: Vec<i64> = numbers.into_iter().collect();
    match (connection, &numbers[..]) {
        (AnyConnection::Sqlite(_), _) | (_, []) => Ok(()),
        (connection, [only]) => hold_number(connection, *only),
        (AnyConnection::Postgres(postgres), _) => {
            diesel::sql_query("SELECT pg_advisory_xact_lock(number) FROM unnest($1) AS number")
                .bind::<diesel::sql_types::Array<diesel::sql_types::BigInt>, _>(&numbers)
                .cached()
                .execute(postgres)?;
            numbers.into_iter().for_each(remember);
            Ok(())
        }
    }
}

fn number_of(id: DbId) -> i64 {
    let (high, low) = id.0.as_u64_pair();
    (high ^ low).cast_signed()
}

/// Locks the quotas of an organization, which is not the lock of the organization itself.
pub(super) fn hold_quotas(connection: &mut AnyConnection, organization: DbId) -> Result<(), QueryError> {
    const QUOTAS: i64 = 0x7175_6f74_6173_0000;
    hold_number(connection, number_of(organization) ^ QUOTAS)
}

thread_local! {
    /// The locks of the transaction that this thread runs by [`remembering_locks`].
    static HELD: RefCell<Option<Vec<i64>>> = const { RefCell::new(None) };
}

/// Runs a whole transaction, which asks PostgreSQL for each lock only once: it holds them until its end.
pub(super) fn remembering_locks<T>(transaction: impl FnOnce() -> T) -> T {
    /// Also forgets the locks when the transaction panics.
    struct Forget;
    impl Drop for Forget {
        fn drop(&mut self) {
            HELD.set(None);
        }
    }
    let _forget = Forget;
    HELD.set(Some(Vec::new()));
    transaction()
}

fn hold_number(connection: &mut AnyConnection, number: i64) -> Result<(), QueryError> {
    let AnyConnection::Postgres(postgres) = connection else { return Ok(()) };
    if is_held(number) {
        return Ok(());
    }
    diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
        .bind::<diesel::sql_types::BigInt, _>(number)
        .cached()
        .execute(postgres)?;
    remember(number);
    Ok(())
}

fn is_held(number: i64) -> bool {
    HELD.with_borrow(|held| held.as_ref().is_some_and(|held| held.contains(&number)))
}

fn remember(number: i64) {
    HELD.with_borrow_mut(|held| held.iter_mut().for_each(|held| held.push(number)));
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn locks_are_forgotten_at_the_end_of_their_transaction() {
        let number_of_held = || HELD.with_borrow(|held| held.as_ref().map(Vec::len));
        remembering_locks(|| {
            remember(1);
            assert_eq!((number_of_held(), is_held(1), is_held(2)), (Some(1), true, false));
        });
        remember(2);
        assert_eq!(number_of_held(), None, "nothing is remembered outside of a transaction");
        catch_unwind(|| remembering_locks(|| -> () { panic!("in a transaction") })).unwrap_err();
        assert_eq!(number_of_held(), None);
        remembering_locks(|| assert_eq!(number_of_held(), Some(0)));
    }

    #[test]
    fn rows_are_divided_into_chunks_of_few_sizes() {
        let sizes = |rows: usize| chunks(&vec![(); rows]).map(<[()]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(0), [0_usize; 0]);
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(15), [8, 4, 2, 1]);
        assert_eq!(sizes(64), [64]);
        assert_eq!(sizes(200), [64, 64, 64, 8]);
    }
}
