//! The protocol between the control plane and the proxy: each request is one JSON object on a line, and so
//! is each response.

mod client;
mod descriptors;
mod handover;
mod server;
mod socket;
mod successor;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

pub use self::client::{Client, ControlError, Credentials};
pub(crate) use self::{
    handover::{Inheritance, Leaving, Listeners, take_over},
    server::{End, Server},
    socket::{Access, Folder},
    successor::Successor,
};
use crate::{
    certificates::{Certificate, Challenge},
    routes::Route,
    traffic::Snapshot,
};

/// A request of the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    /// Returns the status of the proxy.
    Status,
    /// Routes exactly these hosts to an application. Answered when the route is in use and survives a
    /// restart.
    Set {
        /// The application, its hosts and its target.
        route: Route,
    },
    /// Removes the route of an application.
    Remove {
        /// The id of the application.
        application: String,
    },
    /// Replaces all routes.
    ReplaceAll {
        /// The new routes.
        routes: Vec<Route>,
    },
    /// Lets the routes to containers expire, unless the request is repeated in time.
    Lease {
        /// The time until they expire; without it, they do not.
        seconds: Option<u64>,
    },
    /// Waits until no request to the application's previous targets is in flight, or until the limit has
    /// passed.
    Drain {
        /// The id of the application.
        application: String,
        /// Only the requests to this container count; without it, all of them.
        #[serde(default)]
        container: Option<String>,
        /// The longest wait, in milliseconds.
        limit_ms: u64,
    },
    /// Returns the traffic counters of each application.
    Traffic,
    /// Replaces all certificates. Answered when they are in use and survive a restart.
    SetCertificates {
        /// A text that identifies this set, which `Status` returns.
        revision: String,
        /// The new certificates.
        certificates: Vec<Certificate>,
    },
    /// Replaces all answers to ACME challenges.
    SetChallenges {
        /// The new answers over HTTP (HTTP-01).
        challenges: Vec<Challenge>,
        /// The new answers in a TLS handshake (TLS-ALPN-01): the certificate of each name.
        #[serde(default)]
        certificates: Vec<Certificate>,
    },
    /// Shuts down after the requests in flight are answered.
    Stop,
    /// Starts a successor with the same user and settings, which takes over.
    Replace,
    /// Passes the listening sockets to the sender of this request, and then shuts down as after `Stop`.
    HandOver {
        /// The version of the handover protocol.
        protocol: u32,
        /// The sender also takes the socket of TLS, if there is one. Senders of earlier versions do not.
        #[serde(default)]
        with_tls: bool,
    },
}

/// A response of the proxy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The change is in use.
    Done,
    /// The status of the proxy.
    Status(Status),
    /// The result of `Drain`.
    Drained {
        /// True if no request is in flight any more, false if the limit passed first.
        is_drained: bool,
    },
    /// The traffic counters of each application.
    Traffic {
        /// The counters.
        traffic: Snapshot,
    },
    /// The request was rejected, and nothing changed.
    Refused {
        /// The reason.
        reason: String,
    },
    /// Another process owns the routes now; it answers on the same socket.
    Moved,
    /// The listening socket is attached to this message, and that of TLS behind it if it was asked for.
    Listener,
    /// The listening socket belongs to the successor.
    Yours,
}

/// The status of the proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The process id.
    pub process: u32,
    /// The version.
    pub version: String,
    /// The addresses on which it listens.
    pub addresses: Vec<SocketAddr>,
    /// The addresses on which it listens for TLS.
    #[serde(default)]
    pub tls_addresses: Vec<SocketAddr>,
    /// The revision of its certificates; `None` if it does not serve TLS.
    #[serde(default)]
    pub certificates: Option<String>,
    /// The number of applications that have a route.
    pub routes: usize,
    /// The proxy forwards to containers. After a reboot it does not, until it has received all routes.
    pub is_trusted: bool,
}
