//! The complete list of options of a container of an extension, for every step that uses the engine.

use std::collections::BTreeMap;

use super::ObjectName;
use crate::{
    applications::{ImageRef, Port, Variables},
    value::InvalidValue,
};

/// A container that a step runs. There are no other options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerSpec {
    /// Its name, which is also its host name in the network of its organization.
    pub name: ObjectName,
    /// The image that it runs.
    pub image: ImageRef,
    /// The command that replaces that of the image; empty to keep it.
    pub command: Vec<String>,
    /// The environment variables.
    pub environment: Variables,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The volumes of its organization that are mounted.
    pub volumes: Vec<VolumeMount>,
    /// The ports of this machine's loopback at which it is published.
    pub ports: Vec<PublishedPort>,
    /// True if it keeps running; otherwise the step waits until it exits, and removes it.
    pub is_detached: bool,
}

/// A volume in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeMount {
    /// The name of the volume, of this organization and extension.
    pub volume: ObjectName,
    /// The path in the container.
    pub path: String,
    /// True if it is mounted read-only.
    pub is_read_only: bool,
}

impl TryFrom<String> for VolumeMount {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        let refused = || {
            InvalidValue::text(
                "`name:/path` or `name:/path:ro`, where `name` is a volume and no folder",
                &raw,
            )
        };
        let (volume, rest) = raw.split_once(':').ok_or_else(refused)?;
        let (path, is_read_only) = match rest.split_once(':') {
            None => (rest, false),
            Some((path, "rw")) => (path, false),
            Some((path, "ro")) => (path, true),
            Some(_) => return Err(refused()),
        };
        let is_plain = |c: char| !c.is_control() && !matches!(c, ',' | '"' | ':');
        let is_inside = path.split('/').all(|part| part != "..");
        if !(path.starts_with('/')
            && path.len() > 1
            && path.len() <= 255
            && path.chars().all(is_plain)
            && is_inside)
        {
            return Err(refused());
        }
        let volume = volume.parse().map_err(|_no_name| refused())?;
        Ok(Self { volume, path: path.to_owned(), is_read_only })
    }
}

/// A port of the loopback that is forwarded to a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedPort {
    /// The port on this machine; `None` for any that is free.
    pub host: Option<Port>,
    /// The port in the container.
    pub container: Port,
    /// True for UDP, false for TCP.
    pub is_udp: bool,
}

impl TryFrom<String> for PublishedPort {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        let refused = || {
            InvalidValue::text(
                "`8080:80`, `127.0.0.1:8080:80`, `5353:53/udp`, or `80` or `0:80` for any port that is free: published on the loopback \
                 only",
                &raw,
            )
        };
        let (ports, is_udp) = match raw.trim().split_once('/') {
            None | Some((_, "tcp")) => (raw.trim().trim_end_matches("/tcp"), false),
            Some((ports, "udp")) => (ports, true),
            Some(_) => return Err(refused()),
        };
        let ports = ports.strip_prefix("127.0.0.1:").unwrap_or(ports);
        let (host, container) = ports.split_once(':').unwrap_or(("", ports));
        let port = |text: &str| -> Option<Port> {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            Port::try_from(text.parse::<i64>().ok().filter(|_| is_number)?).ok()
        };
        let container = port(container).ok_or_else(refused)?;
        let host = match host {
            "" | "0" => None,
            host => Some(port(host).ok_or_else(refused)?),
        };
        Ok(Self { host, container, is_udp })
    }
}

/// Checks the labels that a definition puts on a container.
///
/// # Errors
/// A sentence for one that is reserved for Launchway or the engine, or too long.
pub(super) fn check_labels(labels: Vec<(String, String)>) -> Result<BTreeMap<String, String>, String> {
    for (name, value) in &labels {
        let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
        if !(1..=128).contains(&name.len())
            || !name.bytes().all(is_of_names)
            || value.len() > 1024
            || value.contains('\0')
        {
            return Err(format!(
                "must have names of 1 to 128 letters, digits, `.`, `_`, `/` or `-`, and values of at most 1,024 bytes: `{name:.40}` has not"
            ));
        }
        if ["launchway.", "com.docker.", "io.docker.", "org.dockerproject."]
            .iter()
            .any(|own| name.starts_with(own))
        {
            return Err(format!("must not have `{name}`: labels that begin so are not for definitions"));
        }
    }
    Ok(labels.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(raw: &str) -> Result<VolumeMount, InvalidValue> {
        VolumeMount::try_from(raw.to_owned())
    }

    fn port(raw: &str) -> Option<(u16, u16, bool)> {
        let port = PublishedPort::try_from(raw.to_owned()).ok()?;
        Some((port.host.map_or(0, Port::get), port.container.get(), port.is_udp))
    }

    #[test]
    fn a_volume_is_named_and_never_a_folder_of_this_machine() {
        let data = mount("data:/var/lib/x").unwrap();
        assert_eq!(
            (data.volume.as_str(), data.path.as_str(), data.is_read_only),
            ("data", "/var/lib/x", false)
        );
        assert!(mount("data:/x:ro").unwrap().is_read_only);
        for raw in [
            "/etc:/etc",
            "./a:/b",
            "../a:/b",
            "~:/x",
            "data",
            "data:",
            "data:x",
            "data:/",
            "data:/a/../..",
            "data:/x:z",
            "data:/x:ro:ro",
            "data:/x,readonly",
            "/var/run/docker.sock:/x",
            "data:/a\nb",
            "{}:/x",
        ] {
            assert!(mount(raw).is_err(), "{raw}");
        }
    }

    #[test]
    fn ports_are_published_on_the_loopback_only() {
        for (raw, read) in [
            ("8080:80", (8080, 80, false)),
            ("127.0.0.1:8080:80/tcp", (8080, 80, false)),
            ("5353:53/udp", (5353, 53, true)),
            ("65535:1", (65535, 1, false)),
            ("80", (0, 80, false)),
            ("53/udp", (0, 53, true)),
            ("0:80", (0, 80, false)),
            ("127.0.0.1::80", (0, 80, false)),
            ("127.0.0.1:0:80/tcp", (0, 80, false)),
        ] {
            assert_eq!(port(raw), Some(read), "{raw}");
        }
        for raw in [
            "0",
            "127.0.0.1:",
            "00:80",
            "0.0.0.0:80:80",
            "::1:80:80",
            "65536:80",
            "80:0",
            "80-90:80",
            "+80:80",
            "80:80/sctp",
            "80:",
            "",
        ] {
            assert_eq!(port(raw), None, "{raw}");
        }
    }

    #[test]
    fn labels_that_others_go_by_are_refused() {
        let check = |name: &str, value: &str| check_labels(vec![(name.to_owned(), value.to_owned())]);
        assert!(check("team.example/role", "db").is_ok());
        for name in ["launchway.instance", "com.docker.compose.project", "", "a b", &"a".repeat(129)] {
            assert!(check(name, "x").is_err(), "{name}");
        }
        assert!(check("a", &"x".repeat(1024)).is_ok() && check("a", &"x".repeat(1025)).is_err());
    }
}
