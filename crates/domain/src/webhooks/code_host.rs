//! The senders of webhooks.

use crate::{
    audit::{Author, Chain},
    auth::Origin,
};

/// A kind of code host, recognised by the headers of its webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeHost {
    /// github.com, or GitHub Enterprise.
    GitHub,
    /// gitlab.com, or a self-hosted GitLab.
    GitLab,
    /// A Gitea server.
    Gitea,
    /// Forgejo, such as codeberg.org.
    Forgejo,
    /// Bitbucket Cloud, bitbucket.org.
    Bitbucket,
}

/// The names of the headers that a code host sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Headers {
    pub(super) signature: &'static str,
    pub(super) event: &'static str,
    pub(super) delivery: &'static str,
}

impl Author {
    /// Returns a code host that reported a push by the request `origin`.
    #[must_use]
    pub fn code_host(chain: Chain, host: CodeHost, origin: Origin) -> Self {
        Self { chain, name: host.as_str().to_owned(), user_id: None, origin: Some(origin) }
    }
}

crate::value::parsed_by_name!(CodeHost, "the name of a code host, such as `github`");

impl CodeHost {
    /// Every code host. Forgejo sends Gitea's headers as well, and Gitea those of GitHub, so that the first
    /// match in this order is the sender.
    pub const ALL: [Self; 5] = [Self::Forgejo, Self::Gitea, Self::GitLab, Self::GitHub, Self::Bitbucket];

    /// Returns its name for display.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::GitHub => "GitHub",
            Self::GitLab => "GitLab",
            Self::Gitea => "Gitea",
            Self::Forgejo => "Forgejo",
            Self::Bitbucket => "Bitbucket",
        }
    }

    /// Returns its name in the audit log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Gitea => "gitea",
            Self::Forgejo => "forgejo",
            Self::Bitbucket => "bitbucket",
        }
    }

    /// Returns whether the payload names the event: a system hook of GitLab is sent for all events of an
    /// instance.
    #[must_use]
    pub fn names_event_in_payload(self, event: &str) -> bool {
        self == Self::GitLab && event == "System Hook"
    }

    /// Returns whether `event` is a push.
    #[must_use]
    pub fn is_push(self, event: &str) -> bool {
        match self {
            Self::GitHub | Self::Gitea | Self::Forgejo => event == "push",
            Self::GitLab => matches!(event, "Push Hook" | "Tag Push Hook"),
            Self::Bitbucket => event == "repo:push",
        }
    }

    pub(super) fn headers(self) -> Headers {
        let [signature, event, delivery] = match self {
            Self::GitHub => ["x-hub-signature-256", "x-github-event", "x-github-delivery"],
            Self::GitLab => ["x-gitlab-token", "x-gitlab-event", "idempotency-key"],
            Self::Gitea => ["x-gitea-signature", "x-gitea-event", "x-gitea-delivery"],
            Self::Forgejo => ["x-forgejo-signature", "x-forgejo-event", "x-forgejo-delivery"],
            Self::Bitbucket => ["x-hub-signature", "x-event-key", "x-request-uuid"],
        };
        Headers { signature, event, delivery }
    }

    /// Returns the header with the id of a delivery of an older version. GitLab had only one that the webhooks
    /// of one event share.
    pub(super) fn older_delivery_header(self) -> Option<&'static str> {
        (self == Self::GitLab).then_some("x-gitlab-event-uuid")
    }

    /// Returns whether the signature has to name its algorithm.
    pub(super) fn names_algorithm(self) -> bool {
        matches!(self, Self::GitHub | Self::Bitbucket)
    }

    /// Returns whether the signature of a form covers the text in it instead of the raw body.
    pub(super) fn signs_text_of_form(self) -> bool {
        matches!(self, Self::Gitea | Self::Forgejo)
    }
}
