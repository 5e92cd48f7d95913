//! Which database to open, and how.

use std::{path::PathBuf, str::FromStr, time::Duration};

use super::{file_lock::FileLock, server_lock::LockState};

/// How a database is opened.
#[derive(Debug, Clone)]
pub struct DatabaseOptions {
    /// Which.
    pub url: DatabaseUrl,
    /// How many connections there are: on SQLite readers, beside the one writer.
    pub connections: u32,
    /// How long a caller waits for a free connection before the database counts as unavailable.
    pub patience: Duration,
    /// What a commit on SQLite waits for.
    pub synchronous: Synchronous,
    /// Whether a SQLite file that is not there is an error; otherwise it is made. A server is never
    /// made, so that PostgreSQL does not need to be told.
    pub must_exist: bool,
    /// The lock on the SQLite file, which is kept as long as the database is open.
    pub lock: Option<FileLock>,
    /// The state of the lock on the PostgreSQL database. While it is not held, writes are refused.
    pub lock_state: Option<LockState>,
}

impl DatabaseOptions {
    /// The options that fit most machines.
    #[must_use]
    pub fn new(url: DatabaseUrl) -> Self {
        Self {
            url,
            connections: 8,
            patience: Duration::from_secs(2),
            synchronous: Synchronous::Full,
            must_exist: false,
            lock: None,
            lock_state: None,
        }
    }
}

/// What a commit on SQLite waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// For the disk: what was committed survives the loss of power.
    #[default]
    Full,
    /// For nothing. Only for measuring what durability costs.
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

/// Where a database is.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A file.
    Sqlite(PathBuf),
    /// A server, in the form that libpq takes.
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

/// A text that names no database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be `sqlite://path/to/file` or `postgres://user@host/name`")]
pub struct InvalidDatabaseUrl;

impl FromStr for DatabaseUrl {
    type Err = InvalidDatabaseUrl;

    /// The scheme decides, and must be there: a mistyped URL must not become a file name.
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

/// How long to wait for a server that does not answer, in seconds.
const CONNECT_TIMEOUT: u32 = 5;

/// The same PostgreSQL URL with a bound on the wait for the server, unless it has its own: libpq
/// would wait for as long as the network does.
pub(super) fn with_connect_timeout(url: &str) -> String {
    let options = options_of(url);
    let is_bounded = options
        .is_some_and(|options| options.split('&').any(|option| option.starts_with("connect_timeout=")));
    if is_bounded {
        return url.to_owned();
    }
    with_parameters(url, &[("connect_timeout", &CONNECT_TIMEOUT.to_string())])
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

/// What follows the `?` of a URL, as libpq reads it: a name or password before an `@` may hold a
/// `?` of its own.
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
    fn a_server_that_does_not_answer_is_waited_for_no_longer_than_some_seconds() {
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
