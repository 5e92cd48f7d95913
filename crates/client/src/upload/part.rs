//! A part of an upload: blocks that are sent at once.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use crate::failure::{Outcome, failed};

/// The most bytes of a part, unless a single block has more. A cut connection loses no more.
const LARGEST: usize = 4 * 1024 * 1024;
/// The most blocks of a part.
const MOST: usize = 8192;

/// Collects blocks.
pub(super) struct PartWriter {
    content: Vec<u8>,
    blocks: usize,
    bytes: u64,
    files: usize,
}

/// A part to send.
pub(super) struct Part {
    pub(super) body: Vec<u8>,
    /// The bytes of files in it.
    pub(super) bytes: u64,
    /// The number of files that begin in it.
    pub(super) files: usize,
}

impl PartWriter {
    pub(super) fn new() -> Self {
        Self { content: Vec::new(), blocks: 0, bytes: 0, files: 0 }
    }

    /// Returns whether a block of `length` bytes does not fit any more.
    pub(super) fn is_full(&self, length: usize) -> bool {
        self.blocks > 0 && (self.content.len() + length > LARGEST || self.blocks == MOST)
    }

    /// Adds a block of a file.
    pub(super) fn add(&mut self, block: &[u8], files: usize) {
        self.add_list(block);
        self.bytes += block.len() as u64;
        self.files += files;
    }

    /// Adds a block of the list of files.
    pub(super) fn add_list(&mut self, block: &[u8]) {
        self.content.extend_from_slice(&(block.len() as u32).to_be_bytes());
        self.content.extend_from_slice(block);
        self.blocks += 1;
    }

    /// Returns the part; `None` without a block.
    pub(super) fn finish(self) -> Outcome<Option<Part>> {
        if self.blocks == 0 {
            return Ok(None);
        }
        let mut writer = GzEncoder::new(Vec::new(), Compression::default());
        let body = writer.write_all(&self.content).and_then(|()| writer.finish());
        let body = body.map_err(failed("the files cannot be compressed"))?;
        Ok(Some(Part { body, bytes: self.bytes, files: self.files }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn blocks_follow_their_lengths() {
        let mut writer = PartWriter::new();
        writer.add(b"ab", 1);
        writer.add(b"c", 0);
        writer.add_list(b"list");
        let part = writer.finish().unwrap().unwrap();
        assert_eq!((part.bytes, part.files), (3, 1));
        let mut content = Vec::new();
        flate2::read::GzDecoder::new(part.body.as_slice()).read_to_end(&mut content).unwrap();
        assert_eq!(content, b"\0\0\0\x02ab\0\0\0\x01c\0\0\0\x04list");
        assert!(PartWriter::new().finish().unwrap().is_none());
    }

    #[test]
    fn a_part_is_bounded_by_bytes_and_blocks() {
        let mut writer = PartWriter::new();
        assert!(!writer.is_full(LARGEST * 2));
        writer.add(&vec![0; LARGEST - 14], 1);
        assert!(!writer.is_full(10) && writer.is_full(11));
        let mut writer = PartWriter::new();
        for _ in 0..MOST {
            assert!(!writer.is_full(1));
            writer.add(b"x", 1);
        }
        assert!(writer.is_full(1));
    }
}
