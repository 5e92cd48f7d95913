//! The data directory: the files that an installation keeps beside its database.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

/// The timeout of waiting for the lock. A child process that the previous server forked just before it was
/// killed holds the lock until it executes its program.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// The folder that marks an unfinished restore.
pub(crate) const UNFINISHED: &str = ".restoring";

/// The mode of a data directory that the group may pass through.
const PASSABLE: u32 = 0o710;

/// A directory that only its owner may enter.
#[derive(Debug, Clone)]
pub struct DataDir(PathBuf);

/// An error of using the data directory.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process uses the directory.
    #[error("another Launchway is running on the data directory `{}`: stop it, or use another directory", .0.display())]
    InUse(PathBuf),
    /// A restore of a backup into the directory did not finish.
    #[error("a backup was not restored to its end in the data directory `{}`: remove everything in it, and restore again", .0.display())]
    Unfinished(PathBuf),
    /// A file of the directory cannot be read or written.
    #[error("cannot use `{}`", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The lock on the data directory, held until it is dropped.
#[derive(Debug)]
pub struct DataDirLock {
    _file: File,
}

impl DataDir {
    /// Opens `path`, and creates it if it does not exist. Warns if others may enter an existing directory.
    ///
    /// # Errors
    /// [`DataDirError::File`] if it cannot be created, [`DataDirError::Unfinished`] if a restore did not
    /// finish.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))?;
        warn_if_open_to_others(path, "700");
        if path.join(UNFINISHED).symlink_metadata().is_ok() {
            return Err(DataDirError::Unfinished(path.to_owned()));
        }
        Ok(Self(path.to_owned()))
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Lets the group of the directory pass through it, to what is shared with the group by its own mode, without
    /// seeing what is there. Everything else in it is closed to the group and to others first; a file of another user
    /// stays as it is, with a warning.
    ///
    /// # Errors
    /// [`DataDirError::File`] when a mode cannot be changed.
    pub fn allow_group_traversal(&self, shared: &[&str]) -> Result<(), DataDirError> {
        for entry in fs::read_dir(&self.0).map_err(at(&self.0))? {
            let path = entry.map_err(at(&self.0))?.path();
            let is_shared = path.file_name().is_some_and(|name| shared.iter().any(|shared| name == *shared));
            if !is_shared {
                close(&path)?;
            }
        }
        let mode = fs::metadata(&self.0).map_err(at(&self.0))?.permissions().mode() & 0o7777;
        match mode {
            PASSABLE => Ok(()),
            _ => fs::set_permissions(&self.0, Permissions::from_mode(PASSABLE)).map_err(at(&self.0)),
        }
    }

    /// Returns the free bytes of its file system.
    ///
    /// # Errors
    /// [`DataDirError::File`] if the file system does not report them.
    pub fn free_bytes(&self) -> Result<u64, DataDirError> {
        launchway_system::files::free_bytes(&self.0).map_err(at(&self.0))
    }

    /// Returns the size in bytes of its file system.
    ///
    /// # Errors
    /// [`DataDirError::File`] if the file system does not report it.
    pub fn total_bytes(&self) -> Result<u64, DataDirError> {
        launchway_system::files::total_bytes(&self.0).map_err(at(&self.0))
    }

    /// Locks the directory, so that no other server uses it.
    ///
    /// # Errors
    /// [`DataDirError::InUse`] if another process has the lock.
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

    /// Locks the directory, and waits up to [`LOCK_TIMEOUT`] for the child processes of a killed server.
    ///
    /// # Errors
    /// [`DataDirError::InUse`] when another server uses the directory.
    pub fn lock_after_a_kill(&self) -> Result<DataDirLock, DataDirError> {
        let started = Instant::now();
        loop {
            match self.lock() {
                Err(DataDirError::InUse(_)) if started.elapsed() < LOCK_TIMEOUT => {
                    sleep(Duration::from_millis(10));
                }
                lock => return lock,
            }
        }
    }

    /// Returns the text of the private file `name`, which is created with the text of `make` if it does not
    /// exist.
    ///
    /// A file is created atomically: it is written to a temporary path, synced and renamed. If two
    /// processes create it at the same time, both get the same text. Warns if others may read an existing
    /// file.
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
        // A process with the same id may have died here. The old file is not written to, because it may be
        // a link or be open to others.
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

    /// Removes a private file, if it exists.
    ///
    /// # Errors
    /// [`DataDirError::File`] if it exists and cannot be removed.
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

/// Takes every right from the group and from others. A file that has gone meanwhile needs none of this.
fn close(path: &Path) -> Result<(), DataDirError> {
    let mode = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(at(path))?,
    };
    if mode.is_symlink() || mode.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    match fs::set_permissions(path, Permissions::from_mode(mode.permissions().mode() & 0o700)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let path = path.display();
            tracing::warn!(%path, "file of another user is open to the group of the front proxy or to others");
            Ok(())
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

/// Returns whether others than the owner have any permission on it. The group may pass through a folder: that shows
/// nothing of it, and each file has a mode of its own.
fn is_open_to_others(path: &Path) -> io::Result<bool> {
    let found = fs::metadata(path)?;
    let mask = if found.is_dir() { 0o067 } else { 0o077 };
    Ok(found.permissions().mode() & mask != 0)
}

/// Only a warning, because the administrator may have set these permissions deliberately.
fn warn_if_open_to_others(path: &Path, private_mode: &str) {
    // A path that cannot be inspected cannot be used either, and its use reports the error.
    if is_open_to_others(path).is_ok_and(|open| open) {
        let path = path.display();
        let hint = format!("chmod {private_mode} '{path}'");
        tracing::warn!(%path, hint, "path with secrets is accessible to other users");
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> DataDirError {
    let path = path.to_owned();
    move |source| DataDirError::File { path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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
            (folder.path(), 0o710, false),
            (&file, 0o610, true),
        ] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_open_to_others(path).unwrap(), is_open, "{mode:o}");
        }
        assert!(is_open_to_others(&folder.path().join("missing")).is_err());
    }

    #[test]
    fn the_group_passes_to_what_is_shared_and_to_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let path = |name: &str| folder.path().join(name);
        let set = |name: &str, mode| fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
        for name in ["secret.key", "launchway.db"] {
            fs::write(path(name), "secret").unwrap();
            set(name, 0o644);
        }
        for name in ["sites", "work"] {
            fs::create_dir(path(name)).unwrap();
            set(name, 0o750);
        }
        symlink("/nowhere", path("link")).unwrap();
        // A second time changes nothing.
        for _ in 0..2 {
            data.allow_group_traversal(&["sites"]).unwrap();
            let mode = |name: &str| fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
            let modes = ["", "secret.key", "launchway.db", "sites", "work"].map(mode);
            assert_eq!(modes, [0o710, 0o600, 0o600, 0o750, 0o700]);
        }
        assert!(!is_open_to_others(folder.path()).unwrap());
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
