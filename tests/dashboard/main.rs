//! The dashboard of the running binary, by HTTP and in a real browser.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod accessibility;
mod extensions;
mod harness;
mod hostile_texts;
mod installation;
mod journey;
mod keyboard;
mod live_log;
mod live_pages;
mod notifications;
mod pages;
mod pictures;
mod requests;
mod sessions;
mod sizes;
mod uploads;
mod usage;
