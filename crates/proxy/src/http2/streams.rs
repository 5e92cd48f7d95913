//! The streams of one connection, and how long each waits for its client.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

use crate::{
    body::{Body, BoxError},
    exchange::StreamPermit,
};

/// The streams of a connection.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    start: Instant,
    begun: Arc<AtomicU64>,
    /// Those whose response is not complete.
    open: Arc<Mutex<Vec<Weak<AtomicU64>>>>,
}

impl Default for Streams {
    fn default() -> Self {
        Self { start: Instant::now(), begun: Arc::default(), open: Arc::default() }
    }
}

impl Streams {
    /// Returns the number of streams since the start of the connection.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Watches the body of a response.
    pub(super) fn watch(
        &self,
        response: Response<Body>,
        permit: Option<StreamPermit>,
    ) -> Response<StreamBody> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let given = Arc::new(AtomicU64::new(0));
        if !response.body().is_end_stream() {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|stream| stream.strong_count() > 0);
            open.push(Arc::downgrade(&given));
        }
        response.map(|body| StreamBody { body, start: self.start, given, _permit: permit })
    }

    /// Returns whether the client has not read from a stream for `limit`.
    pub(super) fn has_stalled(&self, now: Instant, limit: Duration) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let now = milliseconds(now.duration_since(self.start));
        let limit = milliseconds(limit);
        open.iter().filter_map(Weak::upgrade).any(|given| match given.load(Ordering::Relaxed) {
            0 => false,
            given => now.saturating_sub(given) >= limit,
        })
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A body that knows since when its client has not taken more of it.
#[derive(Debug)]
pub(super) struct StreamBody {
    body: Body,
    start: Instant,
    /// The time of the last frame, in milliseconds since `start`; 0 while the client waits for the next one.
    given: Arc<AtomicU64>,
    _permit: Option<StreamPermit>,
}

impl HttpBody for StreamBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        let given = match frame {
            Poll::Ready(_) => milliseconds(self.start.elapsed()).max(1),
            Poll::Pending => 0,
        };
        self.given.store(given, Ordering::Relaxed);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
