//! The bytes of an archive in parts, between a blocking thread and the database.

use std::io::{self, Read, Write};

use launchway_domain::deployments::SiteArchive;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

/// Sends bytes in parts.
pub(super) struct PartWriter {
    sender: mpsc::Sender<Vec<u8>>,
    part: Vec<u8>,
    size: u64,
    hash: Sha256,
}

impl PartWriter {
    pub(super) fn to(sender: mpsc::Sender<Vec<u8>>) -> Self {
        Self { sender, part: Vec::with_capacity(SiteArchive::PART), size: 0, hash: Sha256::new() }
    }

    /// Sends the last part, and returns the size and the hash of all bytes. Blocks.
    pub(super) fn finish(mut self) -> io::Result<(u64, [u8; 32])> {
        if !self.part.is_empty() {
            self.send()?;
        }
        Ok((self.size, self.hash.finalize().into()))
    }

    fn send(&mut self) -> io::Result<()> {
        let part = std::mem::replace(&mut self.part, Vec::with_capacity(SiteArchive::PART));
        self.sender.blocking_send(part).map_err(|_closed| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for PartWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = &bytes[..bytes.len().min(SiteArchive::PART - self.part.len())];
        self.part.extend_from_slice(taken);
        self.size += taken.len() as u64;
        self.hash.update(taken);
        if self.part.len() == SiteArchive::PART {
            self.send()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads bytes that arrive in parts.
pub(super) struct PartReader {
    receiver: mpsc::Receiver<Vec<u8>>,
    part: io::Cursor<Vec<u8>>,
    size: u64,
    hash: Sha256,
}

impl PartReader {
    pub(super) fn of(receiver: mpsc::Receiver<Vec<u8>>) -> Self {
        Self { receiver, part: io::Cursor::default(), size: 0, hash: Sha256::new() }
    }

    /// Returns the size and the hash of all bytes that were read.
    pub(super) fn finish(self) -> (u64, [u8; 32]) {
        (self.size, self.hash.finalize().into())
    }
}

impl Read for PartReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.part.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                self.size += read as u64;
                self.hash.update(&buffer[..read]);
                return Ok(read);
            }
            match self.receiver.blocking_recv() {
                Some(part) => self.part = io::Cursor::new(part),
                None => return Ok(0),
            }
        }
    }
}
