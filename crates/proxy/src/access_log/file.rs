//! A log file that is rotated by size.
//!
//! Two processes may append to it during a handover: each write is one call with whole lines at the
//! end of the file, and only the process that holds the lock of the file at the path rotates it.

use std::{
    ffi::OsString,
    fs::{self, File, Permissions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use super::Lines;

/// The size at which a file is rotated.
pub(super) const MOST_BYTES: u64 = 32 * 1024 * 1024;

/// The number of rotated files that are kept.
const MOST_ASIDE: u32 = 2;

const PRIVATE: u32 = 0o600;

/// The current file.
#[derive(Debug)]
pub(super) struct RotatedFile {
    path: PathBuf,
    most_bytes: u64,
    file: File,
    /// The last line is incomplete, because the disk was full or the machine lost power.
    is_torn: bool,
}

impl RotatedFile {
    pub(super) fn open(path: &Path, most_bytes: u64) -> io::Result<Self> {
        let file = open(path)?;
        let is_torn = is_torn(&file)?;
        Ok(Self { path: path.to_owned(), most_bytes, file, is_torn })
    }

    /// Reopens the path if it is another file by now, because another process or an operator rotated ours.
    fn follow(&mut self) -> io::Result<()> {
        if is_at(&self.file, &self.path)? { Ok(()) } else { self.reopen() }
    }

    fn reopen(&mut self) -> io::Result<()> {
        *self = Self::open(&self.path, self.most_bytes)?;
        Ok(())
    }

    fn put_aside_if_full(&mut self) -> io::Result<()> {
        if self.file.metadata()?.len() < self.most_bytes {
            return Ok(());
        }
        match self.file.try_lock() {
            Ok(()) => {}
            // The other process is rotating; there is no need to wait for it.
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The other process may have rotated it just before.
        if is_at(&self.file, &self.path)? {
            for number in (1..MOST_ASIDE).rev() {
                rename_if_there(&self.aside(number), &self.aside(number + 1))?;
            }
            rename_if_there(&self.path, &self.aside(1))?;
        }
        // Closes the old file, which releases its lock.
        self.reopen()
    }

    fn aside(&self, number: u32) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(format!(".{number}"));
        name.into()
    }
}

impl Lines for RotatedFile {
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.follow()?;
        if self.is_torn {
            self.file.write_all(b"\n")?;
            self.is_torn = false;
        }
        if let Err(error) = self.file.write_all(lines) {
            self.is_torn = is_torn(&self.file).unwrap_or(true);
            return Err(error);
        }
        // The lines are written; a failed rotation does not affect them.
        if let Err(error) = self.put_aside_if_full() {
            tracing::warn!(%error, "access log rotation failed");
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    // Does not follow a link, and does not block on a FIFO.
    let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();
    let file =
        File::options().read(true).append(true).create(true).mode(PRIVATE).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the access log is not a file"));
    }
    file.set_permissions(Permissions::from_mode(PRIVATE))?;
    Ok(file)
}

fn is_torn(mut file: &File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}
