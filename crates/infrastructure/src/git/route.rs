//! The protocol and the address of a repository.

use std::{
    ffi::OsString,
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::LazyLock,
    time::Duration,
};

use data_encoding::BASE64;
use launchway_domain::{
    applications::{GitCredentials, GitPlace, SourcePolicy, Transport},
    deployments::{GitSource, StepError},
    value::InvalidValue,
};
use launchway_system::resolver::{SystemResolver, look_up};

use super::{GitOptions, ssh};

/// The timeout of resolving a host name.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The connection parameters of a repository that the policy allows. They contain secrets, and have no
/// `Debug`.
#[derive(Default)]
pub(super) struct Route {
    /// The URL for git.
    pub(super) url: OsString,
    /// The only protocol that is allowed.
    pub(super) protocol: &'static str,
    /// Settings of git.
    pub(super) settings: Vec<(&'static str, String)>,
    /// Additional environment variables.
    pub(super) environment: Vec<(&'static str, String)>,
    /// Files that it reads; some contain secrets.
    pub(super) files: Vec<(&'static str, String)>,
}

/// Resolves the hosts of repositories only, so that no other use can exhaust it.
static NAMES: LazyLock<SystemResolver> = LazyLock::new(SystemResolver::default);

impl Route {
    pub(super) async fn find(source: &GitSource, options: &GitOptions) -> Result<Self, StepError> {
        let url = &source.url;
        let refused = |invalid: InvalidValue| {
            StepError::Rejected(format!("{} is not allowed here: it {invalid}.", url.as_str()))
        };
        options.policy.check(url).map_err(refused)?;
        let mut route = Self { url: url.as_str().into(), ..Self::default() };
        let (transport, host, port) = match url.place() {
            // It is read without a route.
            GitPlace::Hosted(_) => return Ok(route),
            GitPlace::Local(path) => return route.local(path, &options.policy).await,
            GitPlace::Remote { transport, host, port } => (*transport, host.as_str(), *port),
        };
        let found = look_up(&*NAMES, host, TIMEOUT).await;
        let addresses = found.ok_or_else(|| unknown_host(host))?;
        for address in &addresses {
            options.policy.check_address(transport, *address, port).map_err(refused)?;
        }
        let [first, ..] = addresses.as_slice() else { return Err(unknown_host(host)) };
        route.files.push(("gitconfig", String::new()));
        match transport {
            Transport::Https | Transport::Http => {
                route.protocol = if transport == Transport::Https { "https" } else { "http" };
                route.settings.extend(pin(host, port, &addresses));
                route.settings.extend(source.credentials.as_ref().map(authorization));
            }
            Transport::Git => {
                route.protocol = "git";
                route.url = through_address(url.as_str(), SocketAddr::new(*first, port))
                    .ok_or_else(|| unknown_host(host))?;
                let name = if port == 9418 { host.to_owned() } else { format!("{host}:{port}") };
                route.environment.push(("GIT_OVERRIDE_VIRTUAL_HOST", name));
            }
            Transport::Ssh => {
                route.protocol = "ssh";
                route.files.extend(ssh::files(host, SocketAddr::new(*first, port), source, options).await?);
            }
        }
        Ok(route)
    }

    /// A folder of this machine, which must be within the operator's root after links are resolved.
    async fn local(mut self, path: &Path, policy: &SourcePolicy) -> Result<Self, StepError> {
        let missing =
            |_| StepError::Rejected(format!("There is no repository {}.", self.url.to_string_lossy()));
        let root = policy.local_root.as_deref().unwrap_or(Path::new("/nonexistent"));
        let path = tokio::fs::canonicalize(path).await.map_err(missing)?;
        let root = tokio::fs::canonicalize(root).await.map_err(missing)?;
        if !path.starts_with(&root) {
            let url = self.url.to_string_lossy();
            return Err(StepError::Rejected(format!(
                "{url} is not allowed here: it resolves to another path."
            )));
        }
        self.protocol = "file";
        // The process that serves the repository ignores the settings of its caller, but reads this file.
        // The operator allowed the folder, whoever owns its files.
        let safe = [path.clone(), path.join(".git")].map(|path| setting_value(&path.to_string_lossy()));
        let text = format!("[safe]\n\tdirectory = {}\n\tdirectory = {}\n", safe[0], safe[1]);
        self.files.push(("gitconfig", text));
        self.url = path.into();
        Ok(self)
    }
}

fn unknown_host(host: &str) -> StepError {
    StepError::Rejected(format!("There is no host `{host}`, or its name server does not answer."))
}

/// Keeps curl from resolving the host again. A host that is an address needs no entry.
fn pin(host: &str, port: u16, addresses: &[IpAddr]) -> Option<(&'static str, String)> {
    let shown = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let is_name = host.parse::<IpAddr>().is_err();
    let addresses = addresses.iter().map(shown).collect::<Vec<_>>().join(",");
    is_name.then(|| ("http.curloptResolve", format!("{host}:{port}:{addresses}")))
}

fn authorization(credentials: &GitCredentials) -> (&'static str, String) {
    let pair = format!("{}:{}", credentials.username, credentials.password.expose());
    ("http.extraHeader", format!("Authorization: Basic {}", BASE64.encode(pair.as_bytes())))
}

/// Returns `git://host:port/path` with the address in the place of the host.
fn through_address(url: &str, address: SocketAddr) -> Option<OsString> {
    let (_, path) = url.strip_prefix("git://")?.split_once('/')?;
    Some(format!("git://{address}/{path}").into())
}

/// Quotes a value for a git configuration file.
fn setting_value(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use launchway_domain::secret::Secret;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_is_tied_to_every_address_that_was_checked() {
        let addresses = [address("192.0.2.1"), address("2001:db8::1")];
        let (name, value) = pin("git.example.com", 443, &addresses).unwrap();
        assert_eq!(
            (name, value.as_str()),
            ("http.curloptResolve", "git.example.com:443:192.0.2.1,[2001:db8::1]")
        );
        assert_eq!(pin("192.0.2.1", 443, &addresses), None);
    }

    #[test]
    fn the_git_protocol_is_spoken_to_the_address() {
        for (url, at, expected) in [
            ("git://example.com/a/b.git", "192.0.2.1:9418", "git://192.0.2.1:9418/a/b.git"),
            ("git://[2001:db8::1]:99/a", "[2001:db8::1]:99", "git://[2001:db8::1]:99/a"),
        ] {
            assert_eq!(through_address(url, at.parse().unwrap()).unwrap(), expected);
        }
    }

    #[test]
    fn credentials_become_a_header() {
        let credentials =
            GitCredentials { username: "ada".to_owned(), password: Secret::new("pw".to_owned()) };
        assert_eq!(authorization(&credentials).1, "Authorization: Basic YWRhOnB3");
    }

    #[test]
    fn a_path_in_a_file_of_settings_stays_one_value() {
        assert_eq!(setting_value("/a b\"c\\d\n"), "\"/a b\\\"c\\\\d\\n\"");
    }
}
