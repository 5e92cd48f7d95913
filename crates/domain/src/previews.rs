//! Previews: temporary applications of pull and merge requests.
//!
//! **Invariant:** a preview has no variable of the application that it is a preview of, except those that are marked as
//! shared, and none of its domains.

mod blueprint;
mod settings;
mod status;

use async_trait::async_trait;

pub use self::{
    settings::{PreviewLifetime, PreviewLimit, PreviewSettings},
    status::{CodeHostApi, CodeHostName, CodeHostToken, CommitStatus, StatusState, UnreportedStatus},
};
use crate::{
    applications::Application,
    clock::Timestamp,
    deployments::CommitHash,
    ids::{ApplicationId, OrganizationId},
    organizations::Scope,
    store_error::StoreError,
    value::named,
    webhooks::{CodeHost, HeadCommit, RequestNumber},
};

named!(
    /// The state of a preview.
    PreviewState,
    "the state of a preview",
    {
        Waiting => "waiting",
        Active => "active",
        Closed => "closed",
    }
);

/// The preview of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The application that it is a preview of.
    pub parent: ApplicationId,
    /// The number of the request.
    pub number: RequestNumber,
    /// The code host of the request.
    pub code_host: CodeHost,
    /// The application that runs the preview; `None` before it is approved, and after the request was closed.
    pub application: Option<ApplicationId>,
    /// The current state. It is active as long as an application runs it.
    pub state: PreviewState,
    /// The branch of the request, as the code host names it.
    pub branch: String,
    /// The head of the request, as it was last reported.
    pub head: Option<HeadCommit>,
    /// True if the branch is in a fork.
    pub is_from_fork: bool,
    /// The commit of a fork that a member approved last.
    pub approved: Option<CommitHash>,
    /// The time at which it is removed.
    pub expires_at: Timestamp,
    /// When it was recorded.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Preview {
    /// The time for which the record of a closed request is kept. Until then late and repeated reports about it are
    /// ignored.
    pub const CLOSED_KEPT: chrono::TimeDelta = chrono::TimeDelta::days(30);
    /// The maximum number of requests of an application that wait for an approval.
    pub const MOST_WAITING: u16 = 100;

    /// Returns whether the head is a commit of a fork that no member approved.
    #[must_use]
    pub fn awaits_approval(&self) -> bool {
        let head = self.head.as_ref().and_then(HeadCommit::full);
        self.is_from_fork && self.state != PreviewState::Closed && (head.is_none() || head != self.approved)
    }
}

/// A preview with the application that runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewSummary {
    /// The preview.
    pub preview: Preview,
    /// The application that runs it.
    pub application: Option<Application>,
}

/// A preview that has to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredPreview {
    /// The organization that it belongs to.
    pub organization: OrganizationId,
    /// The preview.
    pub preview: Preview,
}

/// Reads previews. Every method sees what `commit` last made durable, and nothing of deleted applications, except where
/// it says so.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait PreviewRepository: Send + Sync {
    /// Returns the settings of those of `applications` that have any, in the order of their ids.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn settings(
        &self,
        scope: Scope,
        applications: &[ApplicationId],
    ) -> Result<Vec<PreviewSettings>, StoreError>;

    /// Returns the previews of a request for `parents`, in any state, in the order of the ids of the parents.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn of_request(
        &self,
        scope: Scope,
        parents: &[ApplicationId],
        number: RequestNumber,
    ) -> Result<Vec<Preview>, StoreError>;

    /// Returns the previews of an application that are active or waiting, in the order of their numbers.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn of_application(
        &self,
        scope: Scope,
        parent: ApplicationId,
    ) -> Result<Vec<PreviewSummary>, StoreError>;

    /// Returns whether an application is a preview.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn is_preview(&self, scope: Scope, application: ApplicationId) -> Result<bool, StoreError>;

    /// Returns at most [this many](ExpiredPreview::MOST) previews of the installation that expire at `now` or
    /// before, or whose parent was deleted.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn expired(&self, now: Timestamp) -> Result<Vec<ExpiredPreview>, StoreError>;

    /// Returns the tokens of an organization, in the order of their code hosts.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn tokens(&self, scope: Scope) -> Result<Vec<CodeHostToken>, StoreError>;

    /// Returns the active previews of organizations with a token whose status was not reported yet.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn unreported(&self) -> Result<Vec<UnreportedStatus>, StoreError>;
}

impl ExpiredPreview {
    /// The maximum number of expired previews that are read at once.
    pub const MOST: i64 = 100;
}

/// Changes to previews.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Stores the settings of an application. `Stale` if it is gone, or is a preview, or if they were last changed at
    /// another time than `seen`, where `None` means that it has none.
    SetSettings {
        /// The organization that it belongs to.
        scope: Scope,
        /// The settings.
        settings: PreviewSettings,
        /// When the caller believes that they were last changed.
        seen: Option<Timestamp>,
    },
    /// Stores a preview. `Stale` if its parent is gone, or if it was last changed at another time than `seen`, where
    /// `None` means that there is none; `Refused(MostPreviews)` if the parent has `most` others in its state.
    Put {
        /// The organization that it belongs to.
        scope: Scope,
        /// The preview.
        preview: Preview,
        /// When the caller believes that it was last changed.
        seen: Option<Timestamp>,
        /// The limit of previews in this state.
        most: u16,
    },
    /// Removes the record of a preview. `Stale` if it was last changed at another time than `seen`.
    Remove {
        /// The application that it is a preview of.
        parent: ApplicationId,
        /// The number of the request.
        number: RequestNumber,
        /// When the caller believes that it was last changed.
        seen: Timestamp,
    },
    /// Stores the token of an organization for a code host. All its statuses are reported again.
    SetToken(CodeHostToken),
    /// Removes the token of an organization for a code host. `Stale` if there is none.
    RemoveToken {
        /// The organization that it belongs to.
        scope: Scope,
        /// The code host.
        host: CodeHostName,
    },
    /// Records that a status was reported. Does nothing if the preview is gone.
    RecordStatus {
        /// The application that it is a preview of.
        parent: ApplicationId,
        /// The number of the request.
        number: RequestNumber,
        /// The status.
        status: CommitStatus,
    },
    /// Records whether a report with a token failed. Does nothing if the token is gone.
    RecordProblem {
        /// The organization that the token belongs to.
        organization: OrganizationId,
        /// The code host.
        host: CodeHostName,
        /// The reason why it failed.
        problem: Option<String>,
    },
}

impl Write {
    /// Returns whether the change requires an entry in the audit log. A record is removed with its application, whose
    /// deletion has an entry, or long after its request was closed. Reports change nothing for users.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        !matches!(self, Self::Remove { .. } | Self::RecordStatus { .. } | Self::RecordProblem { .. })
    }
}
