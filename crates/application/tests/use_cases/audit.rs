//! Reading the audit trail, and checking that nobody tampered with it.

mod list;
mod verify;
