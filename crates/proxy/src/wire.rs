//! Validates the bytes of a client before they are parsed.
//!
//! hyper accepts what two servers may parse differently: lines that end without a carriage return, a
//! length beside chunks, a duplicate length. Behind a proxy that allows request smuggling, so every
//! byte of a head is checked here first.
//!
//! **Invariant:** a request that reaches an application was framed by hyper, from bytes that this module
//! found unambiguous.

mod chunks;
mod head;
mod scanner;

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::scanner::{Place, Scanner};
use crate::{Limits, exchange::Peer, files::Transport, stall::Stall};

/// Bytes that are invalid in every head: hyper answers 400 and closes the connection.
const SPOILER: &[u8] = b"\0\r\n\r\n";

/// A client's connection that passes on only unambiguous requests, and enforces the timeouts.
#[derive(Debug)]
pub(crate) struct Wire<S> {
    stream: S,
    peer: Arc<Peer>,
    scanner: Scanner,
    is_spoiled: bool,
    /// Runs from the first byte of a head to the last.
    head: Stall,
    /// Runs between requests.
    idle: Stall,
    /// Runs while the client does not read.
    unread: Stall,
    /// The same for a connection that may be upgraded.
    unread_beyond: Stall,
}

impl<S> Wire<S> {
    pub(crate) fn new(stream: S, peer: Arc<Peer>, limits: &Limits) -> Self {
        Self {
            stream,
            peer,
            scanner: Scanner::new(limits.head_bytes),
            is_spoiled: false,
            head: Stall::new(limits.request_head),
            idle: Stall::new(limits.keep_alive),
            unread: Stall::new(limits.client_stall),
            unread_beyond: Stall::new(limits.tunnel_stall),
        }
    }

    fn look_at(&mut self, buffer: &mut ReadBuf<'_>, start: usize) -> io::Result<()> {
        let Err(fault) = self.scanner.feed(&buffer.filled()[start..]) else { return Ok(()) };
        tracing::debug!(fault.reason, "client sent an ambiguous request");
        self.is_spoiled = true;
        buffer.set_filled(start + fault.good);
        if !fault.is_in_head || buffer.remaining() < SPOILER.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, fault.reason));
        }
        buffer.put_slice(SPOILER);
        Ok(())
    }

    fn reset_timeout(&mut self) -> Poll<()> {
        self.idle.reset();
        self.head.reset();
        Poll::Pending
    }

    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.scanner.place() {
            // The client may have sent more already, and waits for us.
            _ if self.peer.is_busy() => self.reset_timeout(),
            // The first request has the timeout of a head.
            Place::BeforeFirst | Place::InHead => self.head.poll_over(cx),
            Place::Between => self.idle.poll_over(cx),
            Place::InBody | Place::Beyond => self.reset_timeout(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_spoiled {
            return Poll::Ready(Ok(()));
        }
        let start = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Pending => self.poll_timeout(cx).map(|()| Err(io::ErrorKind::TimedOut.into())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => {
                self.idle.reset();
                let looked = self.look_at(buffer, start);
                if !matches!(self.scanner.place(), Place::InHead) {
                    self.head.reset();
                }
                Poll::Ready(looked)
            }
        }
    }
}

impl<S> Wire<S> {
    fn poll_unread<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match written {
            Poll::Pending => {
                let stall = match self.scanner.place() {
                    Place::Beyond => &mut self.unread_beyond,
                    _ => &mut self.unread,
                };
                stall.poll_over(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
            }
            ready => {
                self.unread.reset();
                self.unread_beyond.reset();
                ready
            }
        }
    }
}

impl<S: Transport> AsyncWrite for Wire<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let written = this.stream.poll_write_with_files(cx, slices, this.peer.files());
        self.poll_unread(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
