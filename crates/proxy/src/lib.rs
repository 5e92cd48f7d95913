//! The front proxy: leads each request to the application that it is for.
//!
//! It is a process of its own, so that the control plane can end and start again while
//! applications serve. The control plane speaks to it by a socket: see [`control`].

mod accept;
pub mod access_log;
pub mod body;
mod closing;
pub mod control;
mod crowd;
mod exchange;
mod forward;
mod host;
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
pub mod traffic;
mod upstream;
mod wire;

pub use run::{RunError, run, run_in_boot};
pub use settings::{Limits, Settings};
