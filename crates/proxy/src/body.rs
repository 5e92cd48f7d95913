//! What an answer is made of.

use std::{
    error::Error,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::{
    exchange::Exchange,
    upstream::{Answer, Upstream},
};

/// Whatever ends an answer too early.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The body of an answer: from memory, from a file or from an application.
#[derive(Debug)]
pub struct Body {
    source: Source,
    /// The request that this answers is under way for as long as this is here.
    exchange: Option<Arc<Exchange>>,
    /// Where it comes from must stay until its end.
    origin: Option<Arc<Upstream>>,
}

type AnyBody = Pin<Box<dyn HttpBody<Data = Bytes, Error = BoxError> + Send>>;

enum Source {
    Memory(Bytes),
    // Not behind a `dyn`: nearly every answer is one of these.
    Upstream(Answer),
    Any(AnyBody),
}

/// A body that is known already.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Body { source: Source::Memory(bytes.into()), exchange: None, origin: None }
}

/// No body.
pub fn empty() -> Body {
    full(Bytes::new())
}

/// Any body.
pub fn boxed<B>(body: B) -> Body
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Body { source: Source::Any(Box::pin(IntoBoxError(Box::pin(body)))), exchange: None, origin: None }
}

impl Body {
    pub(crate) fn from_upstream(answer: Answer) -> Self {
        Self { source: Source::Upstream(answer), exchange: None, origin: None }
    }

    /// Counts what goes out, and tells of the request's end when the last byte is out.
    pub(crate) fn ends(&mut self, exchange: Arc<Exchange>) {
        self.exchange = Some(exchange);
    }

    /// Reads from there until its end.
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
        let frame = match &mut self.source {
            Source::Memory(bytes) if bytes.is_empty() => None,
            Source::Memory(bytes) => Some(Ok(Frame::data(std::mem::take(bytes)))),
            Source::Upstream(answer) => ready!(answer.poll_frame(cx)),
            Source::Any(body) => ready!(body.as_mut().poll_frame(cx)),
        };
        if let (Some(exchange), Some(Ok(frame))) = (&self.exchange, &frame) {
            exchange.sent(frame.data_ref().map_or(0, Bytes::len));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Memory(bytes) => bytes.is_empty(),
            Source::Upstream(answer) => answer.is_end_stream(),
            Source::Any(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Memory(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Upstream(answer) => answer.size_hint(),
            Source::Any(body) => body.size_hint(),
        }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Memory(_) => "Memory",
            Self::Upstream(_) => "Upstream",
            Self::Any(_) => "Any",
        })
    }
}

/// The same body with an error that can be any.
struct IntoBoxError<B>(Pin<Box<B>>);

impl<B> HttpBody for IntoBoxError<B>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.as_mut().poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
