//! The journal of a file of records.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use super::OpenError;
use crate::records::Row;

/// The length from which on a journal is replaced.
const SHORTEST_LONG: u64 = 1024 * 1024;
/// The journal is replaced when it is this many times as long as after the last replacement.
const GROWTH: u64 = 4;

/// A file with one line for each transaction.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// The end of the last whole line.
    length: u64,
    /// The length after the last replacement.
    base: u64,
    /// True after a failed write that could not be taken back: the end of the file is unknown.
    is_broken: bool,
    /// True after the file was replaced, until its name is durable.
    has_new_name: bool,
    /// Excludes other processes. It is a file of its own, because the journal is replaced.
    _lock: File,
}

impl Journal {
    /// Opens the file, and returns it with its rows.
    pub(super) fn open(path: &Path) -> Result<(Self, Vec<Row>), OpenError> {
        let failed = |source| OpenError::File { path: path.to_owned(), source };
        let lock = options().open(beside(path, "lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // A compaction that was interrupted.
        std::fs::remove_file(beside(path, "new")).or_else(absent_is_fine).map_err(failed)?;
        let mut file = options().open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let (rows, length) =
            parse(&bytes).map_err(|line| OpenError::Damaged { path: path.to_owned(), line })?;
        sync_folder(path).map_err(failed)?;
        let journal = Self {
            path: path.to_owned(),
            file,
            length,
            base: length,
            is_broken: length < bytes.len() as u64,
            has_new_name: false,
            _lock: lock,
        };
        Ok((journal, rows))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the rows of a transaction. When it returns, they survive a power failure. Returns true if the
    /// journal should be replaced.
    pub(super) fn append_line(&mut self, rows: &[Row]) -> io::Result<bool> {
        if self.is_broken {
            self.take_back()?;
        }
        if self.has_new_name {
            sync_folder(&self.path)?;
            self.has_new_name = false;
        }
        let line = line(rows)?;
        if let Err(error) = self.write(&line) {
            self.is_broken = true;
            // Otherwise, the next start would find a transaction that has failed.
            if let Err(error) = self.take_back() {
                tracing::warn!(%error, "failed transaction could not be taken back yet");
            }
            return Err(error);
        }
        self.length += line.len() as u64;
        Ok(self.length > SHORTEST_LONG && self.length > self.base * GROWTH)
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.length))?;
        self.file.write_all(line)?;
        self.file.sync_data()
    }

    /// Cuts the file after the last whole line.
    fn take_back(&mut self) -> io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.sync_data()?;
        self.is_broken = false;
        Ok(())
    }

    /// Sets the length that the records alone have.
    pub(super) fn set_base(&mut self, rows: &[Row]) {
        let length = |row: &Row| row.key.len() + row.value.as_ref().map_or(0, String::len) + 30;
        self.base = rows.iter().map(length).sum::<usize>() as u64;
    }

    /// Writes to another file from now on, and returns the one before.
    #[cfg(test)]
    pub(super) fn swap_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }

    /// Replaces the journal by one with these rows, at once.
    pub(super) fn replace_lines(&mut self, rows: &[Row]) -> io::Result<()> {
        let temporary = beside(&self.path, "new");
        let written = write_new(&temporary, rows);
        let renamed = written.and_then(|written| std::fs::rename(&temporary, &self.path).map(|()| written));
        let (file, length) = match renamed {
            Ok(written) => written,
            Err(error) => {
                // The space is needed, and the next attempt waits until there is something to gain again.
                self.base = self.length;
                std::fs::remove_file(&temporary).or_else(absent_is_fine)?;
                return Err(error);
            }
        };
        (self.file, self.length, self.base, self.is_broken) = (file, length, length, false);
        self.has_new_name = true;
        sync_folder(&self.path)?;
        self.has_new_name = false;
        Ok(())
    }
}

/// Writes rows to a new file, and returns it with its length.
fn write_new(path: &Path, rows: &[Row]) -> io::Result<(File, u64)> {
    let mut file = options().truncate(true).open(path)?;
    let mut length = 0;
    // Lines of a bounded length, so that reading needs no second copy of everything.
    for rows in rows.chunks(1000) {
        let line = line(rows)?;
        file.write_all(&line)?;
        length += line.len() as u64;
    }
    file.sync_all()?;
    Ok((file, length))
}

fn absent_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Returns the path of a file that belongs to `path`.
fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

/// Makes the names of files in the folder of `path` durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Returns the line of a transaction: a checksum, a space, and its rows.
fn line(rows: &[Row]) -> io::Result<Vec<u8>> {
    let json = serde_json::to_string(rows)?;
    Ok(format!("{:016x} {json}\n", checksum(json.as_bytes())).into_bytes())
}

/// Returns the rows, and the length of the lines that are whole. The last line may be cut.
///
/// # Errors
/// The number of a damaged line that is not the last one.
fn parse(bytes: &[u8]) -> Result<(Vec<Row>, u64), usize> {
    let (mut rows, mut length) = (Vec::new(), 0);
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        match parse_line(line) {
            Some(mut of_line) => rows.append(&mut of_line),
            None if length + line.len() == bytes.len() => break,
            None => return Err(number + 1),
        }
        length += line.len();
    }
    Ok((rows, length as u64))
}

fn parse_line(line: &[u8]) -> Option<Vec<Row>> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (sum, json) = line.split_once(' ')?;
    let is_whole = u64::from_str_radix(sum, 16).is_ok_and(|sum| sum == checksum(json.as_bytes()));
    is_whole.then(|| serde_json::from_str(json).ok()).flatten()
}

/// Returns the FNV-1a hash: it detects damage by accident.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
