#![doc = include_str!("../README.md")]
//!
//! **Invariant:** the types of requests and responses are this crate's own. The relations of a view are
//! absent (`None`, empty) unless a handler attaches them, so that no response is recursive.

mod applications;
mod audit;
mod auth;
mod body;
mod caller;
mod client;
mod cluster;
mod deployments;
mod docs;
mod endpoint;
mod envelope;
mod error;
mod extensions;
mod fields;
mod git;
mod health;
mod idempotent;
mod input;
mod invitations;
mod logs;
mod metrics;
mod middleware;
mod notifications;
mod openapi;
mod organizations;
mod pages;
mod previews;
mod query;
mod repeated;
mod request_ids;
mod router;
mod routes;
mod schema;
mod state;
mod timestamp;
mod users;
mod views;
mod webhooks;

pub use self::{
    client::{is_local, origin},
    endpoint::{Access, Operation},
    metrics::Metrics,
    middleware::{is_from_own_page, middleware},
    openapi::document,
    router::{configure, operations},
    state::{Api, ApiOptions},
};
