//! Source that users send to the server: `git push` by real clients, and uploads.

mod access;
mod blocks;
mod creation;
mod hostile;
mod kills;
mod push;
mod replicas;
mod stage;
mod uploads;
