//! The proxy on real sockets: clients on one side, applications on the other.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod access_log;
mod application;
mod client;
mod endpoints;
mod forward;
mod handover;
mod headers;
mod http2;
mod limits;
mod persistence;
mod process;
mod retries;
mod routes;
mod sites;
mod smuggled_requests;
mod switch;
mod tls;
