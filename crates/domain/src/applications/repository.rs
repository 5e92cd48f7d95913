//! The source of an application.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use ipnet::IpNet;

use super::{BuildPack, ImageRef};
use crate::{
    ids::ApplicationId,
    network::{AllowedEndpoint, is_loopback_or_link_local},
    secret::Secret,
    value::InvalidValue,
};

/// The source of an application: a git repository or an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repository {
    /// A git repository.
    Git(GitUrl),
    /// A prebuilt image.
    Image(ImageRef),
}

impl Repository {
    /// Parses the repository that a user entered for an application of `build_pack`, and separates the
    /// credentials from it.
    ///
    /// # Errors
    /// [`InvalidValue`] if it is neither a repository nor, where one is expected, an image.
    pub fn parse(raw: &str, build_pack: BuildPack) -> Result<(Self, Option<GitCredentials>), InvalidValue> {
        if build_pack == BuildPack::Image {
            return Ok((Self::Image(raw.parse()?), None));
        }
        let (url, credentials) = GitUrl::parse(raw)?;
        Ok((Self::Git(url), credentials))
    }

    /// Returns the text that is shown.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Git(url) => url.as_str(),
            Self::Image(image) => image.as_str(),
        }
    }
}

/// The address of a git repository, without credentials.
///
/// ```
/// # #[cfg(feature = "git")] {
/// use launchway_domain::applications::GitUrl;
///
/// let (url, credentials) = GitUrl::parse("https://ada:token@git.example.com/ada/web.git").unwrap();
/// assert_eq!(url.as_str(), "https://git.example.com/ada/web.git");
/// assert!(credentials.is_some());
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GitUrl {
    text: String,
    place: GitPlace,
}

/// The transport and location of a git repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GitPlace {
    /// A repository on a host.
    Remote {
        /// The protocol.
        transport: Transport,
        /// A name or an address, without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A folder of this machine.
    Local(PathBuf),
    /// The repository of an application on this server, which users push to.
    Hosted(ApplicationId),
}

/// The protocol of a remote repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// HTTP over TLS.
    Https,
    /// Unencrypted HTTP.
    Http,
    /// SSH.
    Ssh,
    /// The unencrypted git protocol.
    Git,
}

/// The credentials of a repository over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCredentials {
    /// The user name.
    pub username: String,
    /// The token or password.
    pub password: Secret<String>,
}

const ALLOWED: &str = "an `https://` or `ssh://` URL or `user@host:path` of a git repository";

/// The length limit of an address, in bytes.
const LONGEST: usize = 2048;

/// The path of repositories on this server, before and after the id of the application.
const HOSTED: &str = "/git/";
const SUFFIX: &str = ".git";

impl GitUrl {
    /// Returns the address, without credentials.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the address of the repository that users push an application to. It is a path on this server, because a
    /// server has several names.
    #[must_use]
    pub fn hosted(id: ApplicationId) -> Self {
        Self { text: format!("{HOSTED}{id}{SUFFIX}"), place: GitPlace::Hosted(id) }
    }

    /// Returns the application whose repository on this server this is.
    #[must_use]
    pub fn hosted_for(&self) -> Option<ApplicationId> {
        match self.place {
            GitPlace::Hosted(id) => Some(id),
            GitPlace::Local(_) | GitPlace::Remote { .. } => None,
        }
    }

    /// Returns the location of the repository.
    #[must_use]
    pub fn place(&self) -> &GitPlace {
        &self.place
    }

    /// Parses the address that a user entered, and separates the credentials from it.
    ///
    /// # Errors
    /// [`InvalidValue`] if it is not the address of a repository. The error does not repeat input that may
    /// contain a secret.
    pub fn parse(raw: &str) -> Result<(Self, Option<GitCredentials>), InvalidValue> {
        let raw = raw.trim();
        let is_written_well = raw.len() <= LONGEST
            && !raw.starts_with('-')
            && !raw.contains(|c: char| c.is_control() || c == '\\');
        if !is_written_well {
            return Err(refused(raw));
        }
        match raw.split_once("://") {
            Some(("file", path)) => local(raw, path),
            Some(_) => remote(raw),
            None if raw.starts_with('/') => match hosted(raw) {
                Some(id) => Ok((Self::hosted(id), None)),
                None => local(raw, raw),
            },
            None => scp_like(raw),
        }
    }
}

