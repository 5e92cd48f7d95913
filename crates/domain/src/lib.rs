#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod audit;
pub mod auth;
pub mod clock;
pub mod ids;
pub mod jobs;
pub mod organizations;
pub mod page;
pub mod secret;
pub mod store;
pub mod users;
pub mod value;
