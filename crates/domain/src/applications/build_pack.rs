//! The ways in which an application is built from its source.

use crate::value::{InvalidValue, parsed_by_conversion};

/// The way in which an application is built from its source.
///
/// ```
/// use launchway_domain::applications::BuildPack;
///
/// assert_eq!("docker-compose".parse(), Ok(BuildPack::DockerCompose));
/// assert_eq!(BuildPack::Image.as_str(), "image");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BuildPack {
    /// Builds an image with a Dockerfile of the repository.
    Dockerfile,
    /// Runs the services of a compose file of the repository.
    DockerCompose,
    /// Runs a prebuilt image.
    Image,
    /// Publishes a folder of the repository as it is.
    Static,
    /// Builds an image with a Dockerfile that Nixpacks generates for a folder of the repository.
    Nixpacks,
}

impl BuildPack {
    /// Every build pack.
    pub const ALL: [Self; 5] =
        [Self::Dockerfile, Self::DockerCompose, Self::Image, Self::Static, Self::Nixpacks];

    /// Returns the name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dockerfile => "dockerfile",
            Self::DockerCompose => "docker-compose",
            Self::Image => "image",
            Self::Static => "static",
            Self::Nixpacks => "nixpacks",
        }
    }
}

parsed_by_conversion!(BuildPack, ProxyServer);

impl TryFrom<String> for BuildPack {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        let name = raw.trim().to_ascii_lowercase();
        let name = match name.as_str() {
            "dockercompose" | "compose" => Self::DockerCompose.as_str().to_owned(),
            _ => name,
        };
        Self::ALL.into_iter().find(|pack| pack.as_str() == name).ok_or_else(|| {
            let allowed = "`dockerfile`, `docker-compose`, `image`, `static` or `nixpacks`";
            InvalidValue::text(allowed, &raw)
        })
    }
}

/// The proxy that terminates TLS in front of an application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ProxyServer {
    /// Launchway's own proxy alone.
    #[default]
    Launchway,
    /// Caddy, in front of Launchway's proxy.
    Caddy,
}

impl ProxyServer {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Launchway, Self::Caddy];

    /// Returns the name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Launchway => "launchway",
            Self::Caddy => "caddy",
        }
    }
}

impl TryFrom<String> for ProxyServer {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        match raw.trim().to_ascii_lowercase().as_str() {
            "launchway" => Ok(Self::Launchway),
            "caddy" => Ok(Self::Caddy),
            _ => Err(InvalidValue::text("`launchway` or `caddy`", &raw)),
        }
    }
}

/// The port that an application listens on inside its container.
///
/// ```
/// use launchway_domain::applications::Port;
///
/// assert_eq!(Port::try_from(8080).unwrap().get(), 8080);
/// let refused = Port::try_from(0_i32).unwrap_err();
/// assert_eq!(refused.to_string(), "must be between 1 and 65535, got 0");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Port(u16);

impl Port {
    /// Returns the port number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }
}

macro_rules! from_smaller {
    ($($number:ty),+) => {
        $(impl TryFrom<$number> for Port {
            type Error = InvalidValue;

            fn try_from(raw: $number) -> Result<Self, InvalidValue> {
                i64::from(raw).try_into()
            }
        })+
    };
}
from_smaller!(u16, i32, u32);

impl TryFrom<i64> for Port {
    type Error = InvalidValue;

    fn try_from(raw: i64) -> Result<Self, InvalidValue> {
        match u16::try_from(raw) {
            Ok(port @ 1..) => Ok(Self(port)),
            _ => Err(InvalidValue::number("between 1 and 65535", raw)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_packs_are_read_as_they_are_written_whatever_their_case() {
        for pack in BuildPack::ALL {
            assert_eq!(BuildPack::try_from(pack.as_str().to_uppercase()), Ok(pack));
        }
    }

    #[test]
    fn compose_has_several_spellings() {
        for name in ["docker-compose", "dockerCompose", "dockercompose", "Compose", " compose "] {
            assert_eq!(BuildPack::try_from(name.to_owned()), Ok(BuildPack::DockerCompose), "{name}");
        }
    }

    #[test]
    fn an_unknown_build_pack_is_reported_with_the_known_ones() {
        let refused = BuildPack::try_from("heroku".to_owned()).unwrap_err().to_string();
        assert!(BuildPack::ALL.iter().all(|pack| refused.contains(pack.as_str())), "{refused}");
    }

    #[test]
    fn a_port_is_between_1_and_65535() {
        for (number, fits) in [(0, false), (1, true), (65_535, true), (65_536, false), (-1, false)] {
            assert_eq!(Port::try_from(number).is_ok(), fits, "{number}");
        }
        let refused = Port::try_from(70_000_i64).unwrap_err().to_string();
        assert_eq!(refused, "must be between 1 and 65535, got 70000");
    }

    #[test]
    fn proxies_are_read_as_they_are_written() {
        for proxy in [ProxyServer::Launchway, ProxyServer::Caddy] {
            assert_eq!(ProxyServer::try_from(proxy.as_str().to_owned()), Ok(proxy));
        }
        assert!(ProxyServer::try_from("nginx".to_owned()).is_err());
    }
}
