//! The registry that images are pushed to.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
};

use ipnet::IpNet;
use launchway_domain::applications::{ImageRef, Reference};
use serde_json::Value;

/// A registry with an optional path below it: `10.0.0.5:5000`, `registry.example.com/team`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushRegistry(String);

/// The error of a text that names no registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidRegistry;

impl PushRegistry {
    /// Returns the host and the port.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(host, _)| host)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PushRegistry {
    type Err = InvalidRegistry;

    fn from_str(text: &str) -> Result<Self, InvalidRegistry> {
        let text = text.trim().trim_end_matches('/');
        // What docker reads of a reference decides: the text before the first slash has to be the registry.
        let image: ImageRef = format!("{text}/image:tag").parse().map_err(|_refused| InvalidRegistry)?;
        let reference = Reference::parse(&image).ok_or(InvalidRegistry)?;
        let host = text.split_once('/').map_or(text, |(host, _)| host);
        let is_plain = text == text.to_ascii_lowercase() && !text.contains(['@', ' ']);
        let is_named = reference.registry().to_string() == host;
        if is_plain && is_named { Ok(Self(text.to_owned())) } else { Err(InvalidRegistry) }
    }
}

impl fmt::Display for PushRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads the engine's list of insecure registries: hosts, and networks of addresses. A name is not looked up, so only its own
/// entry counts.
pub(super) fn is_insecure(config: &Value, host: &str) -> Option<bool> {
    let entry = config.get("IndexConfigs")?.get(host).and_then(|entry| entry.get("Secure"));
    if entry.and_then(Value::as_bool) == Some(false) {
        return Some(true);
    }
    let networks = config.get("InsecureRegistryCIDRs").and_then(Value::as_array);
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let address = match name.trim_matches(['[', ']']) {
        "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        name => name.parse().ok(),
    };
    let Some(address) = address else { return Some(false) };
    let mut networks = networks.into_iter().flatten().filter_map(|network| network.as_str()?.parse().ok());
    Some(networks.any(|network: IpNet| network.contains(&address)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn insecure_registries_are_those_of_the_engine() {
        let config = json!({
            "InsecureRegistryCIDRs": ["127.0.0.0/8", "10.78.0.0/24"],
            "IndexConfigs": { "plain.example:5000": { "Secure": false }, "docker.io": { "Secure": true } },
        });
        for host in ["10.78.0.1:5005", "127.0.0.1", "localhost:5000", "plain.example:5000"] {
            assert_eq!(is_insecure(&config, host), Some(true), "{host}");
        }
        for host in ["10.79.0.1:5005", "docker.io", "registry.example", "plain.example"] {
            assert_eq!(is_insecure(&config, host), Some(false), "{host}");
        }
        assert_eq!(is_insecure(&json!({}), "docker.io"), None);
    }

    #[test]
    fn a_registry_is_a_host_with_or_without_a_path() {
        for (text, host) in [
            ("10.77.0.1:5000", "10.77.0.1:5000"),
            ("localhost:5000/", "localhost:5000"),
            ("registry.example.com/team/apps", "registry.example.com"),
        ] {
            assert_eq!(text.parse::<PushRegistry>().unwrap().host(), host);
        }
        for text in [
            "",
            "/",
            "registry",
            "Registry.example.com",
            "a.b:0",
            "a.b/../c",
            "a.b@c",
            "http://a.b",
            "a.b/x y",
        ] {
            assert_eq!(text.parse::<PushRegistry>(), Err(InvalidRegistry), "{text:?}");
        }
    }
}
