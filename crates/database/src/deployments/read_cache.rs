//! Answers about all deployments, which are read again only after a change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use diesel::{QueryableByName, RunQueryDsl as _, sql_query, sql_types::BigInt, sqlite::SqliteConnection};
use launchway_domain::deployments::{KeptVersions, LiveVersion, RetentionStatus};

use crate::{columns::DbId, connection::sqlite_reader};

/// The most answers about the retention of deployments that are kept: those for the engine, and those for sites.
const MOST_RETENTIONS: usize = 2;

/// The answers that were read last, each with the version of the SQLite file before it was read. On PostgreSQL,
/// which tells nobody of changes, none are kept.
pub(crate) struct ReadCache {
    file: Option<String>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The connection that reads the version of the file: SQLite counts for each connection the commits of
    /// all others, those of other processes too.
    connection: Option<SqliteConnection>,
    live: Option<(i64, Arc<[LiveVersion]>)>,
    retentions: Vec<(i64, Retention)>,
}

/// An answer about the retention of deployments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Retention {
    /// The deployments that were asked for.
    pub(super) ids: Vec<DbId>,
    pub(super) kept: KeptVersions,
    pub(super) statuses: Vec<RetentionStatus>,
}

#[derive(QueryableByName)]
struct FileVersion {
    #[diesel(sql_type = BigInt)]
    data_version: i64,
}

impl ReadCache {
    pub(crate) fn of(file: Option<String>) -> Self {
        Self { file, kept: Mutex::default() }
    }

    /// Returns the version of the file, which another commit changes, and the live versions if they were
    /// read in this one.
    pub(super) fn live(&self) -> (Option<i64>, Option<Arc<[LiveVersion]>>) {
        let mut kept = self.lock();
        let version = self.version(&mut kept);
        let read = kept.live.as_ref().filter(|(read_in, _)| Some(*read_in) == version);
        (version, read.map(|(_, live)| Arc::clone(live)))
    }

    /// Keeps live versions that were read in `version` of the file, or later.
    pub(super) fn cache_live(&self, version: i64, live: &Arc<[LiveVersion]>) {
        self.lock().live = Some((version, Arc::clone(live)));
    }

    /// Returns the version of the file, and the answer about these deployments if it was read in this one.
    pub(super) fn retention(
        &self,
        ids: &[DbId],
        kept_versions: KeptVersions,
    ) -> (Option<i64>, Option<Vec<RetentionStatus>>) {
        let mut kept = self.lock();
        let version = self.version(&mut kept);
        let is_it = |(read_in, answer): &&(i64, Retention)| {
            Some(*read_in) == version && answer.kept == kept_versions && answer.ids == ids
        };
        let statuses = kept.retentions.iter().find(is_it).map(|(_, answer)| answer.statuses.clone());
        (version, statuses)
    }

    /// Keeps an answer that was read in `version` of the file, or later.
    pub(super) fn cache_retention(&self, version: i64, answer: Retention) {
        let retentions = &mut self.lock().retentions;
        retentions.retain(|(read_in, other)| *read_in == version && other.ids != answer.ids);
        retentions.truncate(MOST_RETENTIONS - 1);
        retentions.push((version, answer));
    }

    fn version(&self, kept: &mut Kept) -> Option<i64> {
        let file = self.file.as_ref()?;
        let mut connection = kept.connection.take().or_else(|| sqlite_reader(file).ok())?;
        let read: FileVersion = sql_query("PRAGMA data_version").get_result(&mut connection).ok()?;
        kept.connection = Some(connection);
        Some(read.data_version)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use diesel::{Connection as _, connection::SimpleConnection as _};
    use uuid::Uuid;

    use super::*;

    /// Returns a cache of a file, and a connection that writes to it.
    fn cache(folder: &tempfile::TempDir) -> (ReadCache, SqliteConnection) {
        let file = folder.path().join("file.db").into_os_string().into_string().unwrap();
        let mut writer = SqliteConnection::establish(&file).unwrap();
        writer.batch_execute("PRAGMA journal_mode = WAL; CREATE TABLE numbers (number INTEGER)").unwrap();
        (ReadCache::of(Some(file)), writer)
    }

    #[test]
    fn live_versions_are_kept_until_the_next_commit() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, mut writer) = cache(&folder);
        let (before, kept) = cache.live();
        assert!(kept.is_none());
        cache.cache_live(before.unwrap(), &Arc::from([]));
        writer.batch_execute("BEGIN IMMEDIATE; DELETE FROM numbers WHERE number = 1; COMMIT").unwrap();
        assert!(cache.live().1.is_some(), "nothing was changed");
        writer.batch_execute("INSERT INTO numbers VALUES (1)").unwrap();
        let (after, kept) = cache.live();
        assert!(after != before && kept.is_none());
    }

    #[test]
    fn retention_is_kept_for_the_same_question_until_a_commit() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, mut writer) = cache(&folder);
        let question = |number: u128| vec![DbId(Uuid::from_u128(number))];
        let kept = KeptVersions(1);
        let version = cache.retention(&question(1), kept).0.unwrap();
        for number in 1..=3 {
            cache.cache_retention(version, Retention { ids: question(number), kept, statuses: Vec::new() });
        }
        let is_kept = |number, kept| cache.retention(&question(number), kept).1.is_some();
        assert!(is_kept(3, kept) && !is_kept(3, KeptVersions(2)));
        assert_eq!((1..=3).filter(|number| is_kept(*number, kept)).count(), MOST_RETENTIONS);
        writer.batch_execute("INSERT INTO numbers VALUES (1)").unwrap();
        assert!(!is_kept(3, kept));
    }

    #[test]
    fn nothing_is_kept_without_a_file() {
        let cache = ReadCache::of(None);
        assert!(cache.live().0.is_none() && cache.retention(&[], KeptVersions(1)).0.is_none());
    }
}
