//! Logs of applications.

mod line;
mod lines;
mod masker;
mod sanitization;

use async_trait::async_trait;

pub use self::{
    line::{Level, LogLine, LogLineId, NewLine},
    lines::{LONGEST_LINE, LineAssembler},
    masker::{MASK, Masker},
    sanitization::clean,
};
use crate::{
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId},
    organizations::Scope,
    page::{Page, PageRequest},
    store_error::StoreError,
};

/// A filter for log lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Those that contain this, ignoring case.
    pub search: Option<String>,
    /// Those of this level.
    pub level: Option<Level>,
    /// Those not before this time.
    pub from: Option<Timestamp>,
    /// Those not after this time.
    pub to: Option<Timestamp>,
    /// Those of this deployment.
    pub deployment: Option<DeploymentId>,
}

/// The size limits of logs in bytes: the text of their lines, and 100 for each line. 0 is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogLimits {
    /// The log of one application.
    pub application: u64,
    /// The logs of all applications of one organization.
    pub organization: u64,
}

/// Stores log lines.
///
/// A sink may have [`LogLimits`]: then the call that appends deletes the oldest lines of an application
/// that exceeds them, and adds one line with their number.
///
/// Promises: the lines of one call are durable when it returns, in their order, after all earlier ones of
/// the same application, and none is visible before. A line of an application that is gone is dropped.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LogSink: Send + Sync {
    /// Appends `lines`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`]; then none was appended.
    async fn append(&self, lines: Vec<NewLine>) -> Result<(), StoreError>;

    /// Appends lines that a container of `deployment` printed after those whose newest time is `after`. Where several
    /// servers collect, the second one to append the same lines fails. By default there is only one.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if the newest line that was printed before is another one: another server has collected
    /// meanwhile. Otherwise those of [`append`](LogSink::append).
    async fn append_printed(
        &self,
        deployment: DeploymentId,
        after: Option<Timestamp>,
        lines: Vec<NewLine>,
    ) -> Result<(), StoreError> {
        let _only_one = (deployment, after);
        self.append(lines).await
    }

    /// Deletes the oldest lines of every application, so that each keeps the newest `keep`. Returns the
    /// number of deleted lines, which is bounded for one call.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn trim(&self, keep: i64) -> Result<usize, StoreError>;
}

/// Reads lines. Every method sees what was last made durable, and none of a deleted application.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LogReader: Send + Sync {
    /// Returns a page of an application's lines, newest first. Without a filter, or with a deployment as
    /// the only one, its cost does not grow with the log. `None` when the organization has no such
    /// application.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn page(
        &self,
        scope: Scope,
        application: ApplicationId,
        filter: &LogFilter,
        page: PageRequest,
    ) -> Result<Option<Page<LogLine>>, StoreError>;

    /// Returns the lines after number `after`, oldest first, at most `limit`; `None` if the organization
    /// has no such application.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn after(
        &self,
        scope: Scope,
        application: ApplicationId,
        filter: &LogFilter,
        after: i64,
        limit: i64,
    ) -> Result<Option<Vec<LogLine>>, StoreError>;

    /// Returns the time of the newest line that a deployment's container printed, to continue from.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn last_printed(&self, deployment: DeploymentId) -> Result<Option<Timestamp>, StoreError>;
}

/// Lines that become visible together with other changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Appends lines.
    Append(Vec<NewLine>),
}
