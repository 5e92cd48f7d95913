//! Streams a file, or a part of it, to a client.

use std::{
    fs::File,
    io::{self, IoSliceMut},
    ops::Range,
    os::unix::fs::FileExt as _,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use rustix::io::{ReadWriteFlags, preadv2};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::files::{FileQueue, MOST_BYTES};

/// The size of a chunk in memory, and so the memory for each client.
const CHUNK: u64 = 64 * 1024;

/// Sends a part of a file, one chunk at a time, when the client has taken the last one. The file is open,
/// so it may be replaced or removed meanwhile; one that is truncated ends the response with an error, so
/// that the client detects the incomplete body.
#[derive(Debug)]
pub(crate) struct FileBody {
    file: Arc<File>,
    left: Range<u64>,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl FileBody {
    pub(super) fn new(file: File, part: Range<u64>) -> Self {
        Self { file: Arc::new(file), left: part, reading: None }
    }

    /// Returns the next chunk: in memory, or in `files` if there is such a queue.
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
        files: Option<&FileQueue>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let most = if files.is_some() { MOST_BYTES } else { CHUNK };
        let next = self.left.start..self.left.end.min(self.left.start.saturating_add(most));
        let is_read = match &mut self.reading {
            None => false,
            Some(reading) => {
                let chunk = ready!(Pin::new(reading).poll(context)).map_err(io::Error::other).flatten();
                self.reading = None;
                match chunk {
                    Ok(bytes) if bytes.is_empty() => true,
                    chunk => return Poll::Ready(Some(self.took(chunk))),
                }
            }
        };
        if let Some(files) = files
            && (is_read || is_cached(&self.file, &next))
        {
            let placeholder = files.put(&self.file, next);
            return Poll::Ready(Some(self.took(Ok(placeholder))));
        }
        if files.is_none()
            && let Some(bytes) = read_cached(&self.file, next.clone())
        {
            return Poll::Ready(Some(self.took(Ok(bytes))));
        }
        // Reading blocks, which threads that serve requests must not.
        let (file, in_memory) = (Arc::clone(&self.file), files.is_none());
        self.reading = Some(spawn_blocking(move || match in_memory {
            true => read(&file, next),
            false => read_ahead(&file, next).map(|()| Bytes::new()),
        }));
        self.poll_frame(context, files)
    }

    fn took(&mut self, chunk: io::Result<Bytes>) -> io::Result<Frame<Bytes>> {
        match &chunk {
            Ok(bytes) => self.left.start += bytes.len() as u64,
            Err(_) => self.left.start = self.left.end,
        }
        chunk.map(Frame::data)
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.end.saturating_sub(self.left.start))
    }
}

/// Returns whether the kernel has this part in memory, by its first and its last byte: it reads ahead in one piece.
fn is_cached(file: &File, part: &Range<u64>) -> bool {
    let last = part.end.saturating_sub(1);
    [part.start, last].into_iter().all(|at| read_cached(file, at..at + 1).is_some())
}

/// Reads a part of a file into the memory of the kernel. One that ends early is found out when it is sent.
fn read_ahead(file: &File, part: Range<u64>) -> io::Result<()> {
    let mut chunk = vec![0; usize::try_from(CHUNK).map_err(io::Error::other)?];
    let mut at = part.start;
    while at < part.end {
        match file.read_at(&mut chunk, at)? {
            0 => return Ok(()),
            count => at += count as u64,
        }
    }
    Ok(())
}

/// Reads exactly this part into memory.
pub(super) fn read(file: &File, part: Range<u64>) -> io::Result<Bytes> {
    let length = usize::try_from(part.end.saturating_sub(part.start)).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, part.start)?;
    Ok(bytes.into())
}

/// Reads exactly this part into memory, unless that has to wait for the disk.
pub(super) fn read_cached(file: &File, part: Range<u64>) -> Option<Bytes> {
    let length = usize::try_from(part.end.saturating_sub(part.start)).ok()?;
    let mut bytes = vec![0; length];
    let count = preadv2(file, &mut [IoSliceMut::new(&mut bytes)], part.start, ReadWriteFlags::NOWAIT).ok()?;
    (count == length).then(|| bytes.into())
}
