//! The command line as people and scripts use it, against a real server.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod applications;
mod deploying;
mod following;
mod logs;
mod person;
mod picture;
mod recording;
mod repositories;
mod seen;
mod sessions;
mod stage;
mod terminal;
mod tour;
mod tunnel;
