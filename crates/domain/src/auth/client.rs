//! Where a request came from.

use std::net::{IpAddr, Ipv4Addr};

/// The other end of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its address; behind a trusted proxy, the address that the proxy saw.
    pub address: IpAddr,
    /// What it says of itself, at most 256 characters.
    pub user_agent: String,
}

/// A request: where it came from, and what the log knows it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The other end.
    pub client: Client,
    /// The request's id.
    pub request_id: String,
}

impl Origin {
    /// No request: who acts is in this process, as the trail is told by the address of this machine.
    #[must_use]
    pub fn within() -> Self {
        let client = Client { address: Ipv4Addr::LOCALHOST.into(), user_agent: String::new() };
        Self { client, request_id: String::new() }
    }
}
