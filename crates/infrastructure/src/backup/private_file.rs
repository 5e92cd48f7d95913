//! Files that are written atomically and that only their owner may read.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use super::{BackupError, at};

/// A temporary file beside its final path. It is removed on drop unless it is [kept](Self::keep).
#[derive(Debug)]
pub struct PrivateFile {
    file: File,
    beside: PathBuf,
    place: PathBuf,
    may_replace: bool,
    is_kept: bool,
}

impl PrivateFile {
    /// Creates a temporary file for the path `place`.
    ///
    /// # Errors
    /// [`BackupError::Refused`] if a file exists at `place` and must not be replaced, [`BackupError::File`]
    /// if the folder is not writable.
    pub fn beside(place: &Path, may_replace: bool) -> Result<Self, BackupError> {
        refuse_to_replace(place, may_replace)?;
        let name = place.file_name().ok_or_else(|| {
            BackupError::Refused(format!("`{}` is not the name of a file", place.display()))
        })?;
        let name = format!(".{}.{}.part", name.to_string_lossy(), std::process::id());
        let beside = place.with_file_name(name);
        // A process with the same id may have died here. The old file is not written to, because it may be
        // a link.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&beside)(error)),
            _ => {}
        }
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
        let file = made.map_err(at(place))?;
        Ok(Self { file, beside, place: place.to_owned(), may_replace, is_kept: false })
    }

    /// Returns the file to write to.
    pub fn writer(&mut self) -> &mut File {
        &mut self.file
    }

    /// Syncs the file and renames it to its final path.
    ///
    /// # Errors
    /// [`BackupError::File`] if that fails; then nothing is left.
    pub fn keep(mut self) -> Result<(), BackupError> {
        self.file.sync_all().map_err(at(&self.place))?;
        refuse_to_replace(&self.place, self.may_replace)?;
        fs::rename(&self.beside, &self.place).map_err(at(&self.place))?;
        self.is_kept = true;
        sync_folder_of(&self.place)
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // The error that caused this was reported already; a failed removal changes nothing about it.
            let _left = fs::remove_file(&self.beside);
        }
    }
}

/// Writes `text` to `place` atomically.
///
/// # Errors
/// As of [`PrivateFile`].
pub fn replace_private_file(place: &Path, text: &str, may_replace: bool) -> Result<(), BackupError> {
    let mut file = PrivateFile::beside(place, may_replace)?;
    file.writer().write_all(text.as_bytes()).map_err(at(place))?;
    file.keep()
}

/// Syncs the folder that contains `path`.
pub(super) fn sync_folder_of(path: &Path) -> Result<(), BackupError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(at(folder))
}

fn refuse_to_replace(place: &Path, may_replace: bool) -> Result<(), BackupError> {
    match fs::symlink_metadata(place) {
        Ok(_) if !may_replace => Err(BackupError::Refused(format!(
            "`{}` already exists: choose another file, or use --force",
            place.display()
        ))),
        Ok(found) if found.is_dir() => {
            Err(BackupError::Refused(format!("`{}` is a directory: specify a file", place.display())))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_kept_file_is_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("key");
        replace_private_file(&place, "one", false).unwrap();
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
        let refused = replace_private_file(&place, "two", false).unwrap_err();
        assert!(refused.to_string().contains("--force"), "{refused}");
        assert_eq!(fs::read_to_string(&place).unwrap(), "one");
        replace_private_file(&place, "two", true).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn nothing_is_left_of_a_file_that_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = PrivateFile::beside(&folder.path().join("backup"), false).unwrap();
        file.writer().write_all(b"half of it").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(PrivateFile::beside(folder.path(), true).is_err());
    }
}
