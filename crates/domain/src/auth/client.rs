//! The client of a request.

use std::net::{IpAddr, Ipv4Addr};

/// The client of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its address; behind a trusted proxy, the address that the proxy saw.
    pub address: IpAddr,
    /// The `User-Agent` header, at most 256 characters.
    pub user_agent: String,
}

/// The client and id of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The client.
    pub client: Client,
    /// The request's id.
    pub request_id: String,
}

impl Origin {
    /// Returns the origin of an action without a request, from inside this process. The audit log shows the
    /// address of this machine.
    #[must_use]
    pub fn within() -> Self {
        let client = Client { address: Ipv4Addr::LOCALHOST.into(), user_agent: String::new() };
        Self { client, request_id: String::new() }
    }
}
