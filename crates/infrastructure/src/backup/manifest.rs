//! The manifest of a backup.

use serde::{Deserialize, Serialize};

/// The format of archives that this version writes and reads.
pub const FORMAT: u32 = 1;

/// The expected contents of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of the archive.
    pub format: u32,
    /// The version of Launchway that created it.
    pub launchway: String,
    /// The time at which the backup began.
    pub created_at: String,
    /// The version of the schema.
    pub schema: String,
    /// The kind of database that the rows were read from.
    pub database: String,
    /// The id of the installation.
    pub instance_id: Option<String>,
    /// A text sealed with the secret key, to check a key against. Absent if no server ever ran.
    pub key_check: Option<String>,
    /// The tables, referenced ones first.
    pub tables: Vec<TableRecord>,
    /// The folders, parents first.
    pub folders: Vec<String>,
    /// The files.
    pub files: Vec<FileRecord>,
    /// The symbolic links within releases of sites.
    pub links: Vec<LinkRecord>,
}

/// The expected contents of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRecord {
    /// Its name.
    pub name: String,
    /// Its columns, in the order of the values in a line.
    pub columns: Vec<String>,
    /// Its number of rows.
    pub rows: u64,
    /// The SHA-256 of its lines.
    pub sha256: String,
}

/// The expected contents of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its path in the data directory.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its permissions.
    pub mode: u32,
    /// Its modification time in nanoseconds since 1970: browsers revalidate by it.
    pub modified: i64,
    /// Its SHA-256.
    pub sha256: String,
}

/// A symbolic link of the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Its path in the data directory.
    pub path: String,
    /// The path that it points to.
    pub target: String,
}

impl Manifest {
    /// Returns the number of rows of all tables.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// Returns the size of all files in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).fold(0, u64::saturating_add)
    }
}
