//! The outcome of a webhook.

use std::fmt;

use launchway_domain::{deployments::CommitHash, webhooks::Push};

/// The outcome of a verified webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookOutcome {
    /// Deployments were requested, or a preview was removed.
    Deployed,
    /// The delivery was handled before.
    Duplicate,
    /// The preview of a request from a fork waits for an approval, by the name of the request.
    Waiting(String),
    /// The delivery needs no action.
    Ignored(Ignored),
}

/// The reason why a delivery needs no action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ignored {
    /// The event is neither a push nor a change of a request.
    Event(String),
    /// A pull or merge request needs no action.
    Request {
        /// The name of the request, such as "pull request 7".
        title: String,
        /// The reason, which continues the sentence.
        reason: String,
    },
    /// The push is of a tag.
    Tag(String),
    /// The branch was deleted.
    DeletedBranch(String),
    /// The reference is neither a branch nor a tag.
    Reference(String),
    /// No application follows the branch.
    Branch(String),
    /// The commit message opts out of the deployment.
    Skipped(Option<CommitHash>, &'static str),
    /// The commit is live already.
    Live(Option<CommitHash>),
    /// No path that the application watches differs between the commit and the deployed one.
    Unwatched {
        /// The pushed commit.
        commit: CommitHash,
        /// The commit that was deployed last.
        deployed: CommitHash,
    },
    /// The push changed nothing.
    Nothing,
}

impl Ignored {
    pub(super) fn is_live(push: &Push) -> Self {
        Self::Live(push.head.clone())
    }
}

impl fmt::Display for WebhookOutcome {
    /// Writes a sentence for the list of deliveries at the code host.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deployed => f.write_str("Webhook handled successfully"),
            Self::Duplicate => f.write_str("Duplicate delivery ignored"),
            Self::Waiting(title) => {
                write!(f, "The preview of {title} waits for an approval: it comes from a fork")
            }
            Self::Ignored(why) => write!(f, "Ignored {why}"),
        }
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => write!(f, "event `{}`", shown(event)),
            Self::Request { title, reason } => write!(f, "{title}: {reason}"),
            Self::Tag(tag) => write!(f, "tag `{}`", shown(tag)),
            Self::DeletedBranch(branch) => write!(f, "deleted branch `{}`", shown(branch)),
            Self::Reference(reference) => write!(f, "reference `{}`", shown(reference)),
            Self::Branch(branch) => write!(f, "branch `{}`: no application follows it", shown(branch)),
            Self::Skipped(commit, words) => {
                write!(f, "{}: its message contains `{words}`", of(commit.as_ref()))
            }
            Self::Live(commit) => write!(f, "{}: it is live already", of(commit.as_ref())),
            Self::Unwatched { commit, deployed } => write!(
                f,
                "commit {}: no path of watch_paths changed since {}",
                commit.short(),
                deployed.short()
            ),
            Self::Nothing => f.write_str("push without a change"),
        }
    }
}

fn of(commit: Option<&CommitHash>) -> String {
    commit.map_or_else(|| "commit".to_owned(), |commit| format!("commit {}", commit.short()))
}

/// Sanitizes text of the sender for a sentence.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_a_sentence() {
        let commit: Option<CommitHash> = "a".repeat(40).parse().ok();
        for (handled, sentence) in [
            (WebhookOutcome::Deployed, "Webhook handled successfully"),
            (WebhookOutcome::Duplicate, "Duplicate delivery ignored"),
            (WebhookOutcome::Ignored(Ignored::Event("ping".to_owned())), "Ignored event `ping`"),
            (
                WebhookOutcome::Waiting("pull request 7".to_owned()),
                "The preview of pull request 7 waits for an approval: it comes from a fork",
            ),
            (
                WebhookOutcome::Ignored(Ignored::Request {
                    title: "merge request 7".to_owned(),
                    reason: "it was closed".to_owned(),
                }),
                "Ignored merge request 7: it was closed",
            ),
            (WebhookOutcome::Ignored(Ignored::Tag("v1".to_owned())), "Ignored tag `v1`"),
            (
                WebhookOutcome::Ignored(Ignored::DeletedBranch("old".to_owned())),
                "Ignored deleted branch `old`",
            ),
            (WebhookOutcome::Ignored(Ignored::Reference("refs/x".to_owned())), "Ignored reference `refs/x`"),
            (
                WebhookOutcome::Ignored(Ignored::Branch("next".to_owned())),
                "Ignored branch `next`: no application follows it",
            ),
            (
                WebhookOutcome::Ignored(Ignored::Skipped(commit.clone(), "[skip ci]")),
                "Ignored commit aaaaaaa: its message contains `[skip ci]`",
            ),
            (
                WebhookOutcome::Ignored(Ignored::Unwatched {
                    commit: "a".repeat(40).parse().unwrap(),
                    deployed: "b".repeat(40).parse().unwrap(),
                }),
                "Ignored commit aaaaaaa: no path of watch_paths changed since bbbbbbb",
            ),
            (WebhookOutcome::Ignored(Ignored::Live(commit)), "Ignored commit aaaaaaa: it is live already"),
            (WebhookOutcome::Ignored(Ignored::Nothing), "Ignored push without a change"),
        ] {
            assert_eq!(handled.to_string(), sentence);
        }
    }

    #[test]
    fn what_others_wrote_is_shortened_and_escaped() {
        let long = WebhookOutcome::Ignored(Ignored::Branch(format!("a\n{}", "b".repeat(1000)))).to_string();
        assert!(long.starts_with("Ignored branch `a\\nbbb") && long.len() < 200, "{long}");
    }
}
