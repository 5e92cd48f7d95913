//! The data directory: what an installation keeps beside its database.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

/// How long the lock is waited for. A process that the last server was about to start a program in,
/// when it was killed, has the lock until that program begins.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The folder that says that a backup was not restored to its end.
pub(crate) const UNFINISHED: &str = ".restoring";

/// A folder that only its owner may enter.
#[derive(Debug, Clone)]
pub struct DataDir(PathBuf);

/// Why the data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process uses it.
    #[error("another Launchway is running on the data directory `{}`: stop it, or use another directory", .0.display())]
    InUse(PathBuf),
    /// Somebody began to restore a backup here, and did not get to the end.
    #[error("a backup was not restored to its end in the data directory `{}`: remove everything in it, and restore again", .0.display())]
    Unfinished(PathBuf),
    /// A file in it cannot be read or written.
    #[error("cannot use `{}`", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Held as long as this process is the only one on the data directory.
#[derive(Debug)]
pub struct DataDirLock {
    _file: File,
}

impl DataDir {
    /// Uses `path`, and makes it if need be. Warns when others may enter one that was there.
    ///
    /// # Errors
    /// [`DataDirError::File`] when it cannot be made, [`DataDirError::Unfinished`] when it holds half a backup.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))?;
        warn_if_open_to_others(path, "700");
        if path.join(UNFINISHED).symlink_metadata().is_ok() {
            return Err(DataDirError::Unfinished(path.to_owned()));
        }
        Ok(Self(path.to_owned()))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the bytes that may still be written in its file system.
    ///
    /// # Errors
    /// [`DataDirError::File`] when the file system does not tell.
    pub fn free_bytes(&self) -> Result<u64, DataDirError> {
        crate::files::free_bytes(&self.0).map_err(at(&self.0))
    }

    /// Makes sure that no other server uses the directory.
    ///
    /// # Errors
    /// [`DataDirError::InUse`] when one does.
    pub fn lock(&self) -> Result<DataDirLock, DataDirError> {
        let path = self.0.join("launchway.lock");
        let options = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).to_owned();
        let file = options.open(&path).map_err(at(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(DataDirLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::InUse(self.0.clone())),
            Err(TryLockError::Error(source)) => Err(DataDirError::File { path, source }),
        }
    }

    /// The same, with a moment's patience for what a server that was killed left behind.
    ///
    /// # Errors
    /// [`DataDirError::InUse`] when another server uses the directory.
    pub fn lock_after_a_kill(&self) -> Result<DataDirLock, DataDirError> {
        let started = Instant::now();
        loop {
            match self.lock() {
                Err(DataDirError::InUse(_)) if started.elapsed() < LOCK_PATIENCE => {
                    sleep(Duration::from_millis(10));
                }
                lock => return lock,
            }
        }
    }

    /// The text of the private file `name`, which `make` writes if there is none.
    ///
    /// A file that is there is there whole: it is written beside its place, made durable and then
    /// put there. Of two processes that make it at the same time, both get the text of one. Warns
    /// when others may read one that was there.
    ///
    /// # Errors
    /// [`DataDirError::File`] when it cannot be read or written.
    pub fn private_file(&self, name: &str, make: impl FnOnce() -> String) -> Result<String, DataDirError> {
        let path = self.0.join(name);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => {
                warn_if_open_to_others(&path, "600");
                return read.map_err(at(&path));
            }
        }
        let beside = self.0.join(format!(".{name}.{}", std::process::id()));
        // A process that had our number may have died here. What it left is not written to, because
        // it may be a link to elsewhere, or be open to others.
        remove(&beside)?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).map_err(at(&beside))?;
        file.write_all(make().as_bytes()).and_then(|()| file.sync_all()).map_err(at(&beside))?;
        match fs::hard_link(&beside, &path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(at(&path)(error)),
            _ => fs::remove_file(&beside).map_err(at(&beside))?,
        }
        File::open(&self.0).and_then(|directory| directory.sync_all()).map_err(at(&self.0))?;
        fs::read_to_string(&path).map_err(at(&path))
    }

    /// Returns the text of the private file `name`, or `None` if there is no such file.
    ///
    /// # Errors
    /// [`DataDirError::File`] when it cannot be read.
    pub fn read_private_file(&self, name: &str) -> Result<Option<String>, DataDirError> {
        let path = self.0.join(name);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(at(&path)),
        }
    }

    /// Removes a private file that has served its purpose.
    ///
    /// # Errors
    /// [`DataDirError::File`] when it is there and stays there.
    pub fn remove_private_file(&self, name: &str) -> Result<(), DataDirError> {
        remove(&self.0.join(name))
    }
}

