//! The file of a part: its blocks, then their digests and lengths, then the numbers of the footer.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, ErrorKind, Read, Seek as _, SeekFrom, Write},
    path::Path,
};

use flate2::read::GzDecoder;
use launchway_domain::sources::{BlockId, BlockLimits, StoredPart};

use super::super::{
    commit_stream::{Refusal, refuse},
    size,
};

/// The end of a file that was written completely.
const MAGIC: &[u8; 8] = b"blocks1\n";
/// The bytes of a line of the index: a digest and a length.
const LINE: usize = 36;
/// The bytes of the footer: the number of blocks, the compressed bytes, and the magic number.
const FOOTER: usize = 20;

/// The index of a part.
pub(super) struct Index {
    pub(super) blocks: Vec<(BlockId, u32)>,
    /// The compressed bytes that the client sent.
    pub(super) received: u64,
}

impl Index {
    /// Reads the index of a part; fails with [`ErrorKind::InvalidData`] if it is damaged.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let (count, received) = footer(&mut file)?;
        let length = count.checked_mul(LINE).ok_or_else(damaged)?;
        let mut bytes = vec![0; length];
        let end = i64::try_from(length + FOOTER).map_err(|_large| damaged())?;
        file.seek(SeekFrom::End(-end)).map_err(|_short| damaged())?;
        let content = file.stream_position()?;
        file.read_exact(&mut bytes)?;
        let mut blocks = Vec::with_capacity(count);
        for line in bytes.as_chunks::<LINE>().0 {
            let (Some(id), Some(length)) = (line.first_chunk::<32>(), line.last_chunk::<4>()) else {
                return Err(damaged());
            };
            blocks.push((BlockId(*id), u32::from_be_bytes(*length)));
        }
        let sum: u64 = blocks.iter().map(|(_, length)| u64::from(*length)).sum();
        if sum == content { Ok(Self { blocks, received }) } else { Err(damaged()) }
    }

    /// Returns the number of blocks of a part.
    pub(super) fn count(path: &Path) -> io::Result<usize> {
        footer(&mut File::open(path)?).map(|(count, _)| count)
    }
}

fn footer(file: &mut File) -> io::Result<(usize, u64)> {
    file.seek(SeekFrom::End(-(FOOTER as i64))).map_err(|_short| damaged())?;
    let mut bytes = [0; FOOTER];
    file.read_exact(&mut bytes)?;
    let (numbers, magic) = bytes.split_at(FOOTER - MAGIC.len());
    let (Some(count), Some(received)) = (numbers.first_chunk::<4>(), numbers.last_chunk::<8>()) else {
        return Err(damaged());
    };
    let count = u32::from_be_bytes(*count) as usize;
    if magic != MAGIC || count > BlockLimits::PART_BLOCKS {
        return Err(damaged());
    }
    Ok((count, u64::from_be_bytes(*received)))
}

fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the part is damaged")
}

/// Writes the blocks of a part that a client sent in `received` compressed bytes.
pub(super) fn write(sent: File, received: u64, file: &mut File) -> Result<StoredPart, Refusal> {
    let mut content = GzDecoder::new(BufReader::new(sent));
    let mut writer = BufWriter::new(file);
    let (mut index, mut bytes) = (Vec::new(), 0_u64);
    while let Some(block) = next(&mut content)? {
        bytes += block.len() as u64;
        if bytes > BlockLimits::PART {
            return refuse(format!("The blocks of the part are more than {}.", size(BlockLimits::PART)));
        }
        if index.len() == BlockLimits::PART_BLOCKS * LINE {
            return refuse(format!("The part has more than {} blocks.", BlockLimits::PART_BLOCKS));
        }
        writer.write_all(&block).map_err(Refusal::Io)?;
        index.extend_from_slice(&BlockId::of(&block).0);
        index.extend_from_slice(&(block.len() as u32).to_be_bytes());
    }
    let blocks = index.len() / LINE;
    if blocks == 0 {
        return refuse("The part has no blocks.");
    }
    index.extend_from_slice(&(blocks as u32).to_be_bytes());
    index.extend_from_slice(&received.to_be_bytes());
    index.extend_from_slice(MAGIC);
    writer.write_all(&index).and_then(|()| writer.flush()).map_err(Refusal::Io)?;
    Ok(StoredPart { blocks, bytes })
}

/// Reads the next block; `None` at the end.
fn next(content: &mut impl Read) -> Result<Option<Vec<u8>>, Refusal> {
    let mut length = Vec::new();
    content.take(4).read_to_end(&mut length).map_err(unreadable)?;
    let length = match length.as_slice() {
        [] => return Ok(None),
        [a, b, c, d] => u32::from_be_bytes([*a, *b, *c, *d]) as usize,
        _ => return refuse("The part is damaged or cut short."),
    };
    if length == 0 || length > BlockLimits::BLOCK {
        return refuse(format!("A block has 1 to {} bytes, got {length}.", BlockLimits::BLOCK));
    }
    let mut block = Vec::new();
    content.take(length as u64).read_to_end(&mut block).map_err(unreadable)?;
    if block.len() < length {
        return refuse("The part is damaged or cut short.");
    }
    Ok(Some(block))
}

fn unreadable(_error: io::Error) -> Refusal {
    Refusal::Sentence("The part is not gzipped, or is cut short.".to_owned())
}
