#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod audit;
pub mod auth;
mod error;
pub mod organizations;
mod services;
pub mod users;

pub use self::{
    error::Error,
    services::{Ports, Services, Tools},
};
