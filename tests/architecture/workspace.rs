//! The files of the workspace.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns the folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// Returns the text of a file, by its path below the root.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// Parses a TOML file, by its path below the root.
pub(crate) fn read_toml(path: impl AsRef<Path>) -> toml::Table {
    let path = path.as_ref();
    read(path).parse().unwrap_or_else(|error| panic!("{} is no TOML: {error}", path.display()))
}

/// Returns every file below a folder with this extension, as paths below the root, sorted.
///
/// Skips what git never tracks: build folders, git's own, and the server's data.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root().join(folder), &mut found);
    found.retain(|path| path.extension().is_some_and(|own| own == extension));
    found.sort();
    found
}

/// Returns the names of the folders directly below a folder, sorted.
pub(crate) fn folders(folder: &str) -> Vec<String> {
    let mut names: Vec<_> = entries(&root().join(folder))
        .into_iter()
        .filter(|path| path.is_dir())
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_symlink() {
            continue;
        }
        if !path.is_dir() {
            found.push(path.strip_prefix(root()).unwrap_or(&path).to_owned());
        } else if !is_untracked(&path) {
            collect(&path, found);
        }
    }
}

fn is_untracked(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default();
    name == ".git" || name == "target" || name == "launchway-data" || folder.join("CACHEDIR.TAG").exists()
}

/// Returns the entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
