//! Where a request came from.

use std::net::IpAddr;

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
