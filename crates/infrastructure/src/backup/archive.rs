//! Writes an archive, entry by entry.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};

use super::{BackupError, LARGEST_PIECE, at, manifest::Manifest};

/// The size in bytes from which a piece of a table ends after the current line.
const PIECE: usize = 1024 * 1024;

/// Appends entries to an archive.
pub(super) struct Writer<'a> {
    archive: tar::Builder<GzEncoder<BufWriter<&'a mut File>>>,
    path: PathBuf,
}

impl<'a> Writer<'a> {
    pub(super) fn new(file: &'a mut File, path: &Path) -> Self {
        let packed = GzEncoder::new(BufWriter::new(file), Compression::fast());
        Self { archive: tar::Builder::new(packed), path: path.to_owned() }
    }

    /// Returns a writer for the lines of a table.
    pub(super) fn pieces_of<'w>(&'w mut self, table: &str) -> LineCollector<'w, 'a> {
        LineCollector { writer: self, table: table.to_owned(), number: 0, lines: Vec::new() }
    }

    /// Adds an open file of the given size, and returns its SHA-256.
    pub(super) fn file(&mut self, name: &str, file: &File, size: u64) -> Result<String, BackupError> {
        let mut hashed = Hashed { inner: file.take(size), hash: Sha256::new(), read: 0 };
        self.archive
            .append_data(&mut header(size), format!("files/{name}"), &mut hashed)
            .map_err(at(&self.path))?;
        if hashed.read != size {
            return Err(BackupError::Refused(format!(
                "`{name}` became shorter while it was read: try again"
            )));
        }
        Ok(data_encoding::HEXLOWER.encode(&hashed.hash.finalize()))
    }

    /// Adds the manifest and finishes the archive.
    pub(super) fn finish(mut self, manifest: &Manifest) -> Result<(), BackupError> {
        let refused = |error: serde_json::Error| BackupError::Refused(error.to_string());
        let text = serde_json::to_vec_pretty(manifest).map_err(refused)?;
        let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(&text));
        self.entry("manifest.json", &text)?;
        self.entry("manifest.sha256", format!("{hash}  manifest.json\n").as_bytes())?;
        let ended = self.archive.into_inner().and_then(GzEncoder::finish).and_then(|mut rest| rest.flush());
        ended.map_err(at(&self.path))
    }

    fn entry(&mut self, name: &str, content: &[u8]) -> Result<(), BackupError> {
        let size = content.len() as u64;
        self.archive.append_data(&mut header(size), name, content).map_err(at(&self.path))
    }
}

fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    header.set_mtime(0);
    header
}

/// Collects the lines of a table until they make a piece.
pub(super) struct LineCollector<'w, 'a> {
    writer: &'w mut Writer<'a>,
    table: String,
    number: u32,
    lines: Vec<u8>,
}

impl LineCollector<'_, '_> {
    pub(super) fn add(&mut self, line: &str) -> Result<(), BackupError> {
        self.lines.extend_from_slice(line.as_bytes());
        self.lines.push(b'\n');
        if self.lines.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    pub(super) fn finish(mut self) -> Result<(), BackupError> {
        self.flush()
    }

    fn flush(&mut self) -> Result<(), BackupError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        if self.lines.len() as u64 > LARGEST_PIECE {
            return Err(BackupError::Refused(format!("a row of the table `{}` is too large", self.table)));
        }
        self.number += 1;
        let name = piece_name(&self.table, self.number);
        self.writer.entry(&name, &self.lines)?;
        self.lines.clear();
        Ok(())
    }
}

/// Returns the name of an entry that holds a piece of a table.
pub(super) fn piece_name(table: &str, number: u32) -> String {
    format!("tables/{table}/{number:06}")
}

struct Hashed<R> {
    inner: R,
    hash: Sha256,
    read: u64,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.read += read as u64;
        Ok(read)
    }
}
