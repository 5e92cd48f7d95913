#![doc = include_str!("../README.md")]
//!
//! **Invariant:** a use case changes stored state only by one `Vec<Write>` that it hands to
//! `UnitOfWork::commit`. A condition on stored state is a guard inside a write (`Stale`, `Taken`,
//! `Refused`), never a read followed by a write. The exceptions are ports that write only their own tables:
//! `LoginThrottle`, `LogSink`, `ExecutionLog`, `IdempotencyStore`, `DeliveryMemory`, `ImageRecords` and, for background
//! tasks, `HomeRepository`, `JobQueue` and `DeliveryQueue`.
//!
//! **Invariant:** this crate starts no runtime, and knows no HTTP status and no type of a database, so that
//! services work behind any front end.
#![warn(missing_docs)]

pub mod applications;
pub mod audit;
#[cfg(feature = "accounts")]
pub mod auth;
#[cfg(feature = "certificates")]
pub mod certificates;
pub mod deployments;
mod engine_status;
mod engine_view;
mod error;
#[cfg(feature = "extensions")]
pub mod extensions;
pub mod homes;
pub mod idempotency;
#[cfg(feature = "server")]
pub mod installation;
mod job_control;
mod log_writer;
pub mod logs;
pub mod maintenance;
#[cfg(feature = "server")]
pub mod metrics;
#[cfg(feature = "server")]
pub mod nodes;
#[cfg(feature = "notifications")]
pub mod notifications;
pub mod organizations;
#[cfg(feature = "webhooks")]
pub mod previews;
pub mod quotas;
pub mod reconciler;
pub mod replicas;
pub mod routes;
mod runtime_logs;
mod service_context;
#[cfg(feature = "server")]
mod services;
#[cfg(feature = "server")]
pub mod snapshots;
#[cfg(feature = "server")]
pub mod sources;
mod terms;
#[cfg(feature = "accounts")]
pub mod users;
mod wake_signal;
#[cfg(feature = "webhooks")]
pub mod webhooks;
pub mod worker;

#[cfg(feature = "server")]
pub use self::services::{OutboundPorts, Ports, Services};
pub use self::{
    engine_status::{EngineStatus, Outage},
    engine_view::EngineView,
    error::Error,
    homes::Homes,
    replicas::OwnReplica,
    runtime_logs::{LogFreshness, RuntimeLogs},
    service_context::ServiceContext,
    terms::Terms,
    wake_signal::{WakeListener, WakeSignal},
};