impl TryFrom<String> for GitUrl {
    type Error = InvalidValue;

    /// Parses a stored address, which has no credentials.
    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        match Self::parse(&raw)? {
            (url, None) => Ok(url),
            (_, Some(_)) => Err(InvalidValue::secret(ALLOWED)),
        }
    }
}

/// Parses `/git/<application id>.git`.
fn hosted(raw: &str) -> Option<ApplicationId> {
    raw.strip_prefix(HOSTED)?.strip_suffix(SUFFIX)?.parse().ok()
}

/// Returns the error for `raw`. Input with an `@` may contain a password, and is not repeated.
fn refused(raw: &str) -> InvalidValue {
    if raw.contains('@') { InvalidValue::secret(ALLOWED) } else { InvalidValue::text(ALLOWED, raw) }
}

fn local(raw: &str, path: &str) -> Result<(GitUrl, Option<GitCredentials>), InvalidValue> {
    let leads_up = path.split('/').any(|part| part == "..");
    if !path.starts_with('/') || leads_up {
        return Err(refused(raw));
    }
    Ok((GitUrl { text: raw.to_owned(), place: GitPlace::Local(PathBuf::from(path)) }, None))
}

#[cfg(not(feature = "git"))]
fn remote(_: &str) -> Result<(GitUrl, Option<GitCredentials>), InvalidValue> {
    Err(InvalidValue::secret("a path or `user@host:path`: this program is built without repositories by URL"))
}

#[cfg(feature = "git")]
fn remote(raw: &str) -> Result<(GitUrl, Option<GitCredentials>), InvalidValue> {
    let mut url = url::Url::parse(raw).map_err(|_no_url| refused(raw))?;
    let (transport, port) = match url.scheme() {
        "https" => (Transport::Https, 443),
        "http" => (Transport::Http, 80),
        "ssh" => (Transport::Ssh, 22),
        "git" => (Transport::Git, 9418),
        _ => return Err(refused(raw)),
    };
    let port = url.port().unwrap_or(port);
    let host = match url.host() {
        // The URL parser keeps the host of a non-special scheme as it was written, so addresses are
        // recognised here.
        Some(url::Host::Domain(host)) => host.trim_matches(['[', ']']).to_ascii_lowercase(),
        Some(url::Host::Ipv4(address)) => address.to_string(),
        Some(url::Host::Ipv6(address)) => address.to_string(),
        None => return Err(refused(raw)),
    };
    let is_host = is_host(&host);
    let has_path = url.path().len() > 1;
    let is_plain = url.query().is_none() && url.fragment().is_none() && port > 0;
    if !is_host || !has_path || !is_plain {
        return Err(refused(raw));
    }
    let decoded = |text: &str| percent_decoded(text).ok_or_else(|| refused(raw));
    let (username, password) = (decoded(url.username())?, url.password().map(decoded).transpose()?);
    let credentials = match (transport, password) {
        (Transport::Ssh, None) if is_user(&username) || username.is_empty() => None,
        // SSH authenticates by keys, and the git protocol not at all.
        (Transport::Ssh, _) => return Err(refused(raw)),
        (Transport::Git, None) if username.is_empty() => None,
        (Transport::Git, _) => return Err(refused(raw)),
        (Transport::Https | Transport::Http, None) if username.is_empty() => None,
        // A token without a user name is written in place of the user name.
        (Transport::Https | Transport::Http, None) => {
            Some(GitCredentials { username: "x-access-token".to_owned(), password: Secret::new(username) })
        }
        (Transport::Https | Transport::Http, Some(password)) => {
            Some(GitCredentials { username, password: Secret::new(password) })
        }
    };
    if credentials.is_some() {
        let cut = url.set_username("").and_then(|()| url.set_password(None));
        cut.map_err(|()| refused(raw))?;
    }
    // The stored form escapes some characters, and has to be parsed again.
    if url.as_str().len() > LONGEST {
        return Err(refused(raw));
    }
    let place = GitPlace::Remote { transport, host, port };
    Ok((GitUrl { text: url.into(), place }, credentials))
}

