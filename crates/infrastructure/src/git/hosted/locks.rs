//! The locks of references that a killed git leaves. Git itself never removes them, and refuses to move such a reference.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use launchway_system::files;

/// The longest time for which a living git holds the lock of a reference.
const HELD: Duration = Duration::from_secs(2);

/// A lock, and the time at which git took it.
type Lock = (PathBuf, SystemTime);

/// Removes the locks that are older than `age`, the time limit of git.
pub(super) fn remove_older(repository: &Path, age: Duration) -> io::Result<()> {
    let is_old = |(_, taken): &Lock| taken.elapsed().is_ok_and(|since| since > age);
    locks(repository)?.into_iter().filter(is_old).try_for_each(|(path, _)| files::remove(&path))
}

/// Removes the locks of an earlier run. Blocks for as long as another server may hold one, if there are any.
pub(super) fn remove_left(repository: &Path) -> io::Result<()> {
    let left = locks(repository)?;
    if left.is_empty() {
        return Ok(());
    }
    thread::sleep(HELD);
    let still = locks(repository)?;
    let is_left = |lock: &Lock| left.contains(lock);
    still.into_iter().filter(is_left).try_for_each(|(path, _)| files::remove(&path))
}

fn locks(repository: &Path) -> io::Result<Vec<Lock>> {
    let mut found = Vec::new();
    let mut folders = vec![repository.join("refs")];
    let mut paths = vec![repository.join("HEAD.lock"), repository.join("packed-refs.lock")];
    while let Some(folder) = folders.pop() {
        let entries = match files::entries(&folder) {
            // Git removes empty folders.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for path in entries {
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "lock") {
                paths.push(path);
            }
        }
    }
    for path in paths {
        match fs::symlink_metadata(&path).and_then(|metadata| metadata.modified()) {
            Ok(taken) => found.push((path, taken)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
