//! References to images, taken apart, and the registries that they may name.

use std::{fmt, net::IpAddr, str::FromStr};

use super::ImageRef;
use crate::value::InvalidValue;

/// The registry of references that name none.
const DEFAULT_REGISTRY: &str = "docker.io";
/// The namespace of images of the default registry that have none.
const DEFAULT_NAMESPACE: &str = "library/";

/// The registries that every user may pull from: those that anyone can read without an account.
pub const PUBLIC_REGISTRIES: [&str; 15] = [
    "docker.io",
    "gcr.io",
    "ghcr.io",
    "mcr.microsoft.com",
    "mirror.gcr.io",
    "nvcr.io",
    "public.ecr.aws",
    "quay.io",
    "registry.access.redhat.com",
    "registry.fedoraproject.org",
    "registry.gitlab.com",
    "registry.k8s.io",
    "registry.opensuse.org",
    "registry.suse.com",
    "docker.elastic.co",
];

const ALLOWED: &str =
    "`public`, `*`, or a registry such as `registry.example.com`, `10.0.0.5:5000` or `*.pkg.dev`";

/// The host of a registry in lower case, and its port if the reference names one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Registry {
    host: String,
    port: Option<u16>,
}

impl Registry {
    /// Returns the host, which may be an address.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok().filter(|port| *port > 0)?)),
            None => (text, None),
        };
        let is_label = |label: &str| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let host = host.to_ascii_lowercase();
        host.split('.').all(is_label).then_some(Self { host, port })
    }

    fn is_default(&self) -> bool {
        self.host == DEFAULT_REGISTRY && self.port.is_none()
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

/// A reference to an image: registry, repository, and tag or digest. Its text is the one by which the
/// engine lists the image.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    registry: Registry,
    repository: String,
    version: Version,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Version {
    Tag(String),
    Digest(String),
}

impl Reference {
    /// Parses a reference. `None` for a text that the engine could take for another reference.
    #[must_use]
    pub fn parse(image: &ImageRef) -> Option<Self> {
        let (name, digest) = match image.as_str().split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (image.as_str(), None),
        };
        let (path, tag) = match name.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (name, None),
        };
        let (registry, repository) = match path.split_once('/') {
            Some((first, rest)) if is_registry(first) => (Registry::parse(first)?, rest),
            _ => (Registry { host: DEFAULT_REGISTRY.to_owned(), port: None }, path),
        };
        let registry = match registry.to_string().as_str() {
            "index.docker.io" => Registry { host: DEFAULT_REGISTRY.to_owned(), port: None },
            _ => registry,
        };
        let repository = match registry.is_default() {
            true => repository.strip_prefix(DEFAULT_NAMESPACE).unwrap_or(repository),
            false => repository,
        };
        let first = repository.split('/').next().unwrap_or_default();
        // Without the default registry in front, the engine would take the first part for a registry.
        if registry.is_default() && repository.contains('/') && is_registry(first) {
            return None;
        }
        let version = match (digest, tag) {
            (Some(digest), _) => Version::Digest(digest.to_owned()),
            (None, tag) => Version::Tag(tag.unwrap_or("latest").to_owned()),
        };
        Some(Self { registry, repository: repository.to_owned(), version })
    }

    /// Returns the registry.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the repository, without the namespace of the default registry.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.registry.is_default() {
            write!(f, "{}/", self.registry)?;
        }
        match &self.version {
            Version::Tag(tag) => write!(f, "{}:{tag}", self.repository),
            Version::Digest(digest) => write!(f, "{}@{digest}", self.repository),
        }
    }
}

/// Returns whether the engine takes the first part of a reference for a registry.
fn is_registry(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost" || first.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// An entry of the registries that images may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedRegistry {
    /// The registries of [`PUBLIC_REGISTRIES`], at public addresses.
    Public,
    /// Every registry at a public address.
    AnyPublic,
    /// Every host below a domain, at a public address.
    Below(String),
    /// This registry, wherever it is: the operator has named it.
    Exactly(Registry),
}

