//! A folder, opened so that nothing outside of it can be reached.

use std::{fs::File, os::fd::OwnedFd, path::Path};

use launchway_domain::deployments::StepError;
use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, open, openat, openat2, renameat, statat,
        unlinkat,
    },
    io::Errno,
};

/// `O_NONBLOCK`, so that opening a pipe does not wait for its other end.
const TO_READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const FOLDER: OFlags = TO_READ.union(OFlags::DIRECTORY);

/// The number of lookups of a path that is moved meanwhile.
const MOST_TRIES: u32 = 8;

/// The folder. Paths in it have no `..` and do not begin with `/`; no link in it is followed.
#[derive(Debug)]
pub(super) struct Root(OwnedFd);

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self, Errno> {
        open(path, FOLDER, Mode::empty()).map(Self)
    }

    /// Returns the folder that contains `path`, and its name there.
    pub(super) fn parent<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str), Errno> {
        let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
        Ok((self.opened(folder, FOLDER)?, name))
    }

    /// Opens a file or a folder.
    pub(super) fn entry(&self, path: &str) -> Result<File, Errno> {
        self.opened(path, TO_READ).map(File::from)
    }

    /// Returns the type of the entry at `path`, which may be a link.
    pub(super) fn kind(&self, path: &str) -> Result<Option<FileType>, Errno> {
        let found =
            self.parent(path).and_then(|(folder, name)| statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW));
        match found {
            Ok(status) => Ok(Some(FileType::from_raw_mode(status.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the folders on the way to `path`, itself included, that do not exist.
    pub(super) fn missing(&self, path: &str) -> Result<Vec<String>, Errno> {
        let mut missing = Vec::new();
        for folder in path_prefixes(path) {
            if !missing.is_empty() || self.kind(folder)?.is_none() {
                missing.push(folder.to_owned());
            }
        }
        Ok(missing)
    }

    /// Creates a folder and its missing parents.
    pub(super) fn make_folders(&self, path: &str) -> Result<(), Errno> {
        for folder in path_prefixes(path) {
            let (parent, name) = self.parent(folder)?;
            match mkdirat(&parent, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        self.opened(path, FOLDER).map(drop)
    }

    /// Removes an empty folder.
    pub(super) fn remove_empty(&self, path: &str) -> Result<(), Errno> {
        let (parent, name) = self.parent(path)?;
        unlinkat(&parent, name, AtFlags::REMOVEDIR)
    }

    /// Moves the entry at `path`, whatever it is, to a path outside.
    pub(super) fn take_out(&self, path: &str, place: &Path) -> Result<(), Errno> {
        let (parent, name) = self.parent(path)?;
        renameat(&parent, name, CWD, place)
    }

    /// Moves an entry from outside to `path`.
    pub(super) fn put_in(&self, place: &Path, path: &str) -> Result<(), Errno> {
        let (parent, name) = self.parent(path)?;
        renameat(CWD, place, &parent, name)
    }

    /// Renames an entry within the folder.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        let ((old, from), (new, to)) = (self.parent(from)?, self.parent(to)?);
        renameat(&old, from, &new, to)
    }

    fn opened(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            tries += 1;
            match openat2(&self.0, path, flags, Mode::empty(), inside) {
                Err(Errno::AGAIN | Errno::INTR) if tries < MOST_TRIES => {}
                // Kernels before 5.6, and sandboxes that do not know the call.
                Err(Errno::NOSYS | Errno::PERM) => return self.walk(path, flags),
                found => return found,
            }
        }
    }

    /// Opens `path` one component at a time.
    fn walk(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut names = path.split('/').peekable();
        let mut folder = openat(&self.0, ".", FOLDER, Mode::empty())?;
        while let Some(name) = names.next() {
            if name == ".." {
                return Err(Errno::XDEV);
            }
            let flags = if names.peek().is_some() { FOLDER } else { flags };
            folder = openat(&folder, name, flags, Mode::empty())?;
        }
        Ok(folder)
    }
}

/// Returns `a`, `a/b` and `a/b/c` for `a/b/c`.
fn path_prefixes(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    ends.filter_map(|end| path.get(..end))
}

/// Converts an error: problems with the path are for the user, all others are faults of this machine.
pub(super) fn step_error(path: &str, error: Errno) -> StepError {
    match error {
        Errno::NOENT => StepError::Rejected(format!("there is no `{path}` in the workspace")),
        Errno::LOOP | Errno::XDEV => {
            StepError::Rejected(format!("`{path}` is a link or below one: steps do not follow links"))
        }
        Errno::NOTDIR => StepError::Rejected(format!("`{path}` is below a path that is not a folder")),
        Errno::NAMETOOLONG => StepError::Rejected(format!("`{path}` has a name that is too long")),
        error => StepError::failed(format!("cannot use `{path}` of the workspace"), error),
    }
}
