//! The registry that images are pushed to.

use std::{fmt, str::FromStr};

use launchway_domain::applications::{ImageRef, Reference};

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

#[cfg(test)]
mod tests {
    use super::*;

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
