#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod database;
pub mod engine;
pub mod figures;
pub mod ledger;
