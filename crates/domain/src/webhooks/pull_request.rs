//! Pull and merge requests, as code hosts report them.

use super::CodeHost;
use crate::{
    deployments::CommitHash,
    value::{InvalidValue, text_value},
};

/// The number of a pull or merge request in its repository.
///
/// ```
/// use launchway_domain::webhooks::RequestNumber;
///
/// assert!(RequestNumber::try_from(1).is_ok());
/// assert!(RequestNumber::try_from(0).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestNumber(i64);

impl RequestNumber {
    /// The largest number: that of nine digits, so that the name of a preview has room for it.
    pub const MOST: i64 = 999_999_999;

    /// Returns the number.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

impl TryFrom<i64> for RequestNumber {
    type Error = InvalidValue;

    fn try_from(raw: i64) -> Result<Self, InvalidValue> {
        match raw {
            1..=Self::MOST => Ok(Self(raw)),
            _ => Err(InvalidValue::number("between 1 and 999999999", raw)),
        }
    }
}

impl std::fmt::Display for RequestNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

text_value!(
    /// The head commit of a request, by its hash. Bitbucket sends the first 12 digits of it only.
    HeadCommit,
    |raw| {
        let hash = raw.to_ascii_lowercase();
        let is_hash = (7..=64).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash { Ok(hash) } else { Err(InvalidValue::text("the hash of a commit", &raw)) }
    }
);

impl HeadCommit {
    /// Returns the commit, if the hash is complete.
    #[must_use]
    pub fn full(&self) -> Option<CommitHash> {
        self.as_str().parse().ok()
    }

    /// Returns an abbreviated hash for display.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.as_str()[..7]
    }
}

/// A change of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEvent {
    /// It was opened.
    Opened,
    /// Its head was moved to another commit, or something else about it changed.
    Updated,
    /// It was closed, and is open again.
    Reopened,
    /// It was closed or merged.
    Closed,
}

/// A pull or merge request after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: RequestNumber,
    /// The change.
    pub event: RequestEvent,
    /// The branch that it wants to merge.
    pub source_branch: String,
    /// The branch that it wants to merge into.
    pub target_branch: String,
    /// The head of the source branch, if the code host sends it.
    pub head: Option<HeadCommit>,
    /// True if the source branch is in another repository, or the code host does not say where it is.
    pub is_from_fork: bool,
}

impl CodeHost {
    /// Returns the name that it has for requests.
    #[must_use]
    pub fn request_title(self) -> &'static str {
        match self {
            Self::GitLab => "merge request",
            Self::GitHub | Self::Gitea | Self::Forgejo | Self::Bitbucket => "pull request",
        }
    }

    /// Returns the reference of the target repository that leads to the head of a request, also of one from a fork;
    /// `None` if the host has none.
    #[must_use]
    pub fn request_reference(self, number: RequestNumber) -> Option<String> {
        match self {
            Self::GitHub | Self::Gitea | Self::Forgejo => Some(format!("refs/pull/{number}/head")),
            Self::GitLab => Some(format!("refs/merge-requests/{number}/head")),
            Self::Bitbucket => None,
        }
    }

    /// Returns whether `event` is about a pull or merge request. Whether it is one of its changes is in the payload.
    #[must_use]
    pub fn is_pull_request(self, event: &str) -> bool {
        match self {
            Self::GitHub => event == "pull_request",
            Self::Gitea | Self::Forgejo => matches!(event, "pull_request" | "pull_request_sync"),
            Self::GitLab => event == "Merge Request Hook",
            Self::Bitbucket => event.starts_with("pullrequest:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::applications::Branch;

    #[test]
    fn a_number_has_1_to_9_digits() {
        for (number, fits) in
            [(-1, false), (0, false), (1, true), (999_999_999, true), (1_000_000_000, false)]
        {
            assert_eq!(RequestNumber::try_from(number).is_ok(), fits, "{number}");
        }
    }

    #[test]
    fn a_head_is_whole_or_abbreviated() {
        let whole: HeadCommit = "59B20B8D5C6FF8D09518454D4DD8B7B30F095AB5".parse().unwrap();
        assert_eq!(whole.full().unwrap().as_str(), "59b20b8d5c6ff8d09518454d4dd8b7b30f095ab5");
        let short: HeadCommit = "59b20b8d5c6f".parse().unwrap();
        assert_eq!((short.full(), short.short()), (None, "59b20b8"));
        for text in ["", "59b20b", "main", "59b20b8g", &"a".repeat(65)] {
            assert!(text.parse::<HeadCommit>().is_err(), "{text}");
        }
    }

    #[test]
    fn references_of_requests_are_read_again_as_such() {
        let number = RequestNumber::try_from(7).unwrap();
        for host in CodeHost::ALL {
            let reference = host.request_reference(number);
            assert_eq!(reference.is_none(), host == CodeHost::Bitbucket);
            if let Some(reference) = reference {
                let branch: Branch = reference.parse().unwrap();
                assert!(branch.is_of_request(), "{branch}");
            }
        }
    }
}
