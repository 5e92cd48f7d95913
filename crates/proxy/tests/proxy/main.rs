//! The proxy on real sockets: clients on one side, applications on the other.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod application;
mod client;
mod forwarding;
mod handover;
mod headers;
mod keeping;
mod limits;
mod noting;
mod retries;
mod routing;
mod running;
mod smuggling;
mod switching;
