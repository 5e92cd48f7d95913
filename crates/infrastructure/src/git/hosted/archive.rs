//! Uploaded archives, as the input of `git fast-import`.
//!
//! **Invariant:** no entry of an archive becomes a file of this machine: git stores its content, and a later checkout
//! applies the rules of every repository. An archive that is unsafe, too large or damaged becomes no commit at all.

use std::{
    fs::File,
    io::{self, BufReader, Read},
};

use flate2::read::GzDecoder;
use launchway_domain::sources::{FileMode, UploadCommit};
use tar::{Archive, EntryType};

use super::commit_stream::{CommitStream, LONGEST_PATH, Limits, Refusal, checked, refuse};

/// The largest block of extended attributes.
const LARGEST_EXTENSION: u64 = 64 * 1024;

/// Names that an extension of the format gives to the next entry.
#[derive(Default)]
struct LongNames {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

/// Writes the stream of one commit at `reference` with the files of a gzipped archive. Blocks.
pub(super) fn convert(
    archive: File,
    stream: &mut File,
    (reference, commit): (&str, &UploadCommit),
    limits: Limits,
) -> Result<(), Refusal> {
    let mut writer = CommitStream::begin(stream, reference, commit, limits)?;
    // Headers and padding count too, so that no archive is decompressed without end.
    let most = limits.bytes.saturating_add(limits.entries as u64 * 2048);
    let content = Bounded { inner: GzDecoder::new(BufReader::new(archive)), left: most };
    files(Archive::new(content), &mut writer)?;
    writer.end()
}

fn files<R: Read>(mut archive: Archive<R>, writer: &mut CommitStream<'_>) -> Result<(), Refusal> {
    let mut names = LongNames::default();
    let raw = archive.entries().map_err(damaged)?.raw(true);
    for entry in raw {
        let mut entry = entry.map_err(damaged)?;
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => names.path = Some(long_name(&mut entry)?),
            EntryType::GNULongLink => names.link = Some(long_name(&mut entry)?),
            EntryType::XHeader => extended(&mut entry, &mut names)?,
            EntryType::XGlobalHeader => drop(extension(&mut entry)?),
            _ => {
                writer.count_entry()?;
                let LongNames { path, link } = std::mem::take(&mut names);
                let path = path.unwrap_or_else(|| entry.path_bytes().into_owned());
                let Some(path) = checked(&path)? else { continue };
                match kind {
                    EntryType::Directory => {}
                    EntryType::Regular | EntryType::Continuous => {
                        let mode = entry.header().mode().map_err(damaged)?;
                        let mode = if mode & 0o100 == 0 { FileMode::Regular } else { FileMode::Executable };
                        let size = entry.size();
                        writer.begin_file(mode, &path, size)?;
                        let copied = io::copy(&mut (&mut entry).take(size), writer).map_err(damaged)?;
                        if copied != size {
                            return refuse("The archive is damaged or cut short.");
                        }
                        writer.end_file()?;
                    }
                    EntryType::Symlink => {
                        let header = || entry.link_name_bytes().unwrap_or_default().into_owned();
                        let target = link.unwrap_or_else(header);
                        writer.link(&path, &target)?;
                    }
                    EntryType::Link => {
                        return refuse(format!("`{path}` is a hard link: send a copy of the file."));
                    }
                    _ => return refuse(format!("`{path}` is neither a file, a folder nor a symbolic link.")),
                }
            }
        }
    }
    // An archive without its end was cut short.
    let mut rest = archive.into_inner();
    io::copy(&mut rest, &mut io::sink()).map_err(damaged)?;
    Ok(())
}

fn long_name(entry: &mut impl Read) -> Result<Vec<u8>, Refusal> {
    let mut name = Vec::new();
    entry.take(LONGEST_PATH as u64 + 2).read_to_end(&mut name).map_err(damaged)?;
    while name.last() == Some(&0) {
        name.pop();
    }
    Ok(name)
}

fn extension(entry: &mut impl Read) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::new();
    entry.take(LARGEST_EXTENSION + 1).read_to_end(&mut text).map_err(damaged)?;
    if text.len() as u64 > LARGEST_EXTENSION {
        return refuse("The extended attributes of an entry are larger than 64 KiB.");
    }
    Ok(text)
}

/// Reads the names of the next entry from its extended attributes: `length key=value`, one for each line.
fn extended(entry: &mut impl Read, names: &mut LongNames) -> Result<(), Refusal> {
    let text = extension(entry)?;
    let mut rest = text.as_slice();
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ');
        let length = space.and_then(|end| std::str::from_utf8(rest.get(..end)?).ok()?.parse::<usize>().ok());
        let record = space.zip(length).and_then(|(start, end)| rest.get(start + 1..end.checked_sub(1)?));
        let (Some(record), Some(length)) = (record, length) else {
            return refuse("The extended attributes of an entry are damaged.");
        };
        if let Some(value) = record.strip_prefix(b"path=") {
            names.path = Some(value.to_vec());
        } else if let Some(value) = record.strip_prefix(b"linkpath=") {
            names.link = Some(value.to_vec());
        } else if record.starts_with(b"size=") || record.starts_with(b"GNU.sparse") {
            return refuse("Files of 8 GiB and sparse files cannot be uploaded.");
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(())
}

fn damaged(error: io::Error) -> Refusal {
    match is_too_much(&error) {
        true => Refusal::Sentence("The archive unpacks to more than can be stored.".to_owned()),
        false => Refusal::Sentence("The archive is not a complete gzipped tar file.".to_owned()),
    }
}

/// Returns whether the limit is the cause. Readers in between wrap errors in their own.
fn is_too_much(error: &(dyn std::error::Error + 'static)) -> bool {
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.is::<TooMuch>()
        || inner.is_some_and(|inner| is_too_much(inner))
        || error.source().is_some_and(is_too_much)
}

/// A reader that fails after a number of bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("too much content")]
struct TooMuch;

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other(TooMuch))?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
