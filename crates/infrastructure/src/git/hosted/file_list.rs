//! Uploads by a list of files, as the input of `git fast-import`.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write as _},
};

use launchway_domain::sources::{BlockId, FileMode, ListBlock, ListedFile, UploadCommit};

use super::{
    blocks::Blocks,
    commit_stream::{CommitStream, LONGEST_PATH, Limits, Refusal, checked, refuse},
    size,
};

/// The most bytes of the lines of a list.
const LARGEST_LIST: u64 = 64 * 1024 * 1024;

/// Writes the lines of the list with this digest, and returns their bytes; `None` if a block of it or of its files is
/// missing. Blocks the thread.
pub(super) fn collect(
    blocks: &mut Blocks,
    digest: BlockId,
    lines: &mut File,
    limits: Limits,
) -> Result<Option<u64>, Refusal> {
    let mut writer = BufWriter::new(&mut *lines);
    let (mut rest, mut used) = (vec![digest], Vec::new());
    let (mut reads, mut files, mut bytes) = (0, 0, 0_u64);
    while let Some(id) = rest.pop() {
        reads += 1;
        let Some(content) = blocks.read(&id).map_err(Refusal::Io)? else { return Ok(None) };
        used.push(id);
        match ListBlock::parse(&content).map_err(|error| Refusal::Sentence(error.to_string()))? {
            ListBlock::Lists(lists) => rest.extend(lists.into_iter().rev()),
            ListBlock::Files(text) => {
                bytes += text.len() as u64;
                for line in text.split_terminator('\n') {
                    let file: ListedFile =
                        line.parse().map_err(|error| Refusal::Sentence(format!("{error}")))?;
                    if !file.blocks.iter().all(|id| blocks.has(id)) {
                        return Ok(None);
                    }
                    used.extend(file.blocks);
                    files += 1;
                }
                writer.write_all(text.as_bytes()).map_err(Refusal::Io)?;
            }
        }
        // A list that a client makes has fewer blocks than lines; one that repeats others without end does not.
        let is_long = files > limits.entries || rest.len().max(reads) > limits.entries.saturating_mul(2);
        if is_long || bytes > LARGEST_LIST {
            return refuse(format!(
                "The list of files has more than {} entries, or is larger than {}.",
                limits.entries,
                size(LARGEST_LIST)
            ));
        }
    }
    blocks.mark_used(used.into_iter()).map_err(Refusal::Io)?;
    writer.flush().map_err(Refusal::Io)?;
    drop(writer);
    lines.rewind().map_err(Refusal::Io)?;
    Ok(Some(bytes))
}

/// Writes the stream of one commit at `reference` with the files of a list. `sent` is the most compressed bytes that they
/// may have. Blocks the thread.
pub(super) fn convert(
    (list, blocks): (File, &mut Blocks),
    stream: &mut File,
    (reference, commit): (&str, &UploadCommit),
    (limits, sent): (Limits, u64),
) -> Result<(), Refusal> {
    let mut writer = CommitStream::begin(stream, reference, commit, limits)?;
    let mut sum = 0_u64;
    for line in BufReader::new(list).split(b'\n') {
        let line = line.map_err(Refusal::Io)?;
        let line = std::str::from_utf8(&line).map_err(|error| Refusal::Io(io::Error::other(error)))?;
        let file: ListedFile = line.parse().map_err(|error| Refusal::Sentence(format!("{error}")))?;
        writer.count_entry()?;
        let Some(path) = checked(file.path.as_bytes())? else {
            return refuse("The list of files has an entry without a name.");
        };
        let mut length = 0_u64;
        for id in &file.blocks {
            let (bytes, share) = blocks.size(id).ok_or_else(gone)?;
            (length, sum) = (length.saturating_add(bytes), sum.saturating_add(share));
        }
        if sum > sent {
            return refuse(format!("The compressed files are larger than {}.", size(sent)));
        }
        match file.mode {
            FileMode::Link if length > LONGEST_PATH as u64 => {
                return refuse(format!(
                    "The target of the link `{path}` is longer than {LONGEST_PATH} bytes."
                ));
            }
            FileMode::Link => {
                let mut target = Vec::new();
                for id in &file.blocks {
                    target.extend(content(blocks, id)?);
                }
                writer.link(&path, &target)?;
            }
            FileMode::Regular | FileMode::Executable => {
                writer.begin_file(file.mode, &path, length)?;
                for id in &file.blocks {
                    writer.write_all(&content(blocks, id)?).map_err(Refusal::Io)?;
                }
                writer.end_file()?;
            }
        }
    }
    writer.end()
}

fn content(blocks: &mut Blocks, id: &BlockId) -> Result<Vec<u8>, Refusal> {
    blocks.read(id).map_err(Refusal::Io)?.ok_or_else(gone)
}

/// A block that made room for others meanwhile: the client has to send it again.
fn gone() -> Refusal {
    Refusal::Io(io::Error::other("a block of the upload was removed meanwhile"))
}
