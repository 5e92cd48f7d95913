//! The SQL that differs between the two databases.

/// The database that the SQL is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Settings for bulk inserts. Tables are filled one after the other, so foreign keys are off;
    /// durability is not needed, because a crash costs nothing but time.
    pub(crate) fn before(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "PRAGMA journal_mode = OFF;
                 PRAGMA synchronous = OFF;
                 PRAGMA foreign_keys = OFF;
                 PRAGMA temp_store = MEMORY;
                 PRAGMA cache_size = -524288;
                 BEGIN EXCLUSIVE;"
            }
            Self::Postgres => {
                "SET session_replication_role = replica;
                 SET synchronous_commit = off;
                 SET maintenance_work_mem = '256MB';"
            }
        }
    }

    /// Leaves the database as if it had been filled slowly: with statistics where autovacuum makes them,
    /// and with nothing left to write.
    pub(crate) fn after(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &["COMMIT", "PRAGMA journal_mode = WAL"],
            Self::Postgres => &["VACUUM ANALYZE", "CHECKPOINT"],
        }
    }

    pub(crate) fn columns_of(self, table: &str) -> String {
        match self {
            Self::Sqlite => format!("SELECT name FROM pragma_table_info('{table}') ORDER BY cid"),
            Self::Postgres => format!(
                "SELECT column_name::text AS name FROM information_schema.columns
                 WHERE table_schema = current_schema() AND table_name = '{table}' ORDER BY ordinal_position"
            ),
        }
    }

    /// A table `counter` with a column `n` from 1 to `rows`.
    pub(crate) fn counter(self, rows: u64) -> String {
        match self {
            Self::Sqlite => format!(
                "WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < {rows})"
            ),
            Self::Postgres => format!("WITH counter(n) AS (SELECT generate_series(1, {rows}))"),
        }
    }

    /// An id that sorts by `number` and whose last digits name the kind of row.
    pub(crate) fn id(self, number: &str, of: u16) -> String {
        match self {
            Self::Sqlite => format!("unhex(printf('01900000%08x700080000000{of:04x}', {number}))"),
            Self::Postgres => {
                format!("('01900000' || lpad(to_hex({number}), 8, '0') || '700080000000{of:04x}')::uuid")
            }
        }
    }

    /// The same id as text.
    pub(crate) fn id_text(self, number: &str, of: u16) -> String {
        match self {
            Self::Sqlite => format!(
                "printf('01900000-%04x-%04x-7000-80000000{of:04x}', {number} / 65536, {number} % 65536)"
            ),
            Self::Postgres => format!("{}::text", self.id(number, of)),
        }
    }

    /// The id of a container that sorts by `number`.
    pub(crate) fn container_id(self, number: &str) -> String {
        match self {
            Self::Sqlite => format!("printf('%064x', {number})"),
            Self::Postgres => format!("lpad(to_hex({number}), 64, '0')"),
        }
    }

    /// A boolean literal, as the tables store it.
    pub(crate) fn boolean(self, value: bool) -> &'static str {
        match (self, value) {
            (Self::Sqlite, true) => "1",
            (Self::Sqlite, false) => "0",
            (Self::Postgres, true) => "TRUE",
            (Self::Postgres, false) => "FALSE",
        }
    }

    /// A name that sorts by `number`.
    pub(crate) fn name(self, number: &str) -> String {
        match self {
            Self::Sqlite => format!("printf('copy-%07d', {number})"),
            Self::Postgres => format!("('copy-' || lpad({number}::text, 7, '0'))"),
        }
    }

    /// A timestamp so many microseconds after another.
    pub(crate) fn later(self, moment: &str, microseconds: &str) -> String {
        match self {
            Self::Sqlite => format!("{moment} + ({microseconds})"),
            Self::Postgres => format!("{moment} + ({microseconds}) * interval '1 microsecond'"),
        }
    }
}