impl FromStr for AllowedRegistry {
    type Err = InvalidValue;

    fn from_str(raw: &str) -> Result<Self, InvalidValue> {
        let invalid = || InvalidValue::text(ALLOWED, raw);
        let entry = match (raw, raw.strip_prefix("*.")) {
            ("public", _) => Self::Public,
            ("*", _) => Self::AnyPublic,
            (_, Some(domain)) => match Registry::parse(domain) {
                Some(Registry { host, port: None }) if host.contains('.') => Self::Below(host),
                _ => return Err(invalid()),
            },
            _ => Self::Exactly(
                Registry::parse(raw).filter(|it| is_named(&it.host, it.port)).ok_or_else(invalid)?,
            ),
        };
        Ok(entry)
    }
}

/// Returns whether a registry can be named by this host in a reference.
fn is_named(host: &str, port: Option<u16>) -> bool {
    host.contains('.') || host == "localhost" || port.is_some()
}

/// The addresses that a registry may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryAccess {
    /// Any address: the operator has named the registry.
    Anywhere,
    /// Public addresses. A well-known name may fail to resolve.
    PublicIfKnown,
    /// Public addresses only.
    Public,
}

impl RegistryAccess {
    /// Returns whether a registry with these addresses may be connected to; `None` if they are not known.
    #[must_use]
    pub fn permits(self, addresses: Option<&[IpAddr]>) -> bool {
        let are_public =
            |addresses: &[IpAddr]| addresses.iter().all(|address| crate::network::is_public(*address));
        match (self, addresses) {
            (Self::Anywhere, _) | (Self::PublicIfKnown, None) => true,
            (Self::Public, None) => false,
            (_, Some(addresses)) => are_public(addresses),
        }
    }
}

/// The registries that images may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryPolicy {
    allowed: Vec<AllowedRegistry>,
}

impl Default for RegistryPolicy {
    fn default() -> Self {
        Self { allowed: vec![AllowedRegistry::Public] }
    }
}

impl RegistryPolicy {
    /// Permits these registries, and no other.
    #[must_use]
    pub fn allowing(allowed: Vec<AllowedRegistry>) -> Self {
        Self { allowed }
    }

