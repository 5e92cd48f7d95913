//! The changes of a push.

use crate::deployments::CommitHash;

/// One change to a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A branch was moved to another commit.
    Pushed(Push),
    /// A branch was deleted.
    Deleted(String),
    /// A tag was created or deleted.
    Tagged(String),
    /// Something else, by its name.
    Other(String),
}

/// A push to a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// The branch, as the code host names it.
    pub branch: String,
    /// The new head, if the code host sends it.
    pub head: Option<CommitHash>,
    /// The marker in the commit message that asks not to be deployed.
    pub skip: Option<&'static str>,
}

/// The markers in a commit message that ask not to be deployed.
const SKIP: [&str; 2] = ["[skip ci]", "[skip deploy]"];

impl Change {
    /// Creates the change that `reference`, by its full name, is at `after`, whose message is `message`.
    #[must_use]
    pub fn of_reference(reference: &str, after: &str, message: Option<&str>) -> Self {
        match (reference.strip_prefix("refs/heads/"), reference.strip_prefix("refs/tags/")) {
            (Some(branch), _) => Self::of_branch(branch, after, message),
            (None, Some(tag)) => Self::Tagged(tag.to_owned()),
            (None, None) => Self::Other(reference.to_owned()),
        }
    }

    /// Creates the same change for a branch.
    #[must_use]
    pub fn of_branch(branch: &str, after: &str, message: Option<&str>) -> Self {
        // Git writes a deleted reference as zeros.
        if !after.is_empty() && after.bytes().all(|byte| byte == b'0') {
            return Self::Deleted(branch.to_owned());
        }
        let message = message.unwrap_or_default().to_lowercase();
        Self::Pushed(Push {
            branch: branch.to_owned(),
            head: after.to_ascii_lowercase().parse().ok(),
            skip: SKIP.into_iter().find(|words| message.contains(words)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: &str = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c";

    fn pushed(change: Change) -> Push {
        match change {
            Change::Pushed(push) => push,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_branch_has_its_whole_name_and_its_head() {
        let push = pushed(Change::of_reference("refs/heads/feature/a", AFTER, Some("A change")));
        let head = Some(AFTER.parse().unwrap());
        assert_eq!(push, Push { branch: "feature/a".to_owned(), head, skip: None });
        let shouted = pushed(Change::of_reference("refs/heads/main", &AFTER.to_uppercase(), None));
        assert_eq!(shouted.head, push.head);
        assert_eq!(pushed(Change::of_reference("refs/heads/main", "abc", None)).head, None);
    }

    #[test]
    fn tags_deleted_branches_and_the_rest_are_distinguished() {
        for zeros in ["0".repeat(40), "0".repeat(64)] {
            let gone = Change::of_reference("refs/heads/old", &zeros, None);
            assert_eq!(gone, Change::Deleted("old".to_owned()));
        }
        let tag = Change::of_reference("refs/tags/v1.0", AFTER, Some("[skip ci]"));
        assert_eq!(tag, Change::Tagged("v1.0".to_owned()));
        for other in ["refs/merge-requests/1/head", "refs/headsmain", "main", ""] {
            assert_eq!(Change::of_reference(other, AFTER, None), Change::Other(other.to_owned()));
        }
    }

    #[test]
    fn a_commit_can_ask_not_to_be_deployed_anywhere_in_its_message() {
        for (message, words) in [
            ("[skip ci] words", "[skip ci]"),
            ("A change\n\nbecause of that [Skip Deploy]", "[skip deploy]"),
            ("docs: typo [SKIP CI]", "[skip ci]"),
        ] {
            let push = pushed(Change::of_reference("refs/heads/main", AFTER, Some(message)));
            assert_eq!(push.skip, Some(words), "{message}");
        }
        for message in ["skip ci", "[skip] [ci]", "[skipci]", "", "[skip  ci]"] {
            let push = pushed(Change::of_reference("refs/heads/main", AFTER, Some(message)));
            assert_eq!(push.skip, None, "{message}");
        }
    }
}
