//! What the control plane and the proxy say to each other: one JSON object on a line, answered by
//! one line.

mod client;
mod descriptors;
mod handover;
mod server;
mod socket;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

pub use self::client::{Client, ControlError};
pub(crate) use self::{
    handover::{Inheritance, Leaving, take_over},
    server::{End, Server},
    socket::Folder,
};
use crate::{routes::Route, traffic::Snapshot};

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
        /// Only the requests to this container count; without, all of them.
        #[serde(default)]
        container: Option<String>,
        /// How long, at most.
        limit_ms: u64,
    },
    /// To count what each application was asked.
    Traffic,
    /// To end when the requests that are under way have been answered.
    Stop,
    /// To give the listening socket to whoever asks, and to end as after `Stop`.
    HandOver {
        /// How the two speak about it.
        protocol: u32,
    },
}

/// What the proxy answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// It holds.
    Done,
    /// How it is.
    Status(Status),
    /// Whether no request is under way any more.
    Drained {
        /// Or whether the time was over.
        is_drained: bool,
    },
    /// What each application was asked.
    Traffic {
        /// In numbers.
        traffic: Snapshot,
    },
    /// Everything is as it was.
    Refused {
        /// For this reason.
        reason: String,
    },
    /// Another process has the routes now; it answers on the same socket.
    Moved,
    /// The listening socket comes with this.
    Listener,
    /// The listening socket belongs to the other one.
    Yours,
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
