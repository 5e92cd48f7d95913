//! The command line as users and scripts use it, against a real server.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod accounts;
mod animation;
mod applications;
mod asked;
mod deployments;
mod doctor;
mod domains;
mod env;
mod extensions;
mod follow;
mod harness;
mod logs;
mod notifications;
mod organizations;
mod person;
mod picture;
mod previews;
mod relay;
mod repositories;
mod seen;
mod sessions;
mod source;
mod terminal;
mod tokens;
mod tour;
mod tunnel;
mod uploads;
