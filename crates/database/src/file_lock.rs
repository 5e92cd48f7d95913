//! The lock that lets one server at a time use a SQLite file.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, ErrorKind},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

/// The reason why a SQLite file cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum FileLockError {
    /// Another server has the lock.
    #[error("another Launchway server uses the database file `{}`: stop it, or use another database", .0.display())]
    InUse(PathBuf),
    /// The file cannot be opened or made.
    #[error("cannot use the database file `{}`", path.display())]
    File {
        /// The path as it was configured.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// An exclusive lock on a SQLite file, released when the last clone is dropped.
///
/// It is an `flock` on the file itself, so that other names of the file share the same lock, and SQLite's
/// own locks, which are POSIX record locks, are independent of it. The descriptor has to stay open as long
/// as this process uses the file by SQLite: closing any descriptor of a file releases all POSIX record
/// locks that the process has on it.
#[derive(Debug, Clone)]
pub struct FileLock {
    _file: Arc<File>,
}

impl FileLock {
    /// Locks the file at `path` and waits up to `timeout` for another process to release it. Returns `None` if there is
    /// no file.
    ///
    /// # Errors
    /// [`FileLockError::InUse`] when another process keeps the lock, [`FileLockError::File`] when the file cannot be
    /// opened.
    pub fn acquire(path: &Path, timeout: Duration) -> Result<Option<Self>, FileLockError> {
        match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            opened => lock(path, opened, timeout).map(Some),
        }
    }

    /// Locks the file at `path` as [`acquire`](Self::acquire) does, and makes an empty one if there is none.
    ///
    /// # Errors
    /// As of [`acquire`](Self::acquire).
    pub fn acquire_or_create(path: &Path, timeout: Duration) -> Result<Self, FileLockError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        lock(path, options.open(path), timeout)
    }
}

fn lock(path: &Path, opened: io::Result<File>, timeout: Duration) -> Result<FileLock, FileLockError> {
    let failed = |source| FileLockError::File { path: path.to_owned(), source };
    let file = opened.map_err(failed)?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(FileLock { _file: Arc::new(file) }),
            Err(TryLockError::WouldBlock) if started.elapsed() < timeout => {
                sleep(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => return Err(FileLockError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    const AT_ONCE: Duration = Duration::ZERO;

    #[test]
    fn a_missing_file_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("launchway.db");
        assert!(FileLock::acquire(&path, AT_ONCE).unwrap().is_none());
        assert!(!path.exists());
    }

    #[test]
    fn every_name_of_a_file_leads_to_the_same_lock() {
        let folder = tempfile::tempdir().unwrap();
        let [path, soft, hard] = ["launchway.db", "soft.db", "hard.db"].map(|name| folder.path().join(name));
        let lock = FileLock::acquire_or_create(&path, AT_ONCE).unwrap();
        symlink(&path, &soft).unwrap();
        fs::hard_link(&path, &hard).unwrap();
        for name in [&path, &soft, &hard] {
            let refused = FileLock::acquire(name, AT_ONCE).unwrap_err();
            assert!(matches!(&refused, FileLockError::InUse(path) if path == name), "{refused}");
        }
        drop(lock);
        assert!(FileLock::acquire(&soft, AT_ONCE).unwrap().is_some());
    }

    #[test]
    fn a_lock_that_is_released_in_time_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("launchway.db");
        let lock = FileLock::acquire_or_create(&path, AT_ONCE).unwrap();
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || FileLock::acquire(&path, Duration::from_secs(10)).is_ok()
        });
        drop(lock);
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn sqlite_writes_to_a_file_that_is_locked() {
        use diesel::{Connection as _, SqliteConnection, connection::SimpleConnection as _};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("launchway.db");
        let _lock = FileLock::acquire_or_create(&path, AT_ONCE).unwrap();
        let mut connection = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
        connection.batch_execute("PRAGMA journal_mode = WAL; CREATE TABLE t (x); DROP TABLE t;").unwrap();
    }
}
