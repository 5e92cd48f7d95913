//! The errors of a database, and their mapping to the errors of the store.

use diesel::{
    r2d2::PoolError,
    result::{DatabaseErrorInformation, DatabaseErrorKind, Error},
};
use launchway_domain::store::{StoreError, Unique};

use super::migrations::NewerTables;

/// The error of a query, before it is mapped to a [`StoreError`].
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The database rejected a statement.
    #[error("a statement failed")]
    Statement(#[from] Error),
    /// No connection was available.
    #[error("no connection to the database")]
    NoConnection(#[from] PoolError),
    /// A connection could not be opened.
    #[error("cannot open a connection to the database")]
    Reopen(#[from] diesel::r2d2::Error),
    /// A stored value breaks a rule of the domain.
    #[error("a stored value is not valid")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A migration failed.
    #[error("a migration failed")]
    Migration(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The schema is newer than this binary.
    #[error(transparent)]
    Newer(#[from] NewerTables),
    /// The disk is full.
    #[error("the disk is full")]
    StorageFull(#[source] Box<QueryError>),
    /// The query panicked.
    #[error("a query panicked")]
    Panicked,
    /// The query itself determined the caller's error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueryError {
    /// The error for a stored value that the domain rejects.
    pub fn unreadable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unreadable(error.into())
    }

    /// Returns whether the connection is dead, so that another one may work.
    pub(super) fn is_connection_lost(&self) -> bool {
        matches!(
            self,
            Self::Statement(Error::DatabaseError(
                DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
                _
            ))
        )
    }

    /// Returns whether the error itself says that the disk is full.
    pub(super) fn is_storage_full(&self) -> bool {
        match self {
            Self::StorageFull(_) | Self::Store(StoreError::StorageFull(_)) => true,
            Self::Statement(Error::DatabaseError(_, information)) => is_storage_full(information.message()),
            Self::Reopen(error) => is_storage_full(&error.to_string()),
            _ => false,
        }
    }

    /// Returns whether a file could not be written; a full disk is one possible cause.
    pub(super) fn is_file_error(&self) -> bool {
        let is_file_error = |message: &str| FILE_ERRORS.iter().any(|known| message.contains(known));
        match self {
            Self::Statement(Error::DatabaseError(_, information)) => is_file_error(information.message()),
            Self::Reopen(error) => is_file_error(&error.to_string()),
            _ => false,
        }
    }

    /// Returns whether the same transaction may succeed when it is retried.
    ///
    /// Diesel reports a deadlock only as a text in the server's language, so every error without a kind
    /// counts.
    pub(super) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Statement(Error::DatabaseError(
                DatabaseErrorKind::SerializationFailure | DatabaseErrorKind::Unknown,
                _
            ))
        )
    }
}

impl From<QueryError> for StoreError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Store(error) => error,
            QueryError::NoConnection(error) => Self::Unavailable(error.into()),
            error @ QueryError::StorageFull(_) => Self::StorageFull(error.into()),
            QueryError::Reopen(error) if is_storage_full(&error.to_string()) => {
                Self::StorageFull(error.into())
            }
            QueryError::Reopen(error) => Self::Unavailable(error.into()),
            QueryError::Statement(error) => from_diesel(error),
            error @ (QueryError::Unreadable(_)
            | QueryError::Migration(_)
            | QueryError::Newer(_)
            | QueryError::Panicked) => Self::Internal(error.into()),
        }
    }
}

/// Checks a guarded write: `Stale` unless it changed something.
pub(super) fn guarded(changed_rows: usize) -> Result<(), QueryError> {
    if changed_rows == 0 { Err(StoreError::Stale.into()) } else { Ok(()) }
}

fn from_diesel(error: Error) -> StoreError {
    let Error::DatabaseError(kind, information) = &error else {
        return match error {
            Error::BrokenTransactionManager | Error::NotInTransaction => {
                StoreError::Unavailable(error.into())
            }
            error => StoreError::Internal(error.into()),
        };
    };
    match kind {
        DatabaseErrorKind::UniqueViolation => match taken(information.as_ref()) {
            Some(unique) => StoreError::Taken(unique),
            None => StoreError::Internal(error.into()),
        },
        DatabaseErrorKind::ClosedConnection
        | DatabaseErrorKind::UnableToSendCommand
        | DatabaseErrorKind::SerializationFailure
        | DatabaseErrorKind::ReadOnlyTransaction => StoreError::Unavailable(error.into()),
        _ if is_storage_full(information.message()) => StoreError::StorageFull(error.into()),
        _ if is_passing(information.message()) => StoreError::Unavailable(error.into()),
        _ => StoreError::Internal(error.into()),
    }
}

