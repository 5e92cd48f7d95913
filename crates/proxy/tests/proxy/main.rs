//! The proxy on real sockets: clients on one side, applications on the other.

mod application;
mod client;
mod routing;
mod running;
