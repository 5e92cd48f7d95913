//! The dashboard of the running binary, by HTTP and in a real browser.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod hostile_texts;
mod journey;
mod pages;
mod requests;
mod sessions;
mod sizes;
