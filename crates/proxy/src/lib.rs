#![doc = include_str!("../README.md")]

mod accept;
pub mod access_log;
pub mod body;
pub mod certificates;
mod close;
mod connection_limiter;
pub mod control;
mod exchange;
mod files;
mod forward;
mod host;
mod http2;
pub mod pages;
mod proxy;
pub mod routes;
mod run;
mod settings;
mod signal;
pub mod site;
mod stall;
mod store;
mod table;
mod tls;
pub mod traffic;
mod upstream;
mod wire;
mod workers;

pub use run::{RunError, run, run_in_boot};
pub use settings::{Limits, Settings, SuccessorCommand};