    /// Returns the addresses that the registry may have. `None` if no image may come from it.
    #[must_use]
    pub fn access(&self, registry: &Registry) -> Option<RegistryAccess> {
        let granted = self.allowed.iter().filter_map(|entry| match entry {
            AllowedRegistry::Exactly(named) => (named == registry).then_some(RegistryAccess::Anywhere),
            AllowedRegistry::Public => {
                let is_known = registry.port.is_none() && PUBLIC_REGISTRIES.contains(&registry.host());
                is_known.then_some(RegistryAccess::PublicIfKnown)
            }
            AllowedRegistry::Below(domain) => {
                let is_below =
                    registry.host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'));
                is_below.then_some(RegistryAccess::Public)
            }
            AllowedRegistry::AnyPublic => Some(RegistryAccess::Public),
        });
        granted.min_by_key(|access| match access {
            RegistryAccess::Anywhere => 0,
            RegistryAccess::PublicIfKnown => 1,
            RegistryAccess::Public => 2,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(text: &str) -> Option<Reference> {
        Reference::parse(&text.parse().unwrap())
    }

    fn policy(entries: &[&str]) -> RegistryPolicy {
        RegistryPolicy::allowing(entries.iter().map(|entry| entry.parse().unwrap()).collect())
    }

    #[test]
    fn references_are_taken_apart_and_normalised() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (text, registry, repository, rendered) in [
            ("nginx", "docker.io", "nginx", "nginx:latest"),
            ("docker.io/library/nginx:1", "docker.io", "nginx", "nginx:1"),
            ("index.docker.io/team/web", "docker.io", "team/web", "team/web:latest"),
            ("GHCR.io/team/web:1", "ghcr.io", "team/web", "ghcr.io/team/web:1"),
            ("localhost/web", "localhost", "web", "localhost/web:latest"),
            (
                "docker.io:443/library/nginx",
                "docker.io:443",
                "library/nginx",
                "docker.io:443/library/nginx:latest",
            ),
            ("10.0.0.5:5000/a/b:c", "10.0.0.5:5000", "a/b", "10.0.0.5:5000/a/b:c"),
            (&format!("quay.io/a/b:1@{digest}"), "quay.io", "a/b", &format!("quay.io/a/b@{digest}")),
        ] {
            let parsed = reference(text).unwrap();
            assert_eq!((parsed.registry().to_string().as_str(), parsed.repository()), (registry, repository));
            assert_eq!(parsed.to_string(), rendered, "{text}");
            assert_eq!(reference(rendered), Some(parsed), "{rendered} is read back as the same");
        }
    }

    #[test]
    fn a_path_that_looks_like_a_registry_is_no_reference() {
        for text in ["docker.io/index.docker.io/a/b", "docker.io/localhost/a", "docker.io/127.0.0.1/a"] {
            assert_eq!(reference(text), None, "{text}");
        }
    }

    #[test]
    fn only_listed_registries_are_allowed() {
        let of = |text: &str| reference(text).unwrap().registry().clone();
        let public = RegistryPolicy::default();
        for text in ["nginx", "ghcr.io/a/b", "mcr.microsoft.com/a", "public.ecr.aws/a/b"] {
            assert_eq!(public.access(&of(text)), Some(RegistryAccess::PublicIfKnown), "{text}");
        }
        for text in [
            "localhost/a",
            "localhost:5000/a",
            "127.0.0.1:80/a",
            "ghcr.io:8080/a/b",
            "evil.example/a",
            "ghcr.io.evil.example/a",
            "registry-1.docker.io/a/b",
        ] {
            assert_eq!(public.access(&of(text)), None, "{text}");
        }
        let own = policy(&["public", "registry.example.com", "10.0.0.5:5000", "*.pkg.dev"]);
        for (text, access) in [
            ("registry.example.com/a", Some(RegistryAccess::Anywhere)),
            ("registry.example.com:5000/a", None),
            ("10.0.0.5:5000/a", Some(RegistryAccess::Anywhere)),
            ("10.0.0.5/a", None),
            ("europe-docker.pkg.dev/a/b", Some(RegistryAccess::Public)),
            ("xpkg.dev/a", None),
        ] {
            assert_eq!(own.access(&of(text)), access, "{text}");
        }
        assert_eq!(policy(&["*"]).access(&of("evil.example/a")), Some(RegistryAccess::Public));
        assert_eq!(policy(&["*", "localhost"]).access(&of("localhost/a")), Some(RegistryAccess::Anywhere));
        assert_eq!(policy(&[]).access(&of("nginx")), None);
    }

    #[test]
    fn private_addresses_are_for_named_registries() {
        let [public, private] = ["1.1.1.1", "127.0.0.1"].map(|text| text.parse().unwrap());
        for (access, addresses, permitted) in [
            (RegistryAccess::Anywhere, Some(&[private][..]), true),
            (RegistryAccess::PublicIfKnown, Some(&[public]), true),
            (RegistryAccess::PublicIfKnown, Some(&[public, private]), false),
            (RegistryAccess::PublicIfKnown, None, true),
            (RegistryAccess::Public, Some(&[private]), false),
            (RegistryAccess::Public, None, false),
        ] {
            assert_eq!(access.permits(addresses), permitted, "{access:?} {addresses:?}");
        }
    }

    #[test]
    fn entries_are_hosts() {
        for text in
            ["", "https://a.b", "a.b/c", "a b", "*.", "*.com", "*x.y.z", "a.b:0", "a.b:x", "a..b", "word"]
        {
            assert!(text.parse::<AllowedRegistry>().is_err(), "{text:?}");
        }
    }
}
