//! The published folder, opened so that no path leads outside of it.
//!
//! **Invariant:** every file of a site is opened beneath its folder: the kernel resolves the path
//! (`openat2`), or no link is followed.

use std::{
    fs::{File, Metadata},
    io,
    os::fd::OwnedFd,
    path::{Component, Path},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, fstat, open, openat, openat2},
    io::Errno,
};

/// `O_NONBLOCK`, so that opening a FIFO does not wait for its other end.
const TO_READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const TO_PASS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// No path and no link leads out of the folder.
const INSIDE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// The number of attempts to resolve a path that is being changed concurrently.
const MOST_TRIES: u32 = 8;

/// The way to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Only what the kernel has in memory, without waiting for a disk.
    Cached,
    /// Waits for the disk.
    Disk,
}

/// The reason why a file cannot be opened.
#[derive(Debug)]
pub(super) enum OpenError {
    /// The file, or a name on the way to it, may not be in memory.
    Uncached,
    /// The file does not exist, or is not served.
    Missing,
    /// The folder of the site was removed.
    Gone,
    /// This process or this machine has too many files open.
    Busy(io::Error),
    /// The disk cannot be read.
    Fault(io::Error),
}

/// A file or a folder at a path.
pub(super) enum Entry {
    File(File, Metadata),
    Folder,
}

/// The folder of one release.
pub(super) struct Release {
    root: OwnedFd,
    access: Access,
}

impl Release {
    pub(super) fn open(folder: &Path, access: Access) -> Result<Self, OpenError> {
        let opened = match access {
            Access::Disk => open(folder, TO_PASS, Mode::empty()),
            Access::Cached => openat2(CWD, folder, TO_PASS, Mode::empty(), ResolveFlags::CACHED),
        };
        match opened {
            Ok(root) => Ok(Self { root, access }),
            Err(_) if access == Access::Cached => Err(OpenError::Uncached),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Err(OpenError::Gone),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the file or folder at `path` beneath this one. Links are followed as long as they stay inside:
    /// the publisher of the folder created them.
    pub(super) fn entry(&self, path: &Path) -> Result<Entry, OpenError> {
        let file = match self.access {
            Access::Disk => self.open_beneath(path).map_err(|error| self.reason(error))?,
            // Whatever is wrong is found out again with access to the disk.
            Access::Cached => self.open_cached(path).or(Err(OpenError::Uncached))?,
        };
        let file = File::from(file);
        let metadata = file.metadata().map_err(OpenError::Fault)?;
        if metadata.is_file() {
            Ok(Entry::File(file, metadata))
        } else if metadata.is_dir() {
            Ok(Entry::Folder)
        } else {
            Err(OpenError::Missing)
        }
    }

    /// Opens a regular file.
    pub(super) fn file(&self, path: &Path) -> Result<(File, Metadata), OpenError> {
        match self.entry(path)? {
            Entry::File(file, metadata) => Ok((file, metadata)),
            Entry::Folder => Err(OpenError::Missing),
        }
    }

    fn open_cached(&self, path: &Path) -> Result<OwnedFd, Errno> {
        openat2(&self.root, path, TO_READ, Mode::empty(), INSIDE.union(ResolveFlags::CACHED))
    }

    fn open_beneath(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let mut tries = 0;
        loop {
            tries += 1;
            match openat2(&self.root, path, TO_READ, Mode::empty(), INSIDE) {
                Err(Errno::AGAIN | Errno::INTR) if tries < MOST_TRIES => {}
                // Kernels before 5.6, and sandboxes without this system call.
                Err(Errno::NOSYS | Errno::PERM) => return self.walk(path),
                found => return found,
            }
        }
    }

    /// Opens a path segment by segment, without following links: for kernels that cannot confine links to
    /// the folder.
    fn walk(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let mut names = path.components().peekable();
        let mut folder = None;
        while let Some(Component::Normal(name)) = names.next() {
            let flags = if names.peek().is_some() { TO_PASS } else { TO_READ };
            let parent = folder.as_ref().unwrap_or(&self.root);
            let found = openat(parent, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
            if names.peek().is_none() {
                return Ok(found);
            }
            folder = Some(found);
        }
        Err(Errno::NOENT)
    }

    fn reason(&self, error: Errno) -> OpenError {
        match OpenError::from(error) {
            OpenError::Missing if self.is_removed() => OpenError::Gone,
            reason => reason,
        }
    }

    /// Returns whether the folder was removed after it was opened: it is empty then.
    fn is_removed(&self) -> bool {
        fstat(&self.root).is_ok_and(|status| status.st_nlink == 0)
    }
}

impl From<Errno> for OpenError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::NAMETOOLONG
            | Errno::ACCESS
            // A link to the outside, a loop of links, a socket or a device.
            | Errno::XDEV
            | Errno::LOOP
            | Errno::NXIO
            | Errno::NODEV => Self::Missing,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => Self::Busy(error.into()),
            _ => Self::Fault(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn steps_find_what_one_call_finds_but_follow_no_link() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/c.txt"), "c").unwrap();
        symlink("a", folder.path().join("link")).unwrap();
        symlink("a/b/c.txt", folder.path().join("link.txt")).unwrap();
        let release = Release::open(folder.path(), Access::Disk).unwrap();
        for (path, by_call, by_steps) in [
            ("a", true, true),
            ("a/b/c.txt", true, true),
            ("a/b/d.txt", false, false),
            ("a/b/c.txt/d", false, false),
            ("link/b/c.txt", true, false),
            ("link.txt", true, false),
            ("../a", false, false),
            ("a/../a", true, false),
            ("/etc/passwd", false, false),
        ] {
            let path = Path::new(path);
            assert_eq!(release.open_beneath(path).is_ok(), by_call, "{}", path.display());
            assert_eq!(release.walk(path).is_ok(), by_steps, "{}", path.display());
        }
    }

    #[test]
    fn a_cached_file_is_opened_without_the_disk_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.txt"), "a").unwrap();
        symlink("/etc/passwd", folder.path().join("out")).unwrap();
        let release = Release::open(folder.path(), Access::Cached).unwrap();
        assert!(matches!(release.entry(Path::new("a.txt")), Ok(Entry::File(..))));
        for path in ["b.txt", "out", "../a.txt", "/etc/passwd"] {
            assert!(matches!(release.entry(Path::new(path)), Err(OpenError::Uncached)), "{path}");
        }
    }

    #[test]
    fn a_folder_that_was_removed_is_gone_and_has_nothing_missing() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("release");
        fs::create_dir(&folder).unwrap();
        let release = Release::open(&folder, Access::Disk).unwrap();
        assert!(matches!(release.file(Path::new("a")), Err(OpenError::Missing)));
        fs::remove_dir(&folder).unwrap();
        assert!(matches!(release.file(Path::new("a")), Err(OpenError::Gone)));
        assert!(matches!(Release::open(&folder, Access::Disk), Err(OpenError::Gone)));
    }
}
