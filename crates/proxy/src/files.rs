//! Files on their way to a client: the kernel copies them to the connection.
//!
//! hyper writes only what is in memory. So a body gives it a placeholder of the same length, which nobody reads, and the
//! connection sends a part of the file where hyper writes the placeholder.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, IoSlice},
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use rustix::{
    fs::sendfile,
    net::{SendAncillaryBuffer, SendFlags, sendmsg},
};
use tokio::{
    io::{AsyncWrite, Interest},
    net::TcpStream,
};
use tokio_rustls::server::TlsStream;

/// Never read, and so never in memory.
static PLACEHOLDER: [u8; 1_024 * 1_024] = [0; 1_024 * 1_024];

/// The largest part of a file that is sent at once.
pub(crate) const MOST_BYTES: u64 = PLACEHOLDER.len() as u64;

/// The parts of files that a connection sends, in their order.
#[derive(Debug, Default)]
pub(crate) struct FileQueue(Mutex<VecDeque<Part>>);

#[derive(Debug)]
struct Part {
    file: Arc<File>,
    left: Range<u64>,
}

impl FileQueue {
    /// Queues a part of a file, of at most [`MOST_BYTES`]. Returns its placeholder, to be written in its place.
    pub(crate) fn put(&self, file: &Arc<File>, part: Range<u64>) -> Bytes {
        let length = usize::try_from(part.end - part.start).unwrap_or(usize::MAX);
        let placeholder = Bytes::from_static(&PLACEHOLDER[..length.min(PLACEHOLDER.len())]);
        let left = part.start..part.start + placeholder.len() as u64;
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.push_back(Part { file: Arc::clone(file), left });
        placeholder
    }

    /// Sends bytes of the first part, at most `count`. A file that is shorter by now is an error, so that the client detects
    /// the incomplete body.
    fn send(&self, stream: &TcpStream, count: usize) -> io::Result<usize> {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let part = parts.front_mut().ok_or(io::ErrorKind::InvalidData)?;
        let left = usize::try_from(part.left.end - part.left.start).unwrap_or(usize::MAX);
        let sent = sendfile(stream, &part.file, Some(&mut part.left.start), count.min(left))?;
        if sent == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if part.left.is_empty() {
            parts.pop_front();
        }
        Ok(sent)
    }
}

fn is_placeholder(slice: &[u8]) -> bool {
    !slice.is_empty() && PLACEHOLDER.as_ptr_range().contains(&slice.as_ptr())
}

/// A connection to which files can be sent.
pub(crate) trait Transport: AsyncWrite + Unpin {
    /// Writes bytes, or a part of the next file where its placeholder stands.
    fn poll_write_with_files(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        files: &FileQueue,
    ) -> Poll<io::Result<usize>>;
}

impl Transport for TcpStream {
    fn poll_write_with_files(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        files: &FileQueue,
    ) -> Poll<io::Result<usize>> {
        let in_memory = slices.iter().take_while(|slice| !is_placeholder(slice)).count();
        let (ahead, rest) = slices.split_at(in_memory);
        match (ahead, rest) {
            (_, []) => std::pin::Pin::new(self).poll_write_vectored(cx, slices),
            ([], _) => {
                let count = rest.iter().take_while(|slice| is_placeholder(slice)).map(|slice| slice.len());
                let count = count.sum();
                poll_io(self, cx, || files.send(self, count))
            }
            // The file follows at once, in the same packet.
            _ => poll_io(self, cx, || {
                let mut nothing = SendAncillaryBuffer::default();
                Ok(sendmsg(&*self, ahead, &mut nothing, SendFlags::MORE | SendFlags::NOSIGNAL)?)
            }),
        }
    }
}

/// Its bytes have to be in memory, to be encrypted: no file is queued.
impl Transport for Box<TlsStream<TcpStream>> {
    fn poll_write_with_files(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        _files: &FileQueue,
    ) -> Poll<io::Result<usize>> {
        std::pin::Pin::new(self).poll_write_vectored(cx, slices)
    }
}

fn poll_io(
    stream: &TcpStream,
    cx: &mut Context<'_>,
    mut send: impl FnMut() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_write_ready(cx))?;
        match stream.try_io(Interest::WRITABLE, &mut send) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => return Poll::Ready(sent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_placeholder_is_one() {
        let (zeros, queue) = ([0; 16], FileQueue::default());
        let file = Arc::new(tempfile::tempfile().unwrap());
        let placeholder = queue.put(&file, 7..7 + MOST_BYTES);
        assert_eq!(placeholder.len() as u64, MOST_BYTES);
        assert!(is_placeholder(&placeholder) && is_placeholder(&placeholder[placeholder.len() - 1..]));
        assert!(!is_placeholder(&zeros) && !is_placeholder(&placeholder[placeholder.len()..]));
        assert!(!is_placeholder(&[]));
    }
}
