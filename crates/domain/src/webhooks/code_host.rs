//! Who sends webhooks.

/// A kind of code host, told by the headers of its webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeHost {
    /// github.com, or GitHub Enterprise.
    GitHub,
    /// gitlab.com, or one of one's own.
    GitLab,
    /// Gitea.
    Gitea,
    /// Forgejo, such as codeberg.org.
    Forgejo,
    /// bitbucket.org.
    Bitbucket,
}

/// Which headers a code host sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Headers {
    pub(super) signature: &'static str,
    pub(super) event: &'static str,
    pub(super) delivery: &'static str,
}

impl CodeHost {
    /// Every one. Forgejo says what Gitea says as well, and Gitea what GitHub says, so that who is
    /// first here is who it is.
    pub const ALL: [Self; 5] = [Self::Forgejo, Self::Gitea, Self::GitLab, Self::GitHub, Self::Bitbucket];

    /// Its name, as people write it.
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

    /// Its name, as the trail knows it.
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

    /// Whether `event` is a push.
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
            Self::GitLab => ["x-gitlab-token", "x-gitlab-event", "x-gitlab-event-uuid"],
            Self::Gitea => ["x-gitea-signature", "x-gitea-event", "x-gitea-delivery"],
            Self::Forgejo => ["x-forgejo-signature", "x-forgejo-event", "x-forgejo-delivery"],
            Self::Bitbucket => ["x-hub-signature", "x-event-key", "x-request-uuid"],
        };
        Headers { signature, event, delivery }
    }

    /// Whether the signature has to name its algorithm.
    pub(super) fn names_algorithm(self) -> bool {
        matches!(self, Self::GitHub | Self::Bitbucket)
    }

    /// Whether a form is signed as the text in it instead of as it is sent.
    pub(super) fn signs_text_of_form(self) -> bool {
        matches!(self, Self::Gitea | Self::Forgejo)
    }
}
