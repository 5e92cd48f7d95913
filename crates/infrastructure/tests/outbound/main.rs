//! Contract tests of the ports of messages and of certificates, with real receivers, real certificates and a real mail server.
//! Faulty peers are scripted byte by byte.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod acme;
mod arena;
mod forbidden;
mod mail;
mod mail_faults;
mod mail_safety;
mod registry;
mod webhook_faults;
mod webhooks;
