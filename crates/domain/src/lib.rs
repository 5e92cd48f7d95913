#![doc = include_str!("../README.md")]
//!
//! **Invariant:** this crate does no I/O and knows no SQL and no JSON, except for the JSON arrays of
//! Dockerfiles. Nothing here derives `Serialize`. Time, ids and randomness come through ports; clippy
//! rejects `Utc::now` and `Uuid::now_v7` elsewhere (`clippy.toml`).
#![warn(missing_docs)]

pub mod applications;
pub mod audit;
pub mod auth;
#[cfg(feature = "certificates")]
pub mod certificates;
pub mod clock;
pub mod deployments;
pub mod diagnostics;
#[cfg(feature = "dockerfile")]
pub mod dockerfile;
pub mod error_chain;
#[cfg(feature = "extensions")]
pub mod extensions;
#[cfg(feature = "testing")]
pub mod fixtures;
pub mod homes;
pub mod idempotency;
pub mod ids;
pub mod jobs;
mod limits;
pub mod logs;
pub mod metrics;
pub mod network;
pub mod nodes;
#[cfg(feature = "notifications")]
pub mod notifications;
pub mod organizations;
pub mod page;
#[cfg(feature = "webhooks")]
pub mod previews;
pub mod quotas;
pub mod replicas;
pub mod routes;
pub mod secret;
pub mod signals;
#[cfg(feature = "git")]
pub mod sources;
pub mod store;
mod store_error;
pub mod users;
pub mod value;
#[cfg(feature = "webhooks")]
pub mod webhooks;
#[cfg(feature = "yaml")]
pub mod yaml;
