//! Where requests come from.

use launchway_domain::auth::Client;

use super::parsed;

/// A client at an address that is set aside for examples.
#[must_use]
pub fn a_client() -> Client {
    Client { address: parsed("192.0.2.7"), user_agent: "Testing/1.0".to_owned() }
}
