//! The options of opening a database.

use std::{path::PathBuf, str::FromStr, time::Duration};

use super::{file_lock::FileLock, server_lock::LockState};

/// The options of opening a database.
#[derive(Debug, Clone)]
pub struct DatabaseOptions {
    /// The location of the database.
    pub url: DatabaseUrl,
    /// The number of connections: on SQLite readers, in addition to the one writer.
    pub connections: u32,
    /// The timeout of waiting for a free connection, after which the database counts as unavailable.
    pub max_wait: Duration,
    /// The durability of a commit on SQLite.
    pub synchronous: Synchronous,
    /// A missing SQLite file is an error if this is true, and is created otherwise. Has no effect on
    /// PostgreSQL, whose databases are never created.
    pub must_exist: bool,
    /// The lock on the SQLite file, which is kept as long as the database is open.
    pub lock: Option<FileLock>,
    /// The state of the lock on the PostgreSQL database. While it is not held, writes are rejected.
    pub lock_state: Option<LockState>,
}

impl DatabaseOptions {
    /// Returns the options that fit most machines.
    #[must_use]
    pub fn new(url: DatabaseUrl) -> Self {
        Self {
            url,
            connections: 8,
            max_wait: Duration::from_secs(2),
            synchronous: Synchronous::Full,
            must_exist: false,
            lock: None,
            lock_state: None,
        }
    }
}

/// The durability of a commit on SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// A commit waits for the disk: it survives a power loss.
    #[default]
    Full,
    /// A commit waits for nothing. Only for measuring the cost of durability.
    Off,
}

impl Synchronous {
    pub(super) fn as_sql(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Off => "OFF",
        }
    }
}

/// The location of a database.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server, as a URL for libpq.
    Postgres(String),
}

impl std::fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            // The URL may hold a password.
            Self::Postgres(_) => f.write_str("Postgres(***)"),
        }
    }
}

/// The error for a text that is no URL of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be `sqlite://path/to/file` or `postgres://user@host/name`")]
pub struct InvalidDatabaseUrl;

impl FromStr for DatabaseUrl {
    type Err = InvalidDatabaseUrl;

    /// Requires a scheme: a mistyped URL must not become a file name.
    fn from_str(raw: &str) -> Result<Self, InvalidDatabaseUrl> {
        if raw.starts_with("postgres://") || raw.starts_with("postgresql://") {
            return Ok(Self::Postgres(raw.to_owned()));
        }
        let path = raw.strip_prefix("sqlite://").or_else(|| raw.strip_prefix("sqlite:"));
        match path {
            None | Some("" | ":memory:") => Err(InvalidDatabaseUrl),
            Some(path) => Ok(Self::Sqlite(path.into())),
        }
    }
}

/// The timeout of connecting to a server, in seconds.
const CONNECT_TIMEOUT: u32 = 5;

/// Returns the same PostgreSQL URL with a connect timeout, unless it has its own: libpq would wait for as
/// long as the network does.
pub(super) fn with_connect_timeout(url: &str) -> String {
    let options = options_of(url);
    let is_bounded = options
        .is_some_and(|options| options.split('&').any(|option| option.starts_with("connect_timeout=")));
    if is_bounded {
        return url.to_owned();
    }
    with_parameters(url, &[("connect_timeout", &CONNECT_TIMEOUT.to_string())])
}

/// Returns the same PostgreSQL URL for connections that notice within about ten seconds that the server has vanished.
pub(super) fn with_keepalives(url: &str) -> String {
    with_parameters(
        url,
        &[
            ("keepalives_idle", "4"),
            ("keepalives_interval", "2"),
            ("keepalives_count", "3"),
            ("tcp_user_timeout", "10000"),
        ],
    )
}

/// Returns the same PostgreSQL URL with further parameters. libpq takes the last value of a parameter that is there twice.
pub(super) fn with_parameters(url: &str, parameters: &[(&str, &str)]) -> String {
    let mut url = url.to_owned();
    for (name, value) in parameters {
        let separator = match options_of(&url) {
            None => "?",
            Some("") => "",
            Some(_) => "&",
        };
        url.push_str(&format!("{separator}{name}={}", value.replace(' ', "%20")));
    }
    url
}

/// Returns the part after the `?` of a URL, as libpq reads it: a name or password before an `@` may contain
/// a `?` of its own.
fn options_of(url: &str) -> Option<&str> {
    let (_scheme, rest) = url.split_once("://")?;
    let place = match rest.find(['@', '/']) {
        Some(end) if rest[end..].starts_with('@') => &rest[end..],
        _ => rest,
    };
    place.split_once('?').map(|(_address, options)| options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_chooses_the_database() {
        for (url, path) in [("sqlite:///var/lib/a.db", "/var/lib/a.db"), ("sqlite:a.db", "a.db")] {
            assert_eq!(url.parse(), Ok(DatabaseUrl::Sqlite(path.into())));
        }
        for url in ["postgres://ada@localhost/launchway", "postgresql:///launchway"] {
            assert_eq!(url.parse(), Ok(DatabaseUrl::Postgres(url.to_owned())));
        }
    }

    #[test]
    fn a_text_without_a_known_scheme_is_no_file_name() {
        for url in
            ["", "launchway.db", "postgre://localhost/launchway", "mysql://x", "sqlite:", "sqlite::memory:"]
        {
            assert_eq!(url.parse::<DatabaseUrl>(), Err(InvalidDatabaseUrl), "{url}");
        }
    }

    #[test]
    fn debug_output_shows_no_password() {
        let url: DatabaseUrl = "postgres://ada:hunter2@localhost/launchway".parse().unwrap();
        assert!(!format!("{url:?}").contains("hunter2"));
    }

    #[test]
    fn connecting_to_a_silent_server_times_out() {
        for (url, bounded) in [
            ("postgres://ada@db/launchway", "postgres://ada@db/launchway?connect_timeout=5"),
            ("postgres://db", "postgres://db?connect_timeout=5"),
            ("postgres://db/x?", "postgres://db/x?connect_timeout=5"),
            ("postgres:///x?host=/run", "postgres:///x?host=/run&connect_timeout=5"),
            ("postgres://ada:why?@db/x", "postgres://ada:why?@db/x?connect_timeout=5"),
            ("postgres://db/x?host=a@b", "postgres://db/x?host=a@b&connect_timeout=5"),
            ("postgres://db?host=a/b@c", "postgres://db?host=a/b@c&connect_timeout=5"),
        ] {
            assert_eq!(with_connect_timeout(url), bounded);
        }
    }

    #[test]
    fn a_url_that_says_how_long_to_wait_is_kept() {
        for url in ["postgres://db/x?connect_timeout=60", "postgres://db/x?sslmode=require&connect_timeout=0"]
        {
            assert_eq!(with_connect_timeout(url), url);
        }
    }
}
