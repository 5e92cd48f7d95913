#![doc = include_str!("../README.md")]

mod applications;
mod audit;
mod auth;
mod body;
mod caller;
mod client;
mod deployments;
mod docs;
mod envelope;
mod error;
mod extensions;
mod fields;
mod front_door;
mod health;
mod idempotent;
mod invitations;
mod logs;
mod metrics;
mod moment;
mod mounted;
mod notifications;
mod openapi;
mod organizations;
mod pages;
mod query;
mod repeated;
mod request_ids;
mod routes;
mod state;
mod users;
mod webhooks;

pub use self::{
    front_door::front_door,
    metrics::Metrics,
    mounted::{configure, operations},
    openapi::document,
    routes::Operation,
    state::{Api, ApiOptions},
};
