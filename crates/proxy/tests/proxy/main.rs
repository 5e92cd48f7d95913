//! The proxy on real sockets: clients on one side, applications on the other.

mod application;
mod client;
mod handover;
mod keeping;
mod routing;
mod running;
mod smuggling;
mod switching;
