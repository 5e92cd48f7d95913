//! What an answer is made of.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Full, combinators::UnsyncBoxBody};

/// Whatever ends an answer too early.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer: from memory, from a file or from an application.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// A body that is known already.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    boxed(Full::new(bytes.into()))
}

/// No body.
pub fn empty() -> Body {
    boxed(Empty::new())
}

/// Any body.
pub fn boxed<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}
