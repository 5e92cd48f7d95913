//! Uploaded archives, as the input of `git fast-import`.
//!
//! **Invariant:** no entry of an archive becomes a file of this machine: git stores its content, and a later checkout
//! applies the rules of every repository. An archive that is unsafe, too large or damaged becomes no commit at all.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek as _, Write},
};

use flate2::read::GzDecoder;
use launchway_domain::sources::UploadCommit;
use tar::{Archive, EntryType};

/// The longest path, in bytes.
const LONGEST_PATH: usize = 1024;
/// The largest block of extended attributes.
const LARGEST_EXTENSION: u64 = 64 * 1024;

/// The limits of the content of an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) entries: usize,
}

/// The reason why an archive is not stored.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A sentence for the user.
    Sentence(String),
    /// The stream could not be written.
    Io(io::Error),
}

fn refuse<T>(sentence: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Sentence(sentence.into()))
}

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
    let mut writer = BufWriter::new(&mut *stream);
    begin(&mut writer, reference, commit).map_err(Refusal::Io)?;
    // Headers and padding count too, so that no archive is decompressed without end.
    let most = limits.bytes.saturating_add(limits.entries as u64 * 2048);
    let content = Bounded { inner: GzDecoder::new(BufReader::new(archive)), left: most };
    files(Archive::new(content), &mut writer, limits)?;
    let end = writer.write_all(b"get-mark :1\ndone\n").and_then(|()| writer.flush());
    drop(writer);
    end.and_then(|()| stream.rewind()).map_err(Refusal::Io)
}

fn begin(writer: &mut impl Write, reference: &str, commit: &UploadCommit) -> io::Result<()> {
    let plain = |text: &str| text.replace(|c: char| c.is_control() || matches!(c, '<' | '>'), "");
    let (name, email) = (plain(&commit.name), plain(&commit.email));
    let (at, message) = (commit.at.timestamp().max(0), commit.message.as_bytes());
    write!(writer, "feature done\ncommit {reference}\nmark :1\ncommitter {name} <{email}> {at} +0000\n")?;
    writeln!(writer, "data {}", message.len())?;
    writer.write_all(message)?;
    writer.write_all(b"\ndeleteall\n")
}

fn files<R: Read>(mut archive: Archive<R>, writer: &mut impl Write, limits: Limits) -> Result<(), Refusal> {
    let (mut seen, mut folders) = (HashSet::new(), HashSet::new());
    let (mut bytes, mut entries, mut names) = (0_u64, 0_usize, LongNames::default());
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
                entries += 1;
                if entries > limits.entries {
                    return refuse(format!("The archive has more than {} entries.", limits.entries));
                }
                let LongNames { path, link } = std::mem::take(&mut names);
                let path = path.unwrap_or_else(|| entry.path_bytes().into_owned());
                let Some(path) = checked(&path)? else { continue };
                match kind {
                    EntryType::Directory => {}
                    EntryType::Regular | EntryType::Continuous => {
                        claim(&path, &mut seen, &mut folders)?;
                        let size = entry.size();
                        bytes = bytes.saturating_add(size);
                        if bytes > limits.bytes {
                            let limit = super::size(limits.bytes);
                            return refuse(format!("The files of the archive are more than {limit}."));
                        }
                        let mode = entry.header().mode().map_err(damaged)?;
                        let mode = if mode & 0o100 == 0 { "100644" } else { "100755" };
                        data(writer, mode, &path, size, &mut entry)?;
                    }
                    EntryType::Symlink => {
                        claim(&path, &mut seen, &mut folders)?;
                        let header = || entry.link_name_bytes().unwrap_or_default().into_owned();
                        let target = link.unwrap_or_else(header);
                        check_link(&path, &target)?;
                        data(writer, "120000", &path, target.len() as u64, &mut target.as_slice())?;
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
    match seen.is_empty() {
        true => refuse("The archive has no files."),
        false => Ok(()),
    }
}

/// Writes one file.
fn data(
    writer: &mut impl Write,
    mode: &str,
    path: &str,
    size: u64,
    content: &mut impl Read,
) -> Result<(), Refusal> {
    let quoted = path.replace('\\', "\\\\").replace('"', "\\\"");
    write!(writer, "M {mode} inline \"{quoted}\"\ndata {size}\n").map_err(Refusal::Io)?;
    let copied = io::copy(&mut content.take(size), writer).map_err(damaged)?;
    if copied != size {
        return refuse("The archive is damaged or cut short.");
    }
    writer.write_all(b"\n").map_err(Refusal::Io)
}

/// Returns the path of an entry in its normal form; `None` for the top folder.
fn checked(path: &[u8]) -> Result<Option<String>, Refusal> {
    let shown = String::from_utf8_lossy(path).escape_debug().take(200).collect::<String>();
    let Ok(path) = std::str::from_utf8(path) else {
        return refuse(format!("The name `{shown}` is not UTF-8."));
    };
    if path.len() > LONGEST_PATH {
        return refuse(format!("The name `{shown}` is longer than {LONGEST_PATH} bytes."));
    }
    if path.contains(char::is_control) {
        return refuse(format!("The name `{shown}` contains control characters."));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| *part != ".").collect();
    let parts = parts.strip_suffix(&[""]).unwrap_or(&parts);
    if path.starts_with('/') || parts.iter().any(|part| part.is_empty() || *part == "..") {
        return refuse(format!("The name `{shown}` points outside of the folder."));
    }
    if parts.iter().any(|part| is_of_git(part)) {
        return refuse(format!("The name `{shown}` belongs to git: leave `.git` out of the archive."));
    }
    Ok((!parts.is_empty()).then(|| parts.join("/")))
}

/// Returns whether some file system takes the name for `.git`.
fn is_of_git(part: &str) -> bool {
    let is_ignored = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let plain: String = part.chars().filter(|c| !is_ignored(c)).collect::<String>().to_lowercase();
    let plain = plain.split([':', '\\']).next().unwrap_or_default().trim_end_matches([' ', '.']);
    matches!(plain, ".git" | "git~1")
}

/// Records a path. A path exists once, and is either a file or a folder.
fn claim(path: &str, seen: &mut HashSet<String>, folders: &mut HashSet<String>) -> Result<(), Refusal> {
    let above = path.char_indices().filter(|(_, c)| *c == '/').filter_map(|(end, _)| path.get(..end));
    for folder in above {
        if seen.contains(folder) {
            return refuse(format!("`{folder}` is both a file and a folder."));
        }
        folders.insert(folder.to_owned());
    }
    if folders.contains(path) || !seen.insert(path.to_owned()) {
        return refuse(format!("`{path}` is in the archive twice."));
    }
    Ok(())
}

/// Checks that a symbolic link stays inside of the folder.
fn check_link(path: &str, target: &[u8]) -> Result<(), Refusal> {
    let outside = || refuse(format!("The link `{path}` points outside of the folder."));
    let Ok(target) = std::str::from_utf8(target) else { return outside() };
    let is_text = !target.is_empty() && target.len() <= LONGEST_PATH && !target.contains(char::is_control);
    if !is_text || target.starts_with('/') {
        return outside();
    }
    let mut depth = path.matches('/').count();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return outside(),
            },
            _ => depth += 1,
        }
    }
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
