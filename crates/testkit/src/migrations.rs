//! The migrations of the databases.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

/// Returns the folder with the migrations of `database`: `postgres` or `sqlite`.
pub(crate) fn folder(database: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations")).join(database)
}

/// Returns a number that differs after a change of the migrations of `database`: a copy of a database may outlive it.
///
/// # Panics
///
/// If they cannot be read.
#[must_use]
pub fn fingerprint(database: &str) -> u64 {
    let mut files: Vec<PathBuf> = fs::read_dir(folder(database))
        .and_then(|folders| folders.map(|folder| Ok(folder?.path().join("up.sql"))).collect())
        .unwrap_or_else(|problem| panic!("cannot read the migrations: {problem}"));
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        (&file, fs::read(&file).unwrap_or_else(|problem| panic!("{}: {problem}", file.display())))
            .hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_has_migrations_of_its_own() {
        assert_ne!(fingerprint("sqlite"), fingerprint("postgres"));
        assert_eq!(fingerprint("sqlite"), fingerprint("sqlite"));
    }
}
