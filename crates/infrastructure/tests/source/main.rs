//! Contract tests of the ports of source code and of published folders, with real repositories and real
//! servers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod arena;
mod branches;
mod cache;
mod cancellation;
mod changes;
mod credentials;
mod fetch;
mod hosted;
mod hostile;
mod limits;
mod policy;
mod refusals;
mod servers;
mod sites;
mod ssh;
