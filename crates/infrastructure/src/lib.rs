#![doc = include_str!("../README.md")]

pub mod backup;
pub mod catalog;
pub mod clock;
pub mod data_dir;
pub mod database;
pub mod docker;
pub mod extensions;
mod files;
pub mod git;
pub mod health;
mod links;
pub mod nixpacks;
pub mod outbound;
pub mod passwords;
mod process;
pub mod routes;
pub mod secrets;
pub mod sites;
pub mod ssh_keys;
