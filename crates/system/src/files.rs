//! Blocking work on files and folders, off the threads that serve requests.

mod removal;

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::sleep,
    time::Duration,
};

use launchway_domain::deployments::StepError;

const MOST_TRIES: u32 = 5;
const MOMENT: Duration = Duration::from_millis(5);

/// Runs `work` on a blocking thread.
pub async fn off_thread<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, StepError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| fault(what, &error)),
        Err(error) => Err(fault(what, &io::Error::other(error))),
    }
}

/// Cancels work on files whose caller has gone: the work checks the flag from time to time.
#[derive(Debug, Default)]
pub struct Unwanted(Arc<AtomicBool>);

impl Unwanted {
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Unwanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the error for a failure of this machine's file system.
pub fn fault(what: &str, error: &io::Error) -> StepError {
    StepError::Retryable(format!("cannot {what}: {error}"))
}

/// Creates a folder that only its owner may enter, with its parents.
pub fn make_private_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a folder that only its owner may enter. Fails if it exists.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Creates a file that only its owner may read. Fails if it exists.
pub fn write_private_file(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// Returns the free bytes of the file system of `path` for this process.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Returns the size in bytes of the file system of `path`.
pub fn total_bytes(path: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_blocks.saturating_mul(found.f_frsize))
}

/// Returns the entries of a folder.
pub fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// Removes a file, or a folder with everything in it. A missing one is no error.
pub fn remove(path: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        tries += 1;
        let removed = match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => removal::remove_folder(path),
            Ok(_) => fs::remove_file(path),
            Err(error) => Err(error),
        };
        match removed.as_ref().map_err(io::Error::kind) {
            Ok(()) | Err(io::ErrorKind::NotFound) => return Ok(()),
            // A program that has just been killed may still be about to write a file.
            Err(io::ErrorKind::DirectoryNotEmpty) if tries < MOST_TRIES => sleep(MOMENT),
            Err(_) => return removed,
        }
    }
}
