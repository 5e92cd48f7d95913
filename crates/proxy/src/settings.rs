//! The settings of the proxy.

use std::{ffi::OsString, net::SocketAddr, num::NonZero, path::PathBuf, time::Duration};

use ipnet::IpNet;

/// The settings of a proxy.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address on which it listens, unless it takes over from another proxy.
    pub bind: SocketAddr,
    /// The address on which it listens for TLS; `None` for none.
    pub tls_bind: Option<SocketAddr>,
    /// Its private folder: the control socket, the routes, the certificates and the access log.
    pub folder: PathBuf,
    /// Peers whose `X-Forwarded-*` headers are trusted.
    pub trusted: Vec<IpNet>,
    /// Its limits and timeouts.
    pub limits: Limits,
    /// The number of threads that serve connections, at most eight; `None` for one for each processor.
    pub threads: Option<NonZero<usize>>,
    /// Writes a line for each request.
    pub access_log: bool,
    /// The version that it reports.
    pub version: String,
    /// The user who may use the control socket beside the proxy's own and root: the server's, if that is another one.
    /// Its group enters the folder then.
    pub control_user: Option<u32>,
    /// The command that starts a successor when the control plane asks for one. `None` if a successor would not outlive
    /// this process.
    pub successor: Option<SuccessorCommand>,
}

/// A command of the same program with the same settings.
#[derive(Debug, Clone)]
pub struct SuccessorCommand {
    /// The path of the program: after an upgrade the new one is there.
    pub program: PathBuf,
    /// All arguments.
    pub arguments: Vec<OsString>,
}

/// The limits and timeouts of the proxy.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Concurrent connections of all clients. Further ones wait until one ends.
    pub connections: usize,
    /// Concurrent connections of one client, unless it is a trusted front. Further ones are closed.
    pub per_client: usize,
    /// Concurrent requests to one application, so that a slow one cannot take every connection.
    pub per_application: usize,
    /// The size of a request's head in bytes.
    pub head_bytes: usize,
    /// The number of headers of a request.
    pub headers: usize,
    /// The timeout of a TLS handshake.
    pub handshake: Duration,
    /// The timeout for connecting to an application.
    pub connect: Duration,
    /// The timeout for receiving a request's head, from its first byte or from the start of the connection.
    pub request_head: Duration,
    /// The time after which an idle connection is closed. Longer than that of a front (Caddy: two minutes),
    /// or the front would now and then send a request into a connection that closes.
    pub keep_alive: Duration,
    /// The timeout for the head of an application's response.
    pub response_head: Duration,
    /// The longest time without a byte of a request's body from the client, or of a response to it.
    pub client_stall: Duration,
    /// The longest time without a byte of a response's body from the application. Server-sent events may be
    /// silent for long.
    pub upstream_stall: Duration,
    /// The longest time without a byte in either direction on an upgraded connection.
    pub tunnel_stall: Duration,
    /// The time after which an idle connection to an application is closed.
    pub upstream_keep_alive: Duration,
    /// The time after which idle connections are closed during a shutdown.
    pub leave_idle: Duration,
    /// The time after which every connection is closed during a shutdown.
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
            handshake: Duration::from_secs(10),
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
