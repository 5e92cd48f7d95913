//! Commit statuses: the progress of previews, as code hosts show it beside a request.

use super::Preview;
use crate::{
    applications::{Application, GitPlace, GitUrl, Repository, Transport},
    clock::Timestamp,
    deployments::{CommitHash, Deployment, DeploymentState},
    ids::OrganizationId,
    notifications::WebhookUrl,
    secret::Sealed,
    value::{InvalidValue, named, text_value},
    webhooks::{CodeHost, HeadCommit, RepositoryKey},
};

text_value!(
    /// The name of a code host in the addresses of its repositories, in lower case, with the port of its web address
    /// unless that is the default.
    CodeHostName,
    |raw| {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        let is_plain = !raw.is_empty() && raw.bytes().all(is_name);
        let url = GitUrl::parse(&format!("https://{raw}/a/b")).ok().filter(|_| is_plain);
        let name = url.and_then(|(url, _)| Self::of(&url));
        name.map(Self::into).ok_or_else(|| InvalidValue::text("the name of a code host, such as `github.com`", &raw))
    }
);

impl CodeHostName {
    /// Returns the code host of a repository; `None` if it is on this machine.
    #[must_use]
    pub fn of(url: &GitUrl) -> Option<Self> {
        let GitPlace::Remote { transport, host, port } = url.place() else { return None };
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        Some(Self(match (transport, port) {
            (Transport::Https, 443) | (Transport::Http, 80) | (Transport::Ssh | Transport::Git, _) => host,
            (Transport::Https | Transport::Http, port) => format!("{host}:{port}"),
        }))
    }
}

text_value!(
    /// The address of the API of a code host, without a slash at its end.
    CodeHostApi,
    |raw| {
        let url = raw.trim_end_matches('/').to_owned();
        let invalid = || InvalidValue::text("the address of an API, such as `https://git.example.com/api/v1`", &raw);
        let is_base = !url.contains(['?', '#', '@']) && WebhookUrl::try_from(url.clone()).is_ok();
        if is_base { Ok(url) } else { Err(invalid()) }
    }
);

impl CodeHostApi {
    /// Returns the address that the API of a code host has by default.
    #[must_use]
    pub fn default_of(kind: CodeHost, host: &CodeHostName) -> Self {
        Self(match kind {
            CodeHost::GitHub if host.as_str() == "github.com" => "https://api.github.com".to_owned(),
            CodeHost::GitHub => format!("https://{host}/api/v3"),
            CodeHost::GitLab => format!("https://{host}/api/v4"),
            CodeHost::Gitea | CodeHost::Forgejo => format!("https://{host}/api/v1"),
            CodeHost::Bitbucket => "https://api.bitbucket.org/2.0".to_owned(),
        })
    }
}

/// The token with which an organization reports commit statuses to a code host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeHostToken {
    /// The organization that it belongs to.
    pub organization: OrganizationId,
    /// The code host.
    pub host: CodeHostName,
    /// The address of its API, if it is not the default.
    pub api: Option<CodeHostApi>,
    /// The token; see [`CodeHostToken::associated_data`].
    pub token: Sealed,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The reason why the last report failed.
    pub problem: Option<String>,
}

impl CodeHostToken {
    /// The maximum number of tokens of an organization.
    pub const MOST: usize = 20;
    /// The largest length of a token.
    pub const LONGEST: usize = 1024;

    /// Returns the associated data (AEAD) of a token: with any other, it cannot be decrypted.
    #[must_use]
    pub fn associated_data(organization: OrganizationId, host: &CodeHostName) -> String {
        format!("code_host_tokens.token:{organization}:{host}")
    }
}

named!(
    /// The state of a commit.
    StatusState,
    "the state of a commit",
    {
        Pending => "pending",
        Success => "success",
        Failure => "failure",
    }
);

/// The status of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitStatus {
    /// The commit.
    pub commit: CommitHash,
    /// Its state.
    pub state: StatusState,
}

