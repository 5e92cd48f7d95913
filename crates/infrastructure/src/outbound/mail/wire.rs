//! The connection that the SMTP client uses.

use std::{
    fmt, io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll, ready},
};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, WriteHalf, split};

use super::super::tls::Stream;

/// The most bytes that a server may send in a session: a line without an end would otherwise be buffered
/// for as long as it grows.
const MOST: u64 = 16 * 1024;
/// The most lines: with every line of a response, the response is parsed from its beginning again.
const LINES: usize = 256;

/// A server does not send its greeting again after `STARTTLS`, but the client waits for one at the start of
/// a session.
const GREETING: &[u8] = b"220 encrypted\r\n";

pub(super) struct Wire {
    reader: Box<dyn AsyncRead + Send + Sync + Unpin>,
    lines_left: usize,
    writer: WriteHalf<Box<dyn Stream>>,
    peer: SocketAddr,
}

impl Wire {
    /// For a session that the server begins.
    pub(super) fn new(stream: Box<dyn Stream>, peer: SocketAddr) -> Self {
        Self::after(b"", stream, peer)
    }

    /// For a session that starts again because it is encrypted now.
    pub(super) fn encrypted_midway(stream: Box<dyn Stream>, peer: SocketAddr) -> Self {
        Self::after(GREETING, stream, peer)
    }

    fn after(said: &'static [u8], stream: Box<dyn Stream>, peer: SocketAddr) -> Self {
        let (reader, writer) = split(stream);
        Self { reader: Box::new(said.chain(reader.take(MOST))), lines_left: LINES, writer, peer }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl AsyncTokioStream for Wire {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.lines_left == 0 {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(context, buffer))?;
        let ends = buffer.filled().iter().enumerate().skip(before).filter(|(_, byte)| **byte == b'\n');
        let ends: Vec<_> = ends.map(|(place, _)| place + 1).take(self.lines_left).collect();
        self.lines_left -= ends.len();
        if self.lines_left == 0
            && let Some(end) = ends.last()
        {
            buffer.set_filled(*end);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    async fn heard(said: String) -> String {
        let (here, mut there) = duplex(1024 * 1024);
        there.write_all(said.as_bytes()).await.unwrap();
        drop(there);
        let mut wire = Wire::new(Box::new(here), "127.0.0.1:25".parse().unwrap());
        let mut heard = String::new();
        wire.read_to_string(&mut heard).await.unwrap();
        heard
    }

    #[tokio::test]
    async fn a_server_is_heard_for_so_many_bytes_and_lines() {
        let most = usize::try_from(MOST).unwrap();
        for length in [most - 1, most] {
            assert_eq!(heard("x".repeat(length)).await.len(), length);
        }
        assert_eq!(heard("x".repeat(most + 1)).await.len(), most);
        for lines in [LINES - 1, LINES] {
            assert_eq!(heard("250-x\r\n".repeat(lines)).await.lines().count(), lines);
        }
        assert_eq!(heard("250-x\r\n".repeat(LINES) + "250 x").await, "250-x\r\n".repeat(LINES));
    }

    #[tokio::test]
    async fn who_encrypted_midway_is_greeted_all_the_same() {
        let (here, mut there) = duplex(64);
        there.write_all(b"250 x\r\n").await.unwrap();
        drop(there);
        let mut wire = Wire::encrypted_midway(Box::new(here), "127.0.0.1:25".parse().unwrap());
        let mut heard = String::new();
        wire.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "220 encrypted\r\n250 x\r\n");
    }
}
