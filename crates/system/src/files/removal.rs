//! Removes folders, however deep they are.
//!
//! Folders can be nested far deeper than a path can express. A recursive removal would overflow the stack
//! of a thread, which ends the process.

use std::{io, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, RenameFlags, open, openat, renameat_with, unlinkat},
    io::Errno,
};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The deepest recursion.
const DEEPEST: usize = 64;

/// Removes a folder with everything in it. No link is followed.
pub(super) fn remove_folder(path: &Path) -> io::Result<()> {
    let top = open(path, FOLDER, Mode::empty())?;
    let mut removal = Removal { top: &top, raised: 0 };
    loop {
        let before = removal.raised;
        removal.empty(&top, 0)?;
        if removal.raised == before {
            break;
        }
    }
    std::fs::remove_dir(path)
}

/// The removal of a folder.
struct Removal<'a> {
    top: &'a OwnedFd,
    /// The number of folders that were moved up because they were too deep.
    raised: u64,
}

impl Removal<'_> {
    /// Removes the contents of `folder`; entries that are too deep are moved to the topmost folder.
    fn empty(&mut self, folder: &OwnedFd, depth: usize) -> io::Result<()> {
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            match unlinkat(folder, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                // A folder: the error of Linux, and that of POSIX.
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
            if depth == DEEPEST {
                self.raise(folder, name)?;
                continue;
            }
            self.empty(&openat(folder, name, FOLDER, Mode::empty())?, depth + 1)?;
            unlinkat(folder, name, AtFlags::REMOVEDIR)?;
        }
        Ok(())
    }

    fn raise(&mut self, folder: &OwnedFd, name: &std::ffi::CStr) -> io::Result<()> {
        loop {
            self.raised += 1;
            let free = format!("raised-{}", self.raised);
            match renameat_with(folder, name, self.top, free.as_str(), RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                raised => return Ok(raised?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_folder_goes_with_everything_in_it_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (gone, other) = (folder.path().join("gone"), folder.path().join("other"));
        fs::create_dir_all(gone.join("a/b")).unwrap();
        fs::create_dir_all(gone.join("raised-1/b")).unwrap();
        fs::create_dir(&other).unwrap();
        for file in [gone.join("a/b/c"), gone.join("d"), other.join("kept")] {
            fs::write(file, "").unwrap();
        }
        symlink(&other, gone.join("a/link")).unwrap();
        remove_folder(&gone).unwrap();
        assert!(!gone.exists() && other.join("kept").exists());
        assert_eq!(remove_folder(&gone).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_folder_goes_that_is_deeper_than_a_stack() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, outer) = (folder.path().join("inner"), folder.path().join("outer"));
        fs::create_dir(&inner).unwrap();
        // So many that each leaves something at the top, and some have names that are taken there.
        for _ in 0..80 {
            let deep = outer.join("a/".repeat(500));
            fs::create_dir_all(&deep).unwrap();
            fs::write(deep.join("file"), "").unwrap();
            fs::rename(&inner, deep.join("raised-1")).unwrap();
            fs::rename(&outer, &inner).unwrap();
        }
        remove_folder(&inner).unwrap();
        assert!(!inner.exists());
    }
}