impl CommitStatus {
    /// Returns the status of a preview with this newest deployment; `None` while its commit is not known.
    #[must_use]
    pub fn of(preview: &Preview, newest: &Deployment) -> Option<Self> {
        let head = || preview.head.as_ref().and_then(HeadCommit::full);
        let state = match newest.status.state {
            DeploymentState::Deployed => StatusState::Success,
            DeploymentState::Failed | DeploymentState::Cancelled => StatusState::Failure,
            _ => StatusState::Pending,
        };
        Some(Self { commit: newest.commit.clone().or_else(head)?, state })
    }
}

/// A commit status that is not reported yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreportedStatus {
    /// The organization that the preview belongs to.
    pub organization: OrganizationId,
    /// The preview.
    pub preview: Preview,
    /// The application that it is a preview of.
    pub parent: Application,
    /// The application that runs it.
    pub application: Application,
    /// The status.
    pub status: CommitStatus,
}

impl UnreportedStatus {
    /// Returns the code host of the repository, and the path of the repository there; `None` if it is on this machine.
    #[must_use]
    pub fn repository(&self) -> Option<(CodeHostName, String)> {
        let Repository::Git(url) = &self.parent.blueprint.repository else { return None };
        let host = CodeHostName::of(url)?;
        let key = RepositoryKey::of(url);
        let (_, path) = key.as_str().split_once('/')?;
        Some((host, path.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_host_is_named_as_in_addresses() {
        for (raw, name) in [
            ("github.com", Some("github.com")),
            ("GitHub.com", Some("github.com")),
            ("git.example.com:8443", Some("git.example.com:8443")),
            ("git.example.com:443", Some("git.example.com")),
            ("[2001:db8::1]", Some("[2001:db8::1]")),
            ("", None),
            ("https://github.com", None),
            ("github.com/ada", None),
            ("ada@github.com", None),
            ("git hub.com", None),
        ] {
            let parsed = raw.parse::<CodeHostName>().ok();
            assert_eq!(parsed.as_ref().map(CodeHostName::as_str), name, "{raw}");
        }
    }

    #[test]
    fn every_address_of_a_repository_is_of_the_same_code_host() {
        for address in [
            "https://git.example.com/ada/shop.git",
            "git@git.example.com:ada/shop.git",
            "ssh://git@git.example.com:2222/ada/shop.git",
        ] {
            let (url, _) = GitUrl::parse(address).unwrap();
            assert_eq!(CodeHostName::of(&url).unwrap().as_str(), "git.example.com", "{address}");
        }
        let (local, _) = GitUrl::parse("/srv/git/shop").unwrap();
        assert_eq!(CodeHostName::of(&local), None);
    }

    #[test]
    fn an_api_has_an_address_without_a_query() {
        for (raw, url) in [
            ("https://git.example.com/api/v1/", Some("https://git.example.com/api/v1")),
            ("http://10.0.0.1:3000", Some("http://10.0.0.1:3000")),
            ("https://git.example.com/?a=b", None),
            ("https://ada:secret@git.example.com", None),
            ("ftp://git.example.com", None),
            ("", None),
        ] {
            let parsed = raw.parse::<CodeHostApi>().ok();
            assert_eq!(parsed.as_ref().map(CodeHostApi::as_str), url, "{raw}");
        }
    }

    #[test]
    fn each_code_host_has_an_api_by_default() {
        let api =
            |kind, host: &str| CodeHostApi::default_of(kind, &host.parse().unwrap()).as_str().to_owned();
        assert_eq!(api(CodeHost::GitHub, "github.com"), "https://api.github.com");
        assert_eq!(api(CodeHost::GitHub, "git.example.com"), "https://git.example.com/api/v3");
        assert_eq!(api(CodeHost::GitLab, "gitlab.com"), "https://gitlab.com/api/v4");
        assert_eq!(api(CodeHost::Forgejo, "codeberg.org"), "https://codeberg.org/api/v1");
        assert_eq!(api(CodeHost::Bitbucket, "bitbucket.org"), "https://api.bitbucket.org/2.0");
    }
}
