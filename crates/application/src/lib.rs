#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod auth;
mod error;
mod services;
pub mod users;

pub use self::{
    error::Error,
    services::{Ports, Services, Tools},
};
