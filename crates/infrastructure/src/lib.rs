#![doc = include_str!("../README.md")]

pub mod clock;
pub mod data_dir;
pub mod database;
pub mod docker;
pub mod health;
pub mod passwords;
mod process;
pub mod secrets;
