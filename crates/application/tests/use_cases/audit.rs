//! Reading and verifying the audit log.

mod list;
mod verify;
