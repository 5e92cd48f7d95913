#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod applications;
pub mod audit;
pub mod auth;
mod bell;
mod course;
pub mod deployments;
pub mod embedding;
mod engine_status;
mod engine_view;
mod error;
pub mod extensions;
pub mod idempotency;
pub mod logs;
pub mod maintenance;
pub mod notifications;
pub mod organizations;
mod printing;
pub mod quotas;
pub mod reconciler;
pub mod routes;
mod runtime_logs;
mod services;
pub mod users;
pub mod webhooks;
pub mod worker;

pub use self::{
    bell::{Bell, Listener},
    engine_status::{EngineStatus, Outage},
    engine_view::EngineView,
    error::Error,
    runtime_logs::{LogFreshness, RuntimeLogs},
    services::{Basics, OutsidePorts, Ports, Services, Tools},
};
