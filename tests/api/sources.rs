//! Source that users send to the server: `git push` by real clients, and uploads.

mod access;
mod blocks;
mod creation;
mod harness;
mod hostile;
mod kills;
mod on_postgres;
mod push;
mod uploads;
