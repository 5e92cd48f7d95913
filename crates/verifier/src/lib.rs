#![doc = include_str!("../README.md")]
//!
//! **Invariant:** the verifier knows the ledger of a campaign, the tables and the labels of the engine. It
//! shares no code with the server, so that it shares no bug with it, and sends it no request.
#![warn(missing_docs)]

pub mod database;
pub mod engine;
pub mod figures;
pub mod ledger;
