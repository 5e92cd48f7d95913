//! Request ids: cheap and unique.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

/// The header of the request id.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request, for its response, its log lines and its audit entries.
#[derive(Clone)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    /// Returns the id that the caller sent, if it is valid.
    pub(crate) fn given(headers: &HeaderMap) -> Option<Self> {
        let given = headers.get(REQUEST_ID)?;
        let bytes = given.as_bytes();
        let is_name = (1..=128).contains(&bytes.len())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte));
        is_name.then(|| Self(given.clone()))
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<RequestId> for HeaderValue {
    fn from(id: RequestId) -> Self {
        id.0
    }
}

/// Creates request ids from a random part for the process and a counter.
pub(crate) struct RequestIds {
    process: u64,
    next: AtomicU64,
}

impl Default for RequestIds {
    fn default() -> Self {
        // The standard library seeds its hashers from the system's randomness.
        Self { process: RandomState::new().hash_one("launchway"), next: AtomicU64::new(1) }
    }
}

impl RequestIds {
    pub(crate) fn next(&self) -> RequestId {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let text = format!("{:016x}-{number:x}", self.process);
        RequestId(HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unnamed")))
    }
}
