//! Names for requests: cheap, and never the same twice.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

use actix_web::http::header::HeaderValue;

/// Makes request ids: a random part for the process, and a number.
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
    pub(crate) fn next(&self) -> HeaderValue {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        HeaderValue::try_from(format!("{:016x}-{number:x}", self.process))
            .unwrap_or(HeaderValue::from_static("unnamed"))
    }
}
