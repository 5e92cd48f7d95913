//! Tests that cannot be run against the binary from outside.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod panics;
mod reference;
mod router;
mod served;
mod shutdown;
