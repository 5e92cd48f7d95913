//! What a backup says that it holds.

use serde::{Deserialize, Serialize};

/// The form of archives that this version writes and reads.
pub const FORMAT: u32 = 1;

/// What an archive has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The form of the archive.
    pub format: u32,
    /// The version of Launchway that made it.
    pub launchway: String,
    /// When it was begun.
    pub created_at: String,
    /// The version of the tables.
    pub schema: String,
    /// Which database the rows came from.
    pub database: String,
    /// Which installation it is of.
    pub instance_id: Option<String>,
    /// What only the right key opens. Absent when no server ever ran.
    pub key_check: Option<String>,
    /// The tables, those that others refer to first.
    pub tables: Vec<TableRecord>,
    /// The folders, those that others are in first.
    pub folders: Vec<String>,
    /// The files.
    pub files: Vec<FileRecord>,
    /// The links within releases of sites.
    pub links: Vec<LinkRecord>,
}

/// What a table has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRecord {
    /// Its name.
    pub name: String,
    /// Its columns, in the order that lines have them.
    pub columns: Vec<String>,
    /// How many rows it has.
    pub rows: u64,
    /// The SHA-256 of its lines.
    pub sha256: String,
}

/// What a file has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Where it belongs in the data directory.
    pub path: String,
    /// How many bytes it has.
    pub size: u64,
    /// Who may do what with it.
    pub mode: u32,
    /// When it was last changed, in nanoseconds since 1970: browsers ask about it.
    pub modified: i64,
    /// The SHA-256 of it.
    pub sha256: String,
}

/// What a link has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Where it belongs in the data directory.
    pub path: String,
    /// Where it leads.
    pub target: String,
}

impl Manifest {
    /// How many rows there are in all.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// How many bytes the files have in all.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).fold(0, u64::saturating_add)
    }
}
