#![doc = include_str!("../README.md")]

pub mod backup;
pub mod catalog;
pub mod certificates;
pub mod data_dir;
pub mod extensions;
pub mod git;
mod http;
pub mod outbound;
pub mod passwords;
pub mod registry;
pub mod routes;
pub mod secrets;
pub mod sites;
pub mod ssh_keys;

pub use launchway_database as database;
pub use launchway_docker::{self as docker, health, nixpacks};
pub use launchway_system::clock;
