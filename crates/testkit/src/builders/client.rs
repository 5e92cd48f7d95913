//! Clients and origins of requests.

use launchway_domain::auth::{Client, Origin};

use super::parsed;

/// A client at an address that is reserved for documentation.
#[must_use]
pub fn a_client() -> Client {
    Client { address: parsed("192.0.2.7"), user_agent: "Testing/1.0".to_owned() }
}

/// The request `req-1` of [`a_client`].
#[must_use]
pub fn an_origin() -> Origin {
    Origin { client: a_client(), request_id: "req-1".to_owned() }
}
