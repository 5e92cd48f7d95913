//! Settings that are paths.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

/// Parses the path of a directory that is created if needed.
pub(super) fn data_dir(raw: &str) -> Result<PathBuf, String> {
    match fs::metadata(raw) {
        Ok(found) if !found.is_dir() => Err("a folder; this is a file".to_owned()),
        // A directory that cannot be inspected is reported when it is used.
        _ => Ok(PathBuf::from(raw)),
    }
}

/// Parses the path of a folder that two processes have to find.
pub(super) fn absolute_folder(raw: &str) -> Result<PathBuf, String> {
    match Path::new(raw) {
        path if path.is_absolute() => data_dir(raw),
        _ => Err("an absolute path, such as /var/lib/launchway-proxy".to_owned()),
    }
}

/// Parses the path of a file that has to exist.
pub(super) fn existing_file(raw: &str) -> Result<PathBuf, String> {
    let path = Path::new(raw);
    let found = File::open(path).and_then(|file| file.metadata()).map_err(|error| reason("file", &error))?;
    if found.is_dir() { Err("a file; this is a folder".to_owned()) } else { Ok(path.to_owned()) }
}

/// Parses the path of a directory that has to exist.
pub(super) fn existing_folder(raw: &str) -> Result<PathBuf, String> {
    let path = Path::new(raw);
    fs::read_dir(path).map(|_entries| path.to_owned()).map_err(|error| reason("folder", &error))
}

fn reason(kind: &str, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!("a {kind} that exists; there is none at this path"),
        ErrorKind::NotADirectory if kind == "folder" => "a folder; this is a file".to_owned(),
        _ => format!("a {kind} that can be read: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_have_to_be_there_and_of_their_kind() {
        let folder = tempfile::tempdir().unwrap();
        let [file, missing] = ["known_hosts", "none"].map(|name| folder.path().join(name));
        fs::write(&file, "").unwrap();
        let [file, missing, folder] = [&file, &missing, folder.path()].map(|path| path.to_str().unwrap());
        assert_eq!(existing_file(file), Ok(file.into()));
        assert!(existing_file(missing).unwrap_err().contains("there is none"));
        assert!(existing_file(folder).unwrap_err().contains("this is a folder"));
        assert_eq!(existing_folder(folder), Ok(folder.into()));
        assert!(existing_folder(missing).unwrap_err().contains("there is none"));
        assert!(existing_folder(file).unwrap_err().contains("this is a file"));
        assert_eq!(data_dir(missing), Ok(missing.into()));
        assert!(data_dir(file).unwrap_err().contains("this is a file"));
        assert_eq!(absolute_folder(missing), Ok(missing.into()));
        assert!(absolute_folder(file).unwrap_err().contains("this is a file"));
        assert!(absolute_folder("launchway-proxy").unwrap_err().contains("absolute"));
    }
}