/// Parses the form `user@host:path`.
fn scp_like(raw: &str) -> Result<(GitUrl, Option<GitCredentials>), InvalidValue> {
    let parts = raw.split_once(':').and_then(|(who, path)| Some((who.split_once('@')?, path)));
    let Some(((user, host), path)) = parts else { return Err(refused(raw)) };
    let is_path = !path.is_empty() && !path.starts_with(['-', ':']) && !path.contains(' ');
    if !is_user(user) || !is_host(host) || !is_path {
        return Err(refused(raw));
    }
    let place = GitPlace::Remote { transport: Transport::Ssh, host: host.to_ascii_lowercase(), port: 22 };
    Ok((GitUrl { text: raw.to_owned(), place }, None))
}

fn is_user(user: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !user.is_empty() && !user.starts_with('-') && user.bytes().all(is_plain)
}

fn is_host(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_name = !host.is_empty() && !host.starts_with(['-', '.']) && host.bytes().all(is_plain);
    host.len() <= 253 && (is_name || host.parse::<IpAddr>().is_ok())
}

#[cfg(feature = "git")]
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains(char::is_control))
}

/// The operator's policy for repositories.
///
/// `https` and `ssh` are allowed for everyone, except to this machine, its link and its containers.
/// Everything else needs an entry in `allow`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourcePolicy {
    /// The endpoints at which unencrypted protocols, and addresses of this machine, are allowed.
    pub allow: Vec<AllowedEndpoint>,
    /// The folder under which local repositories may be used.
    pub local_root: Option<PathBuf>,
    /// The network of the containers. This machine reaches all of them, and one organization must not reach
    /// those of another through it.
    pub containers: Option<IpNet>,
}

impl SourcePolicy {
    /// Checks the protocol, and an address that is written as such. Does not use the network.
    ///
    /// # Errors
    /// [`InvalidValue`] for a repository that can never be fetched here.
    pub fn check(&self, url: &GitUrl) -> Result<(), InvalidValue> {
        match url.place() {
            GitPlace::Hosted(_) => Ok(()),
            GitPlace::Local(path) => self.check_local(path),
            GitPlace::Remote { transport, host, port } => match host.parse::<IpAddr>() {
                Ok(address) => self.check_address(*transport, address, *port),
                Err(_) if host == "localhost" || host.ends_with(".localhost") => {
                    self.check_address(*transport, IpAddr::from([127, 0, 0, 1]), *port)
                }
                Err(_)
                    if matches!(transport, Transport::Https | Transport::Ssh) || !self.allow.is_empty() =>
                {
                    Ok(())
                }
                Err(_) => Err(not_allowed(host)),
            },
        }
    }

    /// Checks an address that a host name resolved to. The caller connects to exactly the address that was
    /// checked.
    ///
    /// # Errors
    /// [`InvalidValue`] unless `transport` may be used to `address` and `port`.
    pub fn check_address(
        &self,
        transport: Transport,
        address: IpAddr,
        port: u16,
    ) -> Result<(), InvalidValue> {
        let is_inside = is_loopback_or_link_local(address)
            || self.containers.is_some_and(|containers| containers.contains(&address.to_canonical()));
        let is_everyones = matches!(transport, Transport::Https | Transport::Ssh) && !is_inside;
        let is_allowed = || self.allow.iter().any(|allowed| allowed.covers(address, port));
        if is_everyones || is_allowed() {
            Ok(())
        } else {
            Err(not_allowed(&format!("{address} port {port}")))
        }
    }

    fn check_local(&self, path: &Path) -> Result<(), InvalidValue> {
        match &self.local_root {
            Some(root) if path.starts_with(root) => Ok(()),
            _ => Err(InvalidValue::text(
                "an `https://` or `ssh://` repository: local ones need LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES",
                &path.display().to_string(),
            )),
        }
    }
}

fn not_allowed(what: &str) -> InvalidValue {
    InvalidValue::text(
        "reached by `https` or `ssh` on another machine: anything else needs LAUNCHWAY_GIT_ALLOW",
        what,
    )
}

#[cfg(test)]
mod tests;
