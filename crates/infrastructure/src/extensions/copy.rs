//! Copies files of a workspace, within limits.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read as _},
    os::{
        fd::AsFd as _,
        unix::{
            ffi::OsStrExt as _,
            fs::{OpenOptionsExt as _, PermissionsExt as _, symlink},
        },
    },
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use launchway_domain::deployments::StepError;
use launchway_system::files::{fault, make_private_folder, remove, write_private_file};
use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, readlinkat, statat},
    io::Errno,
};

use super::beneath::step_error;

/// The bytes that are copied between two checks for cancellation.
const PIECE: u64 = 1024 * 1024;
/// The deepest nesting of folders.
const DEEPEST: usize = 100;

/// The limits of copying.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { bytes: 1024 * 1024 * 1024, files: 100_000 }
    }
}

impl Bounds {
    /// Returns the remaining limits of a run, as recorded at `place`: copies of copies grow fast.
    pub(super) fn left(place: &Path) -> io::Result<Self> {
        let text = match fs::read_to_string(place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            text => text?,
        };
        let mut numbers = text.split(' ').map(str::parse::<u64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(bytes)), Some(Ok(files))) => Ok(Self { bytes, files }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    pub(super) fn note(self, place: &Path) -> io::Result<()> {
        remove(place)?;
        write_private_file(place, &format!("{} {}", self.bytes, self.files))
    }
}

/// A copy in progress.
pub(super) struct Copying<'a> {
    pub(super) left: Bounds,
    pub(super) is_unwanted: &'a AtomicBool,
}

impl Copying<'_> {
    /// Copies an open file or folder to `target`, which does not exist yet. Symbolic links are copied as
    /// links and never followed.
    pub(super) fn copy(&mut self, source: File, target: &Path, depth: usize) -> Result<(), StepError> {
        let broken = |error: io::Error| fault("copy a file", &error);
        if self.is_unwanted.load(Ordering::Relaxed) {
            return Err(broken(io::ErrorKind::Interrupted.into()));
        }
        self.left.files = self.left.files.checked_sub(1).ok_or_else(too_much)?;
        let metadata = source.metadata().map_err(broken)?;
        let mode = metadata.permissions().mode();
        if metadata.is_file() {
            let options =
                File::options().write(true).create_new(true).mode(0o600 | (mode & 0o777)).to_owned();
            let mut copy = options.open(target).map_err(broken)?;
            return self.copy_bytes(source, &mut copy);
        }
        if !metadata.is_dir() {
            return Err(StepError::Rejected("only files, folders and links are copied".to_owned()));
        }
        if depth >= DEEPEST {
            return Err(StepError::Rejected(format!("folders deeper than {DEEPEST} are not copied")));
        }
        make_private_folder(target).map_err(broken)?;
        self.copy_entries(&source, target, depth)?;
        fs::set_permissions(target, fs::Permissions::from_mode(0o700 | (mode & 0o777))).map_err(broken)
    }

    fn copy_entries(&mut self, source: &File, target: &Path, depth: usize) -> Result<(), StepError> {
        let gone = |error: Errno| step_error("what is copied", error);
        for entry in Dir::read_from(source).map_err(gone)? {
            let entry = entry.map_err(gone)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let place = target.join(OsStr::from_bytes(name.to_bytes()));
            let status = statat(source.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).map_err(gone)?;
            if FileType::from_raw_mode(status.st_mode) == FileType::Symlink {
                self.left.files = self.left.files.checked_sub(1).ok_or_else(too_much)?;
                let leads = readlinkat(source.as_fd(), name, Vec::new()).map_err(gone)?;
                symlink(OsStr::from_bytes(leads.to_bytes()), &place)
                    .map_err(|error| fault("copy a link", &error))?;
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = openat(source.as_fd(), name, flags, Mode::empty()).map_err(gone)?;
            self.copy(File::from(opened), &place, depth + 1)?;
        }
        Ok(())
    }

    fn copy_bytes(&mut self, mut source: File, copy: &mut File) -> Result<(), StepError> {
        let broken = |error: io::Error| fault("copy a file", &error);
        loop {
            if self.is_unwanted.load(Ordering::Relaxed) {
                return Err(broken(io::ErrorKind::Interrupted.into()));
            }
            let copied = io::copy(&mut source.by_ref().take(PIECE), copy).map_err(broken)?;
            self.left.bytes = match self.left.bytes.checked_sub(copied) {
                Some(left) => left,
                None => {
                    self.left.bytes = 0;
                    return Err(too_much());
                }
            };
            if copied == 0 {
                return Ok(());
            }
        }
    }
}

fn too_much() -> StepError {
    let Bounds { bytes, files } = Bounds::default();
    StepError::Rejected(format!(
        "the steps of a run copy at most {files} files of {} MiB together",
        bytes / 1024 / 1024
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_copied_than_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        fs::create_dir(&source).unwrap();
        for name in ["a", "b"] {
            fs::write(source.join(name), "12345").unwrap();
        }
        let mut number = 0;
        let mut copied = |bytes, files, is_unwanted: bool| {
            number += 1;
            let target = folder.path().join(format!("target-{number}"));
            let is_unwanted = AtomicBool::new(is_unwanted);
            let mut copying = Copying { left: Bounds { bytes, files }, is_unwanted: &is_unwanted };
            copying.copy(File::open(&source).unwrap(), &target, 0)
        };
        assert_eq!(copied(10, 3, false), Ok(()));
        for (bytes, files) in [(9, 3), (10, 2)] {
            assert!(matches!(copied(bytes, files, false), Err(StepError::Rejected(_))), "{bytes} {files}");
        }
        assert!(matches!(copied(10, 3, true), Err(StepError::Retryable(_))));
    }
}
