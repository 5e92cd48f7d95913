//! What the control plane and the proxy say to each other: one JSON object on a line, answered by
//! one line.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::routes::Route;

/// What the proxy is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    /// How it is.
    Status,
    /// To lead an application's names there from now on, and no other name to it. Answered when it
    /// holds, also over a restart.
    Set {
        /// Whose names, and where.
        route: Route,
    },
    /// To forget an application.
    Remove {
        /// Which.
        application: String,
    },
    /// To know these routes and no others.
    ReplaceAll {
        /// All of them.
        routes: Vec<Route>,
    },
    /// To answer when no request is under way any more to where the application's traffic went
    /// before, or when the time is over.
    Drain {
        /// Which.
        application: String,
        /// How long, at most.
        limit_ms: u64,
    },
    /// To count what each application was asked.
    Traffic,
    /// To end when the requests that are under way have been answered.
    Stop,
}

/// How the proxy is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub process: u32,
    /// Its version.
    pub version: String,
    /// Where it listens.
    pub addresses: Vec<SocketAddr>,
    /// How many applications it knows.
    pub routes: usize,
    /// Whether it leads to containers: after a reboot it does not until it was told all routes.
    pub is_trusted: bool,
}
