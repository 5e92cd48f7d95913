#![doc = include_str!("../README.md")]

mod auth;
mod body;
mod caller;
mod client;
mod docs;
mod envelope;
mod error;
mod fields;
mod front_door;
mod health;
mod metrics;
mod moment;
mod openapi;
mod organizations;
mod request_ids;
mod routes;
mod state;
mod users;

pub use self::{
    front_door::front_door,
    metrics::Metrics,
    openapi::document,
    routes::{Operation, configure, operations},
    state::{Api, ApiOptions},
};
