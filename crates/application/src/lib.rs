#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod applications;
pub mod audit;
pub mod auth;
mod bell;
mod companions;
mod course;
pub mod deployments;
pub mod embedding;
mod error;
pub mod extensions;
pub mod idempotency;
pub mod logs;
pub mod notifications;
pub mod organizations;
mod printing;
pub mod routes;
mod runtime_logs;
mod services;
pub mod upkeep;
pub mod users;
pub mod webhooks;
pub mod worker;

pub use self::{
    bell::{Bell, Listener},
    error::Error,
    runtime_logs::RuntimeLogs,
    services::{Basics, OutsidePorts, Ports, Services, Tools},
};
