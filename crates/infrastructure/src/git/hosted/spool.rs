//! Collects the body of a request in a file without a name.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use data_encoding::HEXLOWER;
use launchway_domain::{
    deployments::StepError,
    sources::{Received, Spool},
};
use launchway_system::files;
use sha2::{Digest as _, Sha256};

use super::{super::tree::size, GitLimits};

/// The bytes that are collected before they are written.
const BUFFER: usize = 512 * 1024;

/// A file that is gone when it is closed.
pub(super) struct FileSpool {
    file: Option<File>,
    buffer: Vec<u8>,
    hash: Sha256,
    bytes: u64,
    limit: u64,
}

impl FileSpool {
    /// Creates one in `folder`, for a body within `limits`.
    pub(super) async fn open(folder: &Path, limits: &GitLimits) -> Result<Self, StepError> {
        let (folder, needed) = (folder.to_owned(), limits.free_bytes);
        let opened = files::off_thread("store what is sent", move || {
            let is_room = files::free_bytes(&folder)? >= needed;
            is_room.then(|| nameless_file(&folder)).transpose()
        });
        let file = opened.await?.ok_or_else(|| {
            StepError::Rejected(format!("This server has less than {} of free disk space.", size(needed)))
        })?;
        let (buffer, hash) = (Vec::new(), Sha256::new());
        Ok(Self { file: Some(file), buffer, hash, bytes: 0, limit: limits.source_bytes })
    }

    /// Writes the buffer.
    async fn flush(&mut self) -> Result<(), StepError> {
        let (file, buffer) = (self.file.take(), std::mem::take(&mut self.buffer));
        let written = files::off_thread("store what is sent", move || {
            let mut file = file.ok_or_else(|| io::Error::other("an earlier write failed"))?;
            file.write_all(&buffer)?;
            Ok(file)
        });
        self.file = Some(written.await?);
        Ok(())
    }
}

#[async_trait]
impl Spool for FileSpool {
    async fn write(&mut self, piece: &[u8]) -> Result<(), StepError> {
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        if self.bytes > self.limit {
            let limit = size(self.limit);
            return Err(StepError::Rejected(format!("What was sent is larger than {limit}.")));
        }
        self.hash.update(piece);
        self.buffer.extend_from_slice(piece);
        if self.buffer.len() >= BUFFER { self.flush().await } else { Ok(()) }
    }

    async fn finish(mut self: Box<Self>) -> Result<Received, StepError> {
        self.flush().await?;
        let file = self.file.take();
        let file = files::off_thread("store what is sent", move || {
            let mut file = file.ok_or_else(|| io::Error::other("an earlier write failed"))?;
            file.rewind()?;
            Ok(file)
        });
        let sha256 = HEXLOWER.encode(&self.hash.finalize());
        Ok(Received { file: file.await?, bytes: self.bytes, sha256 })
    }
}

/// Creates a file that only its owner may read, and removes its name.
pub(super) fn nameless_file(folder: &Path) -> io::Result<File> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!(".spool-{}-{number}", std::process::id()));
    files::remove(&path)?;
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}
