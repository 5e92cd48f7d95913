//! The command line as people and scripts use it, against a real server.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod person;
mod sessions;

mod accounts;
mod domains;
mod env;
mod extensions;
mod notifications;
mod organizations;
mod tokens;
