//! Where the source of an application is.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use ipnet::IpNet;

use super::{BuildPack, ImageRef};
use crate::{
    network::{AllowedEndpoint, is_loopback_or_link_local},
    secret::Secret,
    value::InvalidValue,
};

/// Where an application comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repository {
    /// A git repository.
    Git(GitUrl),
    /// A prebuilt image.
    Image(ImageRef),
}

impl Repository {
    /// Reads what somebody wrote for an application of `build_pack`, and takes the credentials out
    /// of it.
    ///
    /// # Errors
    /// [`InvalidValue`] for what is neither a repository nor, where one is wanted, an image.
    pub fn parse(raw: &str, build_pack: BuildPack) -> Result<(Self, Option<GitCredentials>), InvalidValue> {
        if build_pack == BuildPack::Image {
            return Ok((Self::Image(raw.parse()?), None));
        }
        let (url, credentials) = GitUrl::parse(raw)?;
        Ok((Self::Git(url), credentials))
    }

    /// The text that is shown.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Git(url) => url.as_str(),
            Self::Image(image) => image.as_str(),
        }
    }
}

/// The address of a git repository, without credentials.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GitUrl {
    text: String,
    place: GitPlace,
}

/// How and where a git repository is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GitPlace {
    /// On a host.
    Remote {
        /// By which protocol.
        transport: Transport,
        /// A name or an address, without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// In a folder of this machine.
    Local(PathBuf),
}

/// How a host is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the protocols")]
pub enum Transport {
    Https,
    Http,
    Ssh,
    Git,
}

/// What a repository wants to see before it shows itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCredentials {
    /// Who.
    pub username: String,
    /// With which token or password.
    pub password: Secret<String>,
}

const ALLOWED: &str = "an `https://` or `ssh://` URL or `user@host:path` of a git repository";

/// The longest address, in bytes.
const LONGEST: usize = 2048;

impl GitUrl {
    /// The address, without credentials.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Where that is.
    #[must_use]
    pub fn place(&self) -> &GitPlace {
        &self.place
    }

    /// Reads what somebody wrote, and takes the credentials out of it.
    ///
    /// # Errors
    /// [`InvalidValue`] for what is no address of a repository. It does not repeat what may hold a
    /// secret.
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
            None if raw.starts_with('/') => local(raw, raw),
            None => scp_like(raw),
        }
    }
}

impl TryFrom<String> for GitUrl {
    type Error = InvalidValue;

    /// Reads an address without credentials, as it is kept.
    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        match Self::parse(&raw)? {
            (url, None) => Ok(url),
            (_, Some(_)) => Err(InvalidValue::secret(ALLOWED)),
        }
    }
}

/// What holds an `@` may hold a password, and is not repeated.
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
        // Non-special schemes keep a host as it was written: an address has to be told apart by hand.
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
        // Over ssh there are keys, and the git protocol knows nobody.
        (Transport::Ssh, _) => return Err(refused(raw)),
        (Transport::Git, None) if username.is_empty() => None,
        (Transport::Git, _) => return Err(refused(raw)),
        (Transport::Https | Transport::Http, None) if username.is_empty() => None,
        // A token alone is written in the place of the user.
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
    // What is kept spells some characters out, and has to be read again.
    if url.as_str().len() > LONGEST {
        return Err(refused(raw));
    }
    let place = GitPlace::Remote { transport, host, port };
    Ok((GitUrl { text: url.into(), place }, credentials))
}

/// `user@host:path`.
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

/// Which repositories the operator lets be used.
///
/// `https` and `ssh` are everyone's, except to this machine, its link and its containers. The rest
/// needs an allowance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourcePolicy {
    /// Where plain protocols and this machine may be reached.
    pub allow: Vec<AllowedEndpoint>,
    /// The folder under which local repositories may be used.
    pub local_root: Option<PathBuf>,
    /// Where containers are. This machine reaches all of them, and one organization must not get to
    /// those of another by way of it.
    pub containers: Option<IpNet>,
}

