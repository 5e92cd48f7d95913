//! The live versions, which are read again only after a change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use diesel::{QueryableByName, RunQueryDsl as _, sql_query, sql_types::BigInt, sqlite::SqliteConnection};
use launchway_domain::deployments::LiveVersion;

use crate::connection::sqlite_reader;

/// The live versions that were read last, with the version of the SQLite file before they were read. On
/// PostgreSQL, which tells nobody of changes, none are kept.
pub(crate) struct LiveVersions {
    file: Option<String>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The connection that reads the version of the file: SQLite counts for each connection the commits of
    /// all others, those of other processes too.
    connection: Option<SqliteConnection>,
    read: Option<(i64, Arc<[LiveVersion]>)>,
}

#[derive(QueryableByName)]
struct FileVersion {
    #[diesel(sql_type = BigInt)]
    data_version: i64,
}

impl LiveVersions {
    pub(crate) fn of(file: Option<String>) -> Self {
        Self { file, kept: Mutex::default() }
    }

    /// Returns the version of the file, which another commit changes, and the live versions if they were
    /// read in this one.
    pub(super) fn current(&self) -> (Option<i64>, Option<Arc<[LiveVersion]>>) {
        let Some(file) = &self.file else { return (None, None) };
        let mut kept = self.lock();
        let version =
            kept.connection.take().or_else(|| sqlite_reader(file).ok()).and_then(|mut connection| {
                let read: FileVersion = sql_query("PRAGMA data_version").get_result(&mut connection).ok()?;
                kept.connection = Some(connection);
                Some(read.data_version)
            });
        let read = kept.read.as_ref().filter(|(read_in, _)| Some(*read_in) == version);
        (version, read.map(|(_, live)| Arc::clone(live)))
    }

    /// Keeps live versions that were read in `version` of the file, or later.
    pub(super) fn keep(&self, version: i64, live: &Arc<[LiveVersion]>) {
        self.lock().read = Some((version, Arc::clone(live)));
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use diesel::{Connection as _, connection::SimpleConnection as _};

    use super::*;

    #[test]
    fn live_versions_are_kept_until_the_next_commit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file.db").into_os_string().into_string().unwrap();
        let mut writer = SqliteConnection::establish(&file).unwrap();
        writer.batch_execute("PRAGMA journal_mode = WAL; CREATE TABLE numbers (number INTEGER)").unwrap();
        let versions = LiveVersions::of(Some(file));
        let (before, kept) = versions.current();
        assert!(kept.is_none());
        versions.keep(before.unwrap(), &Arc::from([]));
        writer.batch_execute("BEGIN IMMEDIATE; DELETE FROM numbers WHERE number = 1; COMMIT").unwrap();
        assert!(versions.current().1.is_some(), "nothing was changed");
        writer.batch_execute("INSERT INTO numbers VALUES (1)").unwrap();
        let (after, kept) = versions.current();
        assert!(after != before && kept.is_none());
    }

    #[test]
    fn nothing_is_kept_without_a_file() {
        assert!(LiveVersions::of(None).current().0.is_none());
    }
}
