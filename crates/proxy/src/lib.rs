//! The front proxy: leads each request to the application that it is for.
//!
//! It is a process of its own, so that the control plane can end and start again while
//! applications serve. The control plane speaks to it by a socket: see [`control`].

pub mod access_log;
pub mod body;
pub mod control;
pub mod pages;
pub mod routes;
pub mod site;
pub mod traffic;
