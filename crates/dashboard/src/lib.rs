#![doc = include_str!("../README.md")]
//!
//! **Invariant:** every form is accepted only from a page of this server's own origin, and with the token of the session,
//! except those before a login, which have no session yet.
//!
//! **Invariant:** a handler calls a use case for every change; what a page shows is no permission check.

mod applications;
mod assets;
mod audit;
mod context;
mod cookies;
mod deployments;
mod error;
mod extensions;
mod fields;
mod form;
mod format;
mod frame;
mod installation;
mod live;
mod logs;
mod middleware;
mod notifications;
mod organization;
mod pages;
mod profile;
mod router;
mod sessions;
mod state;
mod visitor;

pub use self::{
    router::{PREFIX, configure},
    state::{Dashboard, DashboardOptions},
};
