//! How an application is made from its source.

use crate::value::InvalidValue;

/// How an application is made from its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BuildPack {
    /// An image is built by a Dockerfile of the repository.
    Dockerfile,
    /// A prebuilt image is run.
    Image,
    /// A folder of the repository is published as it is.
    Static,
    /// An image is built by a Dockerfile that Nixpacks makes for a folder of the repository.
    Nixpacks,
}

impl BuildPack {
    /// Every build pack.
    pub const ALL: [Self; 4] = [Self::Dockerfile, Self::Image, Self::Static, Self::Nixpacks];

    /// The name in the contract.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dockerfile => "dockerfile",
            Self::Image => "image",
            Self::Static => "static",
            Self::Nixpacks => "nixpacks",
        }
    }
}

impl TryFrom<String> for BuildPack {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        let name = raw.trim().to_ascii_lowercase();
        Self::ALL.into_iter().find(|pack| pack.as_str() == name).ok_or_else(|| {
            let allowed = match name.as_str() {
                "docker-compose" | "dockercompose" | "compose" => {
                    "`dockerfile`, `image`, `static` or `nixpacks`: this version has no other build pack yet"
                }
                _ => "`dockerfile`, `image`, `static` or `nixpacks`",
            };
            InvalidValue::text(allowed, &raw)
        })
    }
}

/// Who terminates TLS in front of an application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ProxyServer {
    /// Nobody: Launchway's own proxy alone.
    #[default]
    Launchway,
    /// Caddy, in front of Launchway's proxy.
    Caddy,
}

impl ProxyServer {
    /// The name in the contract.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Port(u16);

impl Port {
    /// The number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }
}

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
    fn a_build_pack_that_is_still_to_come_is_refused_with_a_word_about_it() {
        for name in ["docker-compose", "dockerCompose"] {
            let refused = BuildPack::try_from(name.to_owned()).unwrap_err().to_string();
            assert!(refused.contains("yet") && refused.contains(name), "{refused}");
        }
        assert!(BuildPack::try_from("heroku".to_owned()).is_err());
    }

    #[test]
    fn a_port_is_between_1_and_65535() {
        for (number, fits) in [(0, false), (1, true), (65_535, true), (65_536, false), (-1, false)] {
            assert_eq!(Port::try_from(number).is_ok(), fits, "{number}");
        }
        let refused = Port::try_from(70_000).unwrap_err().to_string();
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
