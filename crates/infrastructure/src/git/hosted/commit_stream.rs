//! The input of `git fast-import` for the commit of an upload.
//!
//! **Invariant:** every way to upload files writes its commit through [`CommitStream`], so that all have the same rules
//! about names, links and sizes.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufWriter, Seek as _, Write},
};

use launchway_domain::sources::{FileMode, UploadCommit};

/// The longest path, in bytes.
pub(super) const LONGEST_PATH: usize = 1024;

/// The limits of the content of an upload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) entries: usize,
}

/// The reason why an upload is not stored.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A sentence for the user.
    Sentence(String),
    /// The stream could not be written.
    Io(io::Error),
}

pub(super) fn refuse<T>(sentence: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Sentence(sentence.into()))
}

/// The stream of one commit. Bytes that are written to it are the content of the file that was begun.
pub(super) struct CommitStream<'a> {
    writer: BufWriter<&'a mut File>,
    limits: Limits,
    bytes: u64,
    entries: usize,
    seen: HashSet<String>,
    folders: HashSet<String>,
}

impl<'a> CommitStream<'a> {
    /// Begins the commit at `reference`.
    pub(super) fn begin(
        file: &'a mut File,
        reference: &str,
        commit: &UploadCommit,
        limits: Limits,
    ) -> Result<Self, Refusal> {
        let (seen, folders) = (HashSet::new(), HashSet::new());
        let mut stream = Self { writer: BufWriter::new(file), limits, bytes: 0, entries: 0, seen, folders };
        stream.header(reference, commit).map_err(Refusal::Io)?;
        Ok(stream)
    }

    fn header(&mut self, reference: &str, commit: &UploadCommit) -> io::Result<()> {
        let plain = |text: &str| text.replace(|c: char| c.is_control() || matches!(c, '<' | '>'), "");
        let (name, email) = (plain(&commit.name), plain(&commit.email));
        let (at, message) = (commit.at.timestamp().max(0), commit.message.as_bytes());
        let writer = &mut self.writer;
        write!(writer, "feature done\ncommit {reference}\nmark :1\ncommitter {name} <{email}> {at} +0000\n")?;
        writeln!(writer, "data {}", message.len())?;
        writer.write_all(message)?;
        writer.write_all(b"\ndeleteall\n")
    }

    /// Counts a file or a folder.
    pub(super) fn count_entry(&mut self) -> Result<(), Refusal> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return refuse(format!("The upload has more than {} entries.", self.limits.entries));
        }
        Ok(())
    }

    /// Begins a file of `size` bytes, which have to follow. Its path was [checked].
    pub(super) fn begin_file(&mut self, mode: FileMode, path: &str, size: u64) -> Result<(), Refusal> {
        self.claim(path)?;
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > self.limits.bytes {
            let limit = super::size(self.limits.bytes);
            return refuse(format!("The files of the upload are more than {limit}."));
        }
        let quoted = path.replace('\\', "\\\\").replace('"', "\\\"");
        let mode = mode.as_str();
        write!(self.writer, "M {mode} inline \"{quoted}\"\ndata {size}\n").map_err(Refusal::Io)
    }

    /// Ends a file, after its content.
    pub(super) fn end_file(&mut self) -> Result<(), Refusal> {
        self.writer.write_all(b"\n").map_err(Refusal::Io)
    }

    /// Adds a symbolic link that stays inside of the folder.
    pub(super) fn link(&mut self, path: &str, target: &[u8]) -> Result<(), Refusal> {
        check_link(path, target)?;
        self.begin_file(FileMode::Link, path, target.len() as u64)?;
        self.writer.write_all(target).map_err(Refusal::Io)?;
        self.end_file()
    }

    /// Ends the commit, and returns to the beginning of the stream.
    pub(super) fn end(mut self) -> Result<(), Refusal> {
        if self.seen.is_empty() {
            return refuse("The upload has no files.");
        }
        self.writer.write_all(b"get-mark :1\ndone\n").map_err(Refusal::Io)?;
        let file = self.writer.into_inner().map_err(|error| Refusal::Io(error.into_error()))?;
        file.rewind().map_err(Refusal::Io)
    }

    /// Records a path. A path exists once, and is either a file or a folder.
    fn claim(&mut self, path: &str) -> Result<(), Refusal> {
        let above = path.char_indices().filter(|(_, c)| *c == '/').filter_map(|(end, _)| path.get(..end));
        for folder in above {
            if self.seen.contains(folder) {
                return refuse(format!("`{folder}` is both a file and a folder."));
            }
            self.folders.insert(folder.to_owned());
        }
        if self.folders.contains(path) || !self.seen.insert(path.to_owned()) {
            return refuse(format!("`{path}` is in the upload twice."));
        }
        Ok(())
    }
}

impl Write for CommitStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Returns the path of an entry in its normal form; `None` for the top folder.
pub(super) fn checked(path: &[u8]) -> Result<Option<String>, Refusal> {
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
        return refuse(format!("The name `{shown}` belongs to git: leave `.git` out of the upload."));
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