impl SourcePolicy {
    /// Checks what can be said without asking the network: the protocol, and an address that is
    /// written as such.
    ///
    /// # Errors
    /// [`InvalidValue`] for a repository that can never be fetched here.
    pub fn check(&self, url: &GitUrl) -> Result<(), InvalidValue> {
        match url.place() {
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

    /// Checks an address that a host name led to. What is connected to is what was checked.
    ///
    /// # Errors
    /// [`InvalidValue`] unless `transport` may be spoken to `address` and `port`.
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(raw: &str) -> Result<(GitUrl, Option<GitCredentials>), InvalidValue> {
        GitUrl::parse(raw)
    }

    #[test]
    fn urls_and_ssh_addresses_are_accepted_as_they_are() {
        for raw in [
            "https://github.com/ada/engine.git",
            "https://git.example.com:8443/ada/engine",
            "ssh://git@github.com/ada/engine.git",
            "ssh://git@[2001:db8::1]:2222/ada/engine.git",
            "git@github.com:ada/engine.git",
            "http://10.0.0.1/engine.git",
            "git://10.0.0.1:9418/engine.git",
            "file:///srv/git/engine.git",
            "/srv/git/engine.git",
        ] {
            let (url, credentials) = parse(raw).unwrap();
            assert_eq!((url.as_str(), credentials), (raw, None));
        }
    }

    #[test]
    fn what_could_be_an_option_a_helper_or_a_trick_is_refused() {
        let long = format!("https://example.com/{}", "a".repeat(2048));
        let long_as_it_is_kept = format!("https://example.com/{}", "ä".repeat(339));
        for raw in [
            "",
            "-",
            "--upload-pack=touch x",
            "ext::sh -c touch",
            "ext::x",
            "fd::17",
            "https://",
            "https:///x",
            "https://example.com",
            "https://example.com/",
            "ftp://example.com/x",
            "javascript:alert(1)",
            "https://example.com/x?y=1",
            "https://example.com/x#y",
            "https://exa mple.com/x",
            "ssh://-oProxyCommand=x/y",
            "git@-oProxyCommand=x:y",
            "-git@host:x",
            "git@host:-x",
            "git@host:",
            "host:path",
            "../x",
            "./x",
            "x",
            "file://host/x",
            "file:///a/../b",
            "/a/../b",
            "git@host:a b",
            "https://h/x\ny",
            "ssh://git:pw@host/x",
            "git://user@host/x",
            "https://h:0/x",
            "https://h:99999/x",
            &long,
            &long_as_it_is_kept,
        ] {
            assert!(parse(raw).is_err(), "{raw:?}");
        }
    }

    #[test]
    fn credentials_are_taken_out_of_the_address() {
        for (raw, username, password) in [
            ("https://ada:hunter2@example.com/x.git", "ada", "hunter2"),
            ("https://ghp_token@example.com/x.git", "x-access-token", "ghp_token"),
            ("https://ada:p%40ss%3A@example.com/x.git", "ada", "p@ss:"),
        ] {
            let (url, credentials) = parse(raw).unwrap();
            assert_eq!(url.as_str(), "https://example.com/x.git");
            let credentials = credentials.unwrap();
            assert_eq!(
                (credentials.username.as_str(), credentials.password.expose().as_str()),
                (username, password)
            );
            assert!(GitUrl::try_from(raw.to_owned()).is_err());
        }
    }

    #[test]
    fn a_refusal_repeats_no_password() {
        for raw in ["https://ada:hunter2@example.com/x?y", "ssh://ada:hunter2@example.com/x"] {
            assert!(!parse(raw).unwrap_err().to_string().contains("hunter2"));
        }
    }

    fn check(policy: &SourcePolicy, raw: &str) -> bool {
        policy.check(&parse(raw).unwrap().0).is_ok()
    }

    #[test]
    fn without_an_allowance_only_https_and_ssh_to_other_machines_are_used() {
        let policy = SourcePolicy::default();
        for (raw, allowed) in [
            ("https://github.com/a/b", true),
            ("git@github.com:a/b", true),
            ("https://10.0.0.1/a", true),
            ("http://github.com/a/b", false),
            ("git://github.com/a/b", false),
            ("https://127.0.0.1/a", false),
            ("https://127.1/a", false),
            ("https://0x7f000001/a", false),
            ("https://localhost/a", false),
            ("https://x.localhost/a", false),
            ("https://169.254.169.254/a", false),
            ("https://[::1]/a", false),
            ("https://[::ffff:127.0.0.1]/a", false),
            ("ssh://git@127.0.0.1/a", false),
            ("/srv/git/a", false),
            ("file:///srv/git/a", false),
        ] {
            assert_eq!(check(&policy, raw), allowed, "{raw}");
        }
    }

    #[test]
    fn an_allowance_opens_its_addresses_and_ports_and_a_root_its_folder() {
        let allow = vec![AllowedEndpoint { network: "127.0.0.1/32".parse().unwrap(), port: 9418 }];
        let policy = SourcePolicy { allow, local_root: Some("/srv/git".into()), containers: None };
        for (raw, allowed) in [
            ("git://127.0.0.1/a", true),
            ("git://localhost/a", true),
            ("git://127.0.0.1:9419/a", false),
            ("http://127.0.0.1/a", false),
            ("/srv/git/a", true),
            ("file:///srv/git/a", true),
            ("/srv/gitx/a", false),
            ("/etc", false),
        ] {
            assert_eq!(check(&policy, raw), allowed, "{raw}");
        }
        let address = |text: &str| text.parse().unwrap();
        assert!(policy.check_address(Transport::Http, address("127.0.0.1"), 9418).is_ok());
        assert!(policy.check_address(Transport::Http, address("192.0.2.1"), 80).is_err());
        assert!(policy.check_address(Transport::Https, address("192.0.2.1"), 443).is_ok());
    }

    proptest! {
        #[test]
        fn an_accepted_address_is_no_option_and_survives_being_parsed_again(text in "[-a-z@:/.0-9\\[\\]% ]{0,40}") {
            if let Ok((url, _)) = parse(&text) {
                prop_assert!(!url.as_str().starts_with('-'));
                prop_assert_eq!(GitUrl::try_from(url.as_str().to_owned()), Ok(url.clone()));
            }
        }
    }

    #[test]
    fn a_container_is_no_place_for_a_repository() {
        let policy =
            SourcePolicy { containers: Some("10.192.0.0/12".parse().unwrap()), ..SourcePolicy::default() };
        for (url, is_allowed) in [
            ("https://10.192.2.2:8443/a.git", false),
            ("ssh://git@10.207.255.254/a.git", false),
            ("https://[::ffff:10.192.2.2]/a.git", false),
            ("https://10.191.255.255/a.git", true),
            ("https://10.208.0.1/a.git", true),
        ] {
            let (url, _) = GitUrl::parse(url).unwrap();
            assert_eq!(policy.check(&url).is_ok(), is_allowed, "{}", url.as_str());
        }
    }
}
