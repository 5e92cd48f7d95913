//! What the proxy is told when it starts.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use ipnet::IpNet;

/// How a proxy is to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens, unless it takes over from another proxy.
    pub bind: SocketAddr,
    /// Its own private folder: the control socket, the routes and the access log.
    pub folder: PathBuf,
    /// Peers that say the truth about whom they forward for.
    pub trusted: Vec<IpNet>,
    /// What it bears.
    pub limits: Limits,
    /// Whether it writes a line for each request.
    pub access_log: bool,
    /// What it says its version is.
    pub version: String,
}

/// How long the proxy waits, and how much it takes.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections of clients at once. More wait until one ends.
    pub connections: usize,
    /// Connections of one client at once, unless it is a trusted front. More are closed.
    pub per_client: usize,
    /// Requests at once for one application, so that a slow one cannot take every connection.
    pub per_application: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Until a connection to an application is there.
    pub connect: Duration,
    /// Until a request's head is complete, from its first byte or from the connection's beginning.
    pub request_head: Duration,
    /// Until a connection without a request is closed. Longer than a front keeps its own (Caddy: two
    /// minutes), or the front would now and then send a request into a connection that closes.
    pub keep_alive: Duration,
    /// Until an application's answer begins.
    pub response_head: Duration,
    /// Without a byte of a request's body from the client, or of an answer to it.
    pub client_stall: Duration,
    /// Without a byte of an answer's body from the application. Server-sent events may be silent long.
    pub upstream_stall: Duration,
    /// Without a byte either way on an upgraded connection.
    pub tunnel_stall: Duration,
    /// Until an unused connection to an application is closed.
    pub upstream_keep_alive: Duration,
    /// Until connections without a request are closed when the proxy leaves.
    pub leave_idle: Duration,
    /// Until every connection is closed when the proxy leaves.
    pub leave: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            per_client: 1_000,
            per_application: 1_024,
            head_bytes: 32 * 1_024,
            headers: 100,
            connect: Duration::from_secs(2),
            request_head: Duration::from_secs(15),
            keep_alive: Duration::from_secs(150),
            response_head: Duration::from_secs(60),
            client_stall: Duration::from_secs(60),
            upstream_stall: Duration::from_secs(300),
            tunnel_stall: Duration::from_secs(3_600),
            upstream_keep_alive: Duration::from_secs(30),
            leave_idle: Duration::from_secs(5),
            leave: Duration::from_secs(30),
        }
    }
}
