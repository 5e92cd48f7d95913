//! The body of a request to an application.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

use super::Upstream;
use crate::{body::BoxError, exchange::Exchange, stall::Stall};

/// Holds a body until it is read. An unread body can be sent again.
#[derive(Debug)]
pub(crate) struct Slot {
    body: Mutex<Option<Incoming>>,
    progress: AtomicU8,
}

const SENDING: u8 = 0;
const SENT: u8 = 1;
const BROKEN: u8 = 2;
const STALLED: u8 = 3;

impl Slot {
    pub(crate) fn holding(body: Incoming) -> Arc<Self> {
        Arc::new(Self { body: Mutex::new(Some(body)), progress: AtomicU8::new(SENDING) })
    }

    /// Returns whether nothing of the body has been read.
    pub(crate) fn is_untouched(&self) -> bool {
        self.body.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns whether the whole body has been sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.progress.load(Ordering::Relaxed) == SENT
    }

    /// Returns whether the client stopped sending.
    pub(crate) fn is_stalled(&self) -> bool {
        self.progress.load(Ordering::Relaxed) == STALLED
    }

    /// Returns whether the client disconnected, or sent an invalid body.
    pub(crate) fn is_broken(&self) -> bool {
        self.progress.load(Ordering::Relaxed) == BROKEN
    }

    fn put(&self, body: Option<Incoming>) {
        *self.body.lock().unwrap_or_else(PoisonError::into_inner) = body;
    }

    fn take(&self) -> Option<Incoming> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The body sent to an application.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Nothing,
    Stream(Stream),
}

#[derive(Debug)]
pub(crate) struct Stream {
    body: Option<Incoming>,
    is_touched: bool,
    slot: Arc<Slot>,
    stall: Stall,
    exchange: Arc<Exchange>,
    // Keeps the upstream alive until the last byte is sent.
    _upstream: Arc<Upstream>,
}

impl Outgoing {
    /// Takes the body out of its slot. It is put back unless it is read.
    pub(crate) fn take(
        slot: &Arc<Slot>,
        upstream: &Arc<Upstream>,
        exchange: &Arc<Exchange>,
        limit: Duration,
    ) -> Self {
        Self::Stream(Stream {
            body: slot.take(),
            is_touched: false,
            slot: Arc::clone(slot),
            stall: Stall::new(limit),
            exchange: Arc::clone(exchange),
            _upstream: Arc::clone(upstream),
        })
    }
}

impl Stream {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.is_touched = true;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.stall.reset();
                self.exchange.received(frame.data_ref().map_or(0, Bytes::len));
                if body.is_end_stream() {
                    self.slot.progress.store(SENT, Ordering::Relaxed);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.slot.progress.store(BROKEN, Ordering::Relaxed);
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(None) => {
                self.slot.progress.store(SENT, Ordering::Relaxed);
                Poll::Ready(None)
            }
            Poll::Pending => match self.stall.poll_over(cx) {
                Poll::Ready(()) => {
                    self.slot.progress.store(STALLED, Ordering::Relaxed);
                    Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::TimedOut).into())))
                }
                Poll::Pending => Poll::Pending,
            },
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.is_touched {
            self.slot.put(self.body.take());
        }
    }
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Nothing => Poll::Ready(None),
            Self::Stream(stream) => stream.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Stream(stream) => stream.body.as_ref().is_none_or(HttpBody::is_end_stream),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Nothing => SizeHint::with_exact(0),
            Self::Stream(stream) => stream.body.as_ref().map_or_else(SizeHint::default, HttpBody::size_hint),
        }
    }
}
