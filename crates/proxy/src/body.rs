//! Bodies of responses.

use std::{
    error::Error,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::{
    exchange::Exchange,
    site::FileBody,
    upstream::{Answer, Upstream},
};

/// An error that ends a response early.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The body of a response: from memory, from a file or from an application.
#[derive(Debug)]
pub struct Body {
    source: Source,
    /// Keeps the request in flight for as long as the body exists.
    exchange: Option<Arc<Exchange>>,
    /// Keeps the upstream alive until the end of the body.
    origin: Option<Arc<Upstream>>,
}

#[derive(Debug)]
enum Source {
    Memory(Bytes),
    // Not behind a `dyn`: nearly every response is one of these.
    Upstream(Answer),
    File(FileBody),
    Any(UnsyncBoxBody<Bytes, BoxError>),
}

/// A body in memory.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Body { source: Source::Memory(bytes.into()), exchange: None, origin: None }
}

/// An empty body.
pub fn empty() -> Body {
    full(Bytes::new())
}

/// Boxes any body.
pub fn boxed<B>(body: B) -> Body
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Body { source: Source::Any(body.map_err(Into::into).boxed_unsync()), exchange: None, origin: None }
}

impl Body {
    pub(crate) fn from_file(file: FileBody) -> Self {
        Self { source: Source::File(file), exchange: None, origin: None }
    }

    pub(crate) fn from_upstream(answer: Answer) -> Self {
        Self { source: Source::Upstream(answer), exchange: None, origin: None }
    }

    /// Counts the bytes sent, and ends the request's exchange after the last byte.
    pub(crate) fn ends(&mut self, exchange: Arc<Exchange>) {
        self.exchange = Some(exchange);
    }

    /// Keeps the upstream alive until the end of the body.
    pub(crate) fn reads(&mut self, origin: Arc<Upstream>) {
        self.origin = Some(origin);
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { source, exchange, .. } = &mut *self;
        let frame = match source {
            Source::Memory(bytes) if bytes.is_empty() => None,
            Source::Memory(bytes) => Some(Ok(Frame::data(std::mem::take(bytes)))),
            Source::Upstream(answer) => ready!(answer.poll_frame(cx)),
            Source::File(file) => {
                let files = exchange.as_ref().and_then(|exchange| exchange.files());
                ready!(file.poll_frame(cx, files)).map(|frame| frame.map_err(Into::into))
            }
            Source::Any(body) => ready!(Pin::new(body).poll_frame(cx)),
        };
        if let (Some(exchange), Some(Ok(frame))) = (exchange, &frame) {
            exchange.sent(frame.data_ref().map_or(0, Bytes::len));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Memory(bytes) => bytes.is_empty(),
            Source::Upstream(answer) => answer.is_end_stream(),
            Source::File(file) => file.is_end_stream(),
            Source::Any(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Memory(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Upstream(answer) => answer.size_hint(),
            Source::File(file) => file.size_hint(),
            Source::Any(body) => body.size_hint(),
        }
    }
}
