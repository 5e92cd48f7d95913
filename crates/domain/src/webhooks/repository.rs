//! The identity of a repository, independent of its spelling.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::{
    applications::{GitPlace, GitUrl, Transport},
    value::{InvalidValue, text_value},
};

text_value!(
    /// The common part of all addresses of a repository: the host, a port that is not the protocol's
    /// default, and the path. `git@example.com:ada/engine.git` and `https://EXAMPLE.com/ada/engine/` are
    /// the same, `example.com/ada/engine`. The path is in lower case where the host ignores its case.
    RepositoryKey,
    |raw| {
        if raw.is_empty() { Err(InvalidValue::text("a repository", &raw)) } else { Ok(raw) }
    }
);

/// The length limit. A longer key is stored as its hash: databases do not index texts of any length.
const LONGEST: usize = 1024;

/// The public code hosts that ignore the case of owners and repositories.
const IGNORE_CASE: [&str; 5] = ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "gitea.com"];

impl RepositoryKey {
    /// Returns the key of the repository at `url`.
    #[must_use]
    pub fn of(url: &GitUrl) -> Self {
        let path = bare(path_of(url));
        let key = match url.place() {
            GitPlace::Local(_) | GitPlace::Hosted(_) => format!("/{path}"),
            GitPlace::Remote { transport, host, port } => {
                let path = match IGNORE_CASE.contains(&host.as_str()) {
                    true => path.to_ascii_lowercase(),
                    false => path,
                };
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                match *port == own_port(*transport) {
                    true => format!("{host}/{path}"),
                    false => format!("{host}:{port}/{path}"),
                }
            }
        };
        match key.len() <= LONGEST {
            true => Self(key),
            false => Self(format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(key)))),
        }
    }

    /// Returns the key of the repository at an address as a code host writes it; `None` if it is not an
    /// address.
    #[must_use]
    pub fn parse(address: &str) -> Option<Self> {
        GitUrl::parse(address).ok().map(|(url, _)| Self::of(&url))
    }
}

fn own_port(transport: Transport) -> u16 {
    match transport {
        Transport::Https => 443,
        Transport::Http => 80,
        Transport::Ssh => 22,
        Transport::Git => 9418,
    }
}

fn path_of(url: &GitUrl) -> &str {
    let text = url.as_str();
    match (text.split_once("://"), url.place()) {
        (Some((_, rest)), GitPlace::Local(_) | GitPlace::Hosted(_)) => rest,
        (Some((_, rest)), GitPlace::Remote { .. }) => rest.split_once('/').map_or("", |(_, path)| path),
        (None, GitPlace::Local(_) | GitPlace::Hosted(_)) => text,
        // `user@host:path`.
        (None, GitPlace::Remote { .. }) => text.split_once(':').map_or("", |(_, path)| path),
    }
}

/// Returns the path in the normal form of code hosts.
fn bare(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let mut path = parts.join("/");
    while let Some(shorter) = path.strip_suffix(".git") {
        path.truncate(shorter.trim_end_matches('/').len());
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(address: &str) -> String {
        RepositoryKey::parse(address).unwrap_or_else(|| panic!("{address}")).into()
    }

    #[test]
    fn ignores_the_case_of_the_path_on_public_hosts() {
        for host in IGNORE_CASE {
            assert_eq!(key(&format!("https://{host}/Ada/ENGINE.git")), format!("{host}/ada/engine"));
            assert_eq!(key(&format!("git@{host}:Ada/engine")), format!("{host}/ada/engine"));
        }
        assert_eq!(key("https://git.example.com/Ada/ENGINE"), "git.example.com/Ada/ENGINE");
    }

    #[test]
    fn ignores_scheme_user_suffix_host_case_and_slashes() {
        for address in [
            "https://example.com/ada/engine",
            "https://example.com/ada/engine.git",
            "https://example.com/ada/engine/",
            "https://example.com/ada/engine.git/",
            "https://example.com//ada//engine",
            "https://EXAMPLE.com/ada/engine",
            "https://ada:token@example.com/ada/engine.git",
            "https://token@example.com/ada/engine.git",
            "https://example.com:443/ada/engine",
            "http://example.com/ada/engine",
            "http://example.com:80/ada/engine",
            "git://example.com/ada/engine.git",
            "git://example.com:9418/ada/engine.git",
            "ssh://git@example.com/ada/engine.git",
            "ssh://git@example.com:22/ada/engine",
            "ssh://Example.COM/ada/engine",
            "git@example.com:ada/engine.git",
            "git@EXAMPLE.com:/ada/engine",
            "deploy@example.com:ada/engine/",
        ] {
            assert_eq!(key(address), "example.com/ada/engine", "{address}");
        }
    }

    #[test]
    fn host_port_path_and_case_of_path_make_one() {
        let different = [
            "https://example.com/ada/engine",
            "https://example.com/ada/Engine",
            "https://example.com/ada/engines",
            "https://example.com/engine",
            "https://example.org/ada/engine",
            "https://www.example.com/ada/engine",
            "https://example.com:8443/ada/engine",
            "ssh://git@example.com:2222/ada/engine",
            // Not the default port of its protocol.
            "https://example.com:22/ada/engine",
            "https://[2001:db8::1]/ada/engine",
            "/ada/engine",
        ];
        let keys: std::collections::BTreeSet<_> = different.into_iter().map(key).collect();
        assert_eq!(keys.len(), different.len(), "{keys:?}");
    }

    #[test]
    fn a_folder_is_one_however_it_is_written() {
        for address in
            ["/srv/git/engine", "/srv/git/engine.git", "file:///srv/git/engine/", "/srv/git/engine/.git"]
        {
            assert_eq!(key(address), "/srv/git/engine", "{address}");
        }
    }

    #[test]
    fn what_is_no_address_is_no_repository() {
        for address in ["", "ada/engine", "ftp://example.com/a", "-x", "https://example.com", "javascript:1"]
        {
            assert_eq!(RepositoryKey::parse(address), None, "{address}");
        }
    }

    #[test]
    fn a_long_one_is_kept_as_a_hash() {
        let long = |end: char| key(&format!("https://example.com/{}{end}", "ä".repeat(330)));
        assert_eq!(long('a'), long('a'));
        assert_ne!(long('a'), long('b'));
        assert!(long('a').len() < 100);
    }

    proptest! {
        #[test]
        fn every_spelling_of_an_address_is_the_same_repository(
            host in "[a-z]{1,8}(\\.[a-z]{2,5}){1,2}",
            path in "[a-z][a-zA-Z0-9_-]{0,8}(/[a-z][a-zA-Z0-9._-]{0,8}[a-z]){1,3}",
            user in "[a-z]{1,6}",
            ending in prop::sample::select(vec!["", "/", ".git", ".git/", "//"]),
        ) {
            let shouted = host.to_uppercase();
            let expected = key(&format!("https://{host}/{path}"));
            for address in [
                format!("https://{shouted}/{path}{ending}"),
                format!("http://{user}:{user}@{host}:80/{path}{ending}"),
                format!("ssh://{user}@{shouted}/{path}{ending}"),
                format!("ssh://{host}:22//{path}{ending}"),
                format!("{user}@{host}:{path}{ending}"),
                format!("git://{host}:9418/{path}{ending}"),
            ] {
                prop_assert_eq!(key(&address), expected.clone(), "{}", address);
            }
            // The stored form can be parsed again.
            prop_assert_eq!(key(&format!("https://{expected}")), expected);
        }

        #[test]
        fn no_address_breaks_it(address in ".{0,60}") {
            let _ = RepositoryKey::parse(&address);
        }
    }
}