fn remove(path: &Path) -> Result<(), DataDirError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

/// Whether anybody but the owner may do anything with it.
fn is_open_to_others(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 != 0)
}

/// Somebody may have reasons for it, so that this is no error.
fn warn_if_open_to_others(path: &Path, private_mode: &str) {
    // What cannot be looked at cannot be used either, and whoever tries to says so.
    if is_open_to_others(path).is_ok_and(|open| open) {
        let path = path.display();
        tracing::warn!(%path, "others than its owner may use `{path}`, which holds secrets: run `chmod {private_mode} '{path}'`");
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> DataDirError {
    let path = path.to_owned();
    move |source| DataDirError::File { path, source }
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_private_file_is_made_once_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(&folder.path().join("deep/data")).unwrap();
        assert_eq!(data.private_file("secret.key", || "one".to_owned()).unwrap(), "one");
        assert_eq!(data.private_file("secret.key", || "two".to_owned()).unwrap(), "one");
        let path = folder.path().join("deep/data/secret.key");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_removed_file_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        data.private_file("token", || "one".to_owned()).unwrap();
        data.remove_private_file("token").unwrap();
        data.remove_private_file("token").unwrap();
        assert_eq!(data.private_file("token", || "two".to_owned()).unwrap(), "two");
    }

    #[test]
    fn what_a_dead_process_left_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let leftover = |name| folder.path().join(format!(".{name}.{}", std::process::id()));
        fs::write(leftover("one"), "a longer text, cut in the mid").unwrap();
        fs::set_permissions(leftover("one"), Permissions::from_mode(0o666)).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, "untouched").unwrap();
        symlink(&elsewhere, leftover("two")).unwrap();
        for name in ["one", "two"] {
            assert_eq!(data.private_file(name, || "secret".to_owned()).unwrap(), "secret");
            assert!(!is_open_to_others(&folder.path().join(name)).unwrap());
            assert!(!leftover(name).exists());
        }
        assert_eq!(fs::read_to_string(elsewhere).unwrap(), "untouched");
    }

    #[test]
    fn what_others_may_use_in_any_way_is_open_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret.key");
        fs::write(&file, "secret").unwrap();
        for (path, mode, is_open) in [
            (file.as_path(), 0o600, false),
            (&file, 0o400, false),
            (&file, 0o640, true),
            (&file, 0o604, true),
            (&file, 0o620, true),
            (folder.path(), 0o700, false),
            (folder.path(), 0o750, true),
            (folder.path(), 0o701, true),
        ] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_open_to_others(path).unwrap(), is_open, "{mode:o}");
        }
        assert!(is_open_to_others(&folder.path().join("missing")).is_err());
    }

    #[test]
    fn one_server_at_a_time_has_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let lock = data.lock().unwrap();
        assert!(matches!(data.lock(), Err(DataDirError::InUse(_))));
        drop(lock);
        assert!(data.lock().is_ok());
    }

    #[test]
    fn a_lock_that_is_about_to_be_given_back_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let lock = data.lock().unwrap();
        let waiting = std::thread::spawn({
            let data = data.clone();
            move || data.lock_after_a_kill().is_ok()
        });
        drop(lock);
        assert!(waiting.join().unwrap());
        let _lock = data.lock().unwrap();
        assert!(matches!(data.lock_after_a_kill(), Err(DataDirError::InUse(_))));
    }
}