/// The unique constraints: the name on PostgreSQL, and the columns that SQLite reports.
const UNIQUE: [(Unique, &str, &str); 10] = [
    (Unique::Installation, "installation_pkey", "installation.id"),
    (Unique::UserEmail, "users_email_key", "users.email_key"),
    (Unique::OrganizationName, "organizations_name_key", "organizations.name_key"),
    (
        Unique::Membership,
        "memberships_organization_id_user_id_key",
        "memberships.organization_id, memberships.user_id",
    ),
    (
        Unique::ApiTokenName,
        "api_tokens_organization_id_user_id_name_key",
        "api_tokens.organization_id, api_tokens.user_id, api_tokens.name",
    ),
    (
        Unique::ApplicationName,
        "applications_organization_id_name_environment_key",
        "applications.organization_id, applications.name, applications.environment",
    ),
    (Unique::Domain, "hosts_pkey", "hosts.host"),
    (Unique::ExtensionKey, "extensions_key_key", "extensions.key"),
    (
        Unique::WebhookConfig,
        "webhook_configs_organization_id_kind_key",
        "webhook_configs.organization_id, webhook_configs.kind",
    ),
    (Unique::SmtpConfig, "smtp_configs_organization_id_key", "smtp_configs.organization_id"),
];

fn taken(information: &dyn DatabaseErrorInformation) -> Option<Unique> {
    let broken = information
        .constraint_name()
        .or_else(|| information.message().strip_prefix("UNIQUE constraint failed: "))?;
    UNIQUE
        .into_iter()
        .find(|(_, constraint, columns)| broken == *constraint || broken == *columns)
        .map(|(unique, ..)| unique)
}

/// SQLite's messages for files that cannot be written, for whatever reason.
const FILE_ERRORS: [&str; 2] = ["disk I/O error", "unable to open database file"];

/// Diesel has no kind for these errors; SQLite's messages are always in English.
fn is_passing(message: &str) -> bool {
    ["database is locked", "database table is locked", "deadlock detected"]
        .iter()
        .chain(&FILE_ERRORS)
        .any(|passing| message.contains(passing))
}

/// Diesel has no kind for it either. The first are SQLite's messages (`SQLITE_FULL`), the others those of
/// PostgreSQL for SQLSTATE 53100 unless they are translated.
fn is_storage_full(message: &str) -> bool {
    ["database or disk is full", "No space left on device", "Disk quota exceeded"]
        .iter()
        .any(|full| message.contains(full))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: DatabaseErrorKind, message: &str) -> StoreError {
        QueryError::from(Error::DatabaseError(kind, Box::new(message.to_owned()))).into()
    }

    #[test]
    fn a_full_disk_is_distinguished_from_other_faults() {
        for message in [
            "database or disk is full",
            "could not extend file \"base/16384/16389\": No space left on device",
            "could not write to file \"pg_wal/xlogtemp.12\": Disk quota exceeded",
        ] {
            let error = told(DatabaseErrorKind::Unknown, message);
            assert!(matches!(error, StoreError::StorageFull(_)), "{message}: {error:?}");
        }
    }

    #[test]
    fn a_lock_and_an_io_error_are_worth_another_try() {
        for message in ["database is locked", "disk I/O error", "unable to open database file"] {
            assert!(
                matches!(told(DatabaseErrorKind::Unknown, message), StoreError::Unavailable(_)),
                "{message}"
            );
        }
    }

    #[test]
    fn a_closed_connection_is_worth_another_try() {
        assert!(matches!(told(DatabaseErrorKind::ClosedConnection, ""), StoreError::Unavailable(_)));
    }

    #[test]
    fn a_broken_rule_that_no_caller_can_answer_is_a_fault() {
        for (kind, message) in [
            (DatabaseErrorKind::Unknown, "no such column: x"),
            (DatabaseErrorKind::ForeignKeyViolation, "FOREIGN KEY constraint failed"),
            (DatabaseErrorKind::UniqueViolation, "UNIQUE constraint failed: users.id"),
        ] {
            assert!(matches!(told(kind, message), StoreError::Internal(_)), "{message}");
        }
    }

    #[test]
    fn sqlite_names_what_is_taken_by_its_columns() {
        for (unique, _, columns) in UNIQUE {
            let message = format!("UNIQUE constraint failed: {columns}");
            let error = told(DatabaseErrorKind::UniqueViolation, &message);
            assert!(matches!(error, StoreError::Taken(taken) if taken == unique), "{message}");
        }
    }
}
