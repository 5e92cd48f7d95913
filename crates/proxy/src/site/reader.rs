//! Streams a file, or a part of it, to a client.

use std::{
    fs::File,
    io,
    ops::Range,
    os::unix::fs::FileExt as _,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::task::{JoinHandle, spawn_blocking};

/// The size of a chunk, and so the memory for each client.
pub(super) const CHUNK: u64 = 64 * 1024;

/// Reads a part of a file, one chunk at a time, when the client has taken the last one. The file is open,
/// so it may be replaced or removed meanwhile; one that is truncated ends the response with an error, so
/// that the client detects the incomplete body.
#[derive(Debug)]
pub(super) struct FileBody {
    file: Arc<File>,
    left: Range<u64>,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl FileBody {
    pub(super) fn new(file: File, part: Range<u64>) -> Self {
        Self { file: Arc::new(file), left: part, reading: None }
    }
}

impl http_body::Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let next = self.left.start..self.left.end.min(self.left.start.saturating_add(CHUNK));
        let file = self.file.clone();
        let reading = self.reading.get_or_insert_with(|| spawn_blocking(move || read(&file, next)));
        let chunk = ready!(Pin::new(reading).poll(context)).map_err(io::Error::other).flatten();
        self.reading = None;
        match &chunk {
            Ok(bytes) => self.left.start += bytes.len() as u64,
            Err(_) => self.left.start = self.left.end,
        }
        Poll::Ready(Some(chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.end.saturating_sub(self.left.start))
    }
}

/// Reads exactly this part into memory.
pub(super) fn read(file: &File, part: Range<u64>) -> io::Result<Bytes> {
    let length = usize::try_from(part.end.saturating_sub(part.start)).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, part.start)?;
    Ok(bytes.into())
}
