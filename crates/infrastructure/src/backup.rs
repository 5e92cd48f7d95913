//! Backups: everything that an installation cannot get again from elsewhere, in one file.
//!
//! An archive is a compressed tar. First come the tables of the database, as lines in a format that both
//! databases share ([`tables`](launchway_database::tables)), in pieces `tables/<table>/<number>`; then the
//! files of the data directory, `files/<path>`; then `manifest.json`, which lists the expected contents,
//! and `manifest.sha256`. So a backup is written in one pass, needs no temporary space, and a truncated one
//! has no manifest.
//!
//! **Invariant:** the secret key is never in an archive.
//!
//! **Invariant:** an archive is verified as a whole before anything of it is written anywhere, and the
//! paths in it are never used unchecked.

mod archive;
mod manifest;
mod names;
mod private_file;
mod restore;
mod verification;
mod walk;

use std::{
    io,
    path::{Path, PathBuf},
};

use launchway_database::{
    DatabaseUrl,
    tables::{Tables, TablesError},
};

use self::{archive::Writer, names::FOLDERS};
pub use self::{
    manifest::{FORMAT, FileRecord, LinkRecord, Manifest, TableRecord},
    private_file::{PrivateFile, replace_private_file},
    restore::{Rebuilt, restore},
    verification::verify,
};

/// The largest piece of a table that is read. A piece exceeds one mebibyte only if a single row does.
const LARGEST_PIECE: u64 = 64 * 1024 * 1024;
/// The file that holds the id of this installation.
const INSTANCE_ID: &str = "instance-id";

/// An error of creating, verifying or restoring a backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The operation was rejected. The message is meant for the user.
    #[error("{0}")]
    Refused(String),
    /// A file cannot be read or written.
    #[error("cannot use `{}`", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The database failed.
    #[error(transparent)]
    Tables(#[from] TablesError),
}

/// The locations of an installation's data.
#[derive(Debug, Clone, Copy)]
pub struct Installation<'a> {
    /// The data directory.
    pub data_dir: &'a Path,
    /// The database.
    pub database: &'a DatabaseUrl,
}

/// The metadata of a new backup.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The version of Launchway that creates it.
    pub launchway: String,
    /// The time of creation.
    pub created_at: String,
}

/// Writes a backup to `path`, whether a server runs or not.
///
/// The database is read as of the start of this call. Releases of sites are read after that, so that those
/// that were live then are all included; `fetch` gets those that only other servers have.
///
/// # Errors
/// [`BackupError::Refused`] if the file exists and `may_replace` does not allow replacing it. No file is
/// left after this or any other error.
pub fn create(
    installation: Installation<'_>,
    path: &Path,
    origin: Origin,
    may_replace: bool,
    fetch: impl FnOnce() -> Result<(), BackupError>,
) -> Result<Manifest, BackupError> {
    let mut file = PrivateFile::beside(path, may_replace)?;
    let mut tables = Tables::snapshot(installation.database)?;
    let mut manifest = Manifest {
        format: FORMAT,
        launchway: origin.launchway,
        created_at: origin.created_at,
        schema: tables.schema()?,
        database: kind(installation.database).to_owned(),
        instance_id: None,
        key_check: tables.key_check()?,
        tables: Vec::new(),
        folders: Vec::new(),
        files: Vec::new(),
        links: Vec::new(),
    };
    let mut writer = Writer::new(file.writer(), path);
    for table in tables.list()? {
        let mut pieces = writer.pieces_of(&table.name);
        let digest =
            tables.read(&table, |line| pieces.add(line).map_err(|error| TablesError::Taker(error.into())))?;
        pieces.finish()?;
        manifest.tables.push(TableRecord {
            columns: table.column_names(),
            name: table.name,
            rows: digest.rows,
            sha256: digest.sha256,
        });
    }
    drop(tables);
    fetch()?;
    for name in FOLDERS.into_iter().chain([INSTANCE_ID]) {
        walk::everything_in(installation.data_dir, name, &mut writer, &mut manifest)?;
    }
    manifest.instance_id = walk::text_of(&installation.data_dir.join(INSTANCE_ID))?;
    writer.finish(&manifest)?;
    file.keep()?;
    Ok(manifest)
}

fn kind(url: &DatabaseUrl) -> &'static str {
    match url {
        DatabaseUrl::Sqlite(_) => "sqlite",
        DatabaseUrl::Postgres(_) => "postgres",
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> BackupError + use<> {
    let path = path.to_owned();
    move |source| BackupError::File { path: path.clone(), source }
}
